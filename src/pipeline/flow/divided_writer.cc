#include "pipeline/flow/shards.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "core/interrupt.h"
#include "pipeline/flow/wrappers.h"

namespace muster::pipeline {
namespace {

class Divided final : public WriterWrapper {
 public:
  Divided(const Pipeline& pipeline, std::string collection, Fence fence,
          std::unique_ptr<Writer> own)
      : WriterWrapper(std::move(own)),
        pipeline_(pipeline),
        collection_(std::move(collection)),
        fence_(std::move(fence)) {}

  Result<std::vector<Refused>> Write(const Batch& batch, const Progress& after,
                                     const Patience& patience) override {
    std::map<std::string_view, std::vector<size_t>> by_target;
    for (size_t i = 0; i < batch.documents.size(); ++i) {
      by_target[batch.documents[i].target].push_back(i);
    }
    const bool only_own =
        by_target.empty() || (by_target.size() == 1 && by_target.begin()->first.empty());
    if (only_own) return WriterWrapper::Write(batch, after, patience);
    std::vector<Refused> refused;
    for (const auto& [target, indices] : by_target) {
      Batch part;  // its texts are those of the whole
      for (const size_t index : indices) part.documents.push_back(batch.documents[index]);
      MUSTER_ASSIGN(std::vector<Refused> ones, WritePart(target, part, after, patience));
      for (Refused& one : ones) {
        one.index = indices.at(one.index);
        refused.push_back(std::move(one));
      }
    }
    std::sort(refused.begin(), refused.end(),
              [](const Refused& a, const Refused& b) { return a.index < b.index; });
    return refused;
  }

  Status Flush() override {
    for (const auto& [target, writer] : chosen_) MUSTER_TRY(writer->Flush());
    return WriterWrapper::Flush();
  }

  Status Finish() override {
    for (const auto& [target, writer] : chosen_) MUSTER_TRY(writer->Finish());
    return WriterWrapper::Finish();
  }

 private:
  Result<std::vector<Refused>> WritePart(std::string_view target, const Batch& part,
                                         const Progress& after, const Patience& patience) {
    if (target.empty()) return WriterWrapper::Write(part, after, patience);
    auto found = chosen_.find(target);
    if (found == chosen_.end()) {
      // Targets may take seconds to create. The batch is written again, and finds those that are.
      if (pipeline_.env.MonoNow() >= patience.deadline) {
        return Error{Code::kUnavailable,
                     "no time was left to prepare '" + std::string(target) + "'"};
      }
      const std::string name(target);
      {
        const InterruptScope scope(patience.stop);
        MUSTER_TRY(Admit(name));
      }
      MUSTER_ASSIGN(auto writer, pipeline_.sink.Open(name, fence_));
      found = chosen_.emplace(name, std::move(writer)).first;
    }
    return found->second->Write(part, after, patience);
  }

  Status Admit(const std::string& target) {
    if (pipeline_.chosen != nullptr) {
      return pipeline_.chosen->Admit(pipeline_, collection_, target, fence_);
    }
    return CheckExists(pipeline_.sink, target);
  }

  const Pipeline& pipeline_;
  const std::string collection_;
  const Fence fence_;
  std::map<std::string, std::unique_ptr<Writer>, std::less<>> chosen_;  // by target
};

}  // namespace

Status CheckExists(Sink& sink, const std::string& target) {
  MUSTER_ASSIGN(const auto missing, sink.Prepare({.name = target}, /*evaluate=*/true));
  if (missing.empty()) return {};
  return Error{Code::kNotFound, sink.Place(target) + " does not exist in the sink",
               "create it first, with the mappings that its documents need"};
}

Result<std::unique_ptr<Writer>> DividedWriter(const Pipeline& pipeline,
                                              const std::string& collection, const Fence& fence,
                                              std::unique_ptr<Writer> writer) {
  const std::string own = pipeline.transforms.TargetName(collection);
  if (!pipeline.transforms.ChoosesTargets() || !pipeline.sink.CheckChosen(own)) return writer;
  if (pipeline.chosen != nullptr) {
    MUSTER_TRY(pipeline.chosen->Admit(pipeline, collection, own, fence));
  }
  return std::unique_ptr<Writer>(
      std::make_unique<Divided>(pipeline, collection, fence, std::move(writer)));
}

}  // namespace muster::pipeline
