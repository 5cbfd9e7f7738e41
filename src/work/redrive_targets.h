#pragma once

#include <map>
#include <string>

#include "pipeline/pipeline.h"
#include "work/chosen_records.h"
#include "work/redrive_steps.h"

namespace muster::work {

// Admits the targets that letters choose once they are transformed. A letter has no metadata, so
// none is created. Used by one thread.
class RedriveTargets final : public pipeline::ChosenTargets {
 public:
  // `merge`: documents of several collections may share one.
  explicit RedriveTargets(bool merge) : merge_(merge) {}

  // Whose letters are written next. It must outlive its letters' writers.
  void SetStep(const RedriveStep& step) { step_ = &step; }

  Status Admit(const pipeline::Pipeline& pipeline, const std::string& collection,
               const std::string& target, const pipeline::Fence& /*fence*/) override {
    // Where the run went, letters may follow.
    if (target == pipeline.transforms.TargetName(collection)) return {};
    MUSTER_TRY(pipeline::CheckExists(pipeline.sink, target));
    if (merge_) return {};
    MUSTER_ASSIGN(const std::string table, pipeline::TargetKey(pipeline.sink, target));
    std::string first = owners_.emplace(table, collection).first->second;
    if (step_->in_run) {
      MUSTER_ASSIGN(
          const auto record,
          step_->store->Get(kChosenKind, ChosenKey(step_->name, step_->run.incarnation, table)));
      if (record) {
        MUSTER_ASSIGN(const ChosenBody body, ChosenBody::FromJson(record->body));
        first = body.collection;
      }
    }
    if (first == collection) return {};
    return SharesTarget(first, collection, pipeline.sink.Place(target));
  }

 private:
  const bool merge_;
  const RedriveStep* step_ = nullptr;
  std::map<std::string, std::string> owners_;  // collections, by TargetKey
};

}  // namespace muster::work
