#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "muster/env.h"
#include "muster/events.h"
#include "muster/replica.h"
#include "muster/store.h"
#include "replica/read_model.h"
#include "replica/set_records.h"

namespace muster::replica {

// A rebuild without downtime: a new version of a projection catches up beside the active one,
// without side effects, until it takes over in one transaction. The old one is kept up to date, so
// that one can go back, until it is dropped. Each step is durable: after an interruption, call it
// again.
class Rebuild {
 public:
  Rebuild(store::Store& store, events::EventLog& log, ReadModel& model, Env& env,
          const std::string& set, std::shared_ptr<Projection> projection)
      : store_(store),
        log_(log),
        model_(model),
        env_(env),
        set_(set),
        given_(std::move(projection)),
        name_(given_->name()) {}

  // Adds a new version, with the definition of the given projection, or continues with the one
  // being built. Returns its number. kConflict: the previous version still exists, one is being
  // built from another definition, or the projection is paused.
  Result<int> Begin();

  // Events the new version has not read yet.
  Result<int64_t> Left();

  // Waits until the new version is at most `lag` events behind, reporting the remaining events to
  // `observer`. Requires running workers.
  Status CatchUp(int64_t lag, RebuildObserver& observer, std::stop_token stop);

  // Makes the newest version the one that readers see, or with `back` the previous one: briefly
  // holds the active one until the other has caught up, and swaps. Side effects are handed over
  // with it, at one position per slot. kConflict: the new version has parked streams that the
  // active one does not.
  Status Swap(bool back, std::stop_token stop);

  // Drops the inactive version and its tables. Returns its number. kConflict: it still has side
  // effects to perform, up to the hand-over position.
  Result<int> Finish();

 private:
  Result<DesiredState> Settled() const;
  Result<int> Other(const DesiredState& desired) const;
  Status CheckBuiltBy(const std::string& hash, int version) const;
  Status CheckNotPaused(const DesiredState& desired) const;
  Status CheckParked(int from, int to) const;
  Status CheckEffectsDone(int version) const;
  Status Hold(int version, bool held);
  Status Restore(int version);
  Status SwapHeld(int from, int to, std::stop_token stop);
  Result<bool> Stopped(int version) const;
  Result<bool> IsBehind(int from, int to) const;
  Status TrySwap(int from, int to);
  Result<std::shared_ptr<Projection>> Built(int version) const;
  std::string Named(int version) const;

  store::Store& store_;
  events::EventLog& log_;
  ReadModel& model_;
  Env& env_;
  const std::string set_;
  const std::shared_ptr<Projection> given_;
  const std::string name_;
};

}  // namespace muster::replica
