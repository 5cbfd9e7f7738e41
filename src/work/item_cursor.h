#pragma once

#include "muster/migrate.h"
#include "muster/work.h"

namespace muster {

// Accompanies the migration of one item: checkpoints it, splits off parts for idle workers, and
// hands it over when it was held long enough.
class ItemCursor final : public WorkItemCursor {
 public:
  ItemCursor(WorkCoordinator& coordinator, Pipeline& pipeline, WorkItem& item,
             WorkObserver& observer, const StopRequests& stops, const Progress& start, bool kept);

  Status Advance(Progress& progress, Writer& writer, Rest& rest) override;
  Patience NextPatience() override;

  // What the sink has acknowledged.
  const Progress& acknowledged() const { return acknowledged_; }

  // Whether the lease is about to expire.
  bool NearTheEnd() const;

 private:
  Status Save(const Progress& progress, Writer& writer);
  Status SplitOff(Progress& progress, Writer& writer, Rest& rest);
  std::optional<double> Fraction(const Progress& progress, const std::string& position);

  WorkCoordinator& coordinator_;
  Pipeline& pipeline_;
  WorkItem& item_;
  WorkObserver& observer_;
  const StopRequests& stops_;
  const bool kept_;
  const MonoTime began_;
  MonoTime saved_at_;
  Progress acknowledged_;
};

}  // namespace muster
