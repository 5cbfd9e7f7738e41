#pragma once

#include "pipeline/pipeline.h"
#include "work/coordinator.h"

namespace muster::work {

// Accompanies the migration of one item: checkpoints it, splits off parts for idle workers, and
// hands it over when it was held long enough.
class ItemCursor final : public pipeline::WorkItemCursor {
 public:
  ItemCursor(WorkCoordinator& coordinator, pipeline::Pipeline& pipeline, LeasedItem& item,
             WorkObserver& observer, const StopRequests& stops, const pipeline::Progress& start,
             bool kept);
  ~ItemCursor() override;

  void Failed(const pipeline::Document& document, std::string_view reason) override {
    reasons_.Add(document.id, reason);
  }
  Status Advance(pipeline::Progress& progress, pipeline::Writer& writer,
                 pipeline::Rest& rest) override;
  pipeline::Patience NextPatience() override;

  // What the sink has acknowledged.
  const pipeline::Progress& acknowledged() const { return acknowledged_; }

  // Why documents failed that `acknowledged` counts.
  const FailureReasons& reasons() const { return reasons_; }

  // What is acknowledged is in the item's record.
  void SetSaved();

  // Whether the lease is about to expire.
  bool NearTheEnd() const;

 private:
  void Wait(const std::string& what);
  void Estimate(const pipeline::Counts& counts);
  Status CheckGoesOn(std::optional<store::Lease> count);
  Status Save(const pipeline::Progress& progress, pipeline::Writer& writer);
  Status SplitOff(pipeline::Progress& progress, pipeline::Writer& writer, pipeline::Rest& rest);
  std::optional<double> Fraction(const pipeline::Progress& progress, const std::string& position);

  WorkCoordinator& coordinator_;
  pipeline::Pipeline& pipeline_;
  LeasedItem& item_;
  WorkObserver& observer_;
  const StopRequests& stops_;
  const bool kept_;
  const MonoTime began_;
  MonoTime saved_at_;
  pipeline::Progress acknowledged_;
  std::optional<MonoTime> waits_since_;  // the sink retries
  bool wait_is_shown_ = false;           // in the item's record
  FailureReasons reasons_;
  pipeline::Counts unsaved_;  // in the estimate
};

}  // namespace muster::work
