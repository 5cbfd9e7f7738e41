#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "muster/env.h"
#include "muster/events.h"
#include "muster/replica.h"
#include "muster/store.h"
#include "replica/read_model.h"
#include "replica/set_records.h"

namespace muster {

// A rebuild without downtime: a new version of a projection catches up beside the one in use, with
// its side effects off, until it takes over in one transaction. The old one is kept up to date, so
// that one can go back, until it is dropped. Each step is durable: after an interruption, call it
// again.
class Rebuild {
 public:
  Rebuild(Store& store, EventLog& log, ReadModel& model, Env& env, const std::string& set,
          std::shared_ptr<Projection> projection)
      : store_(store),
        log_(log),
        model_(model),
        env_(env),
        set_(set),
        given_(std::move(projection)),
        name_(given_->name()) {}

  // Lets the workers keep a new version, by the definition of the projection that was given, or
  // goes on with the one that is being built. Its number. kConflict: the version before the active
  // one is still kept, one is being built by another definition, or the projection is paused.
  Result<int> Begin();

  // How many events the new version has not read yet.
  Result<int64_t> Left();

  // Waits until the new version is no more than `lag` events behind, telling `progress` how many
  // events are still to come. Workers have to run the set meanwhile.
  Status CatchUp(int64_t lag, const std::function<void(int64_t left)>& progress,
                 std::stop_token stop);

  // Makes the newest version the one that readers see, or with `back` the one before: holds the
  // active one for a moment, so that the other is at least as far, and swaps. Side effects are
  // handed over with it, at one position of each slot. kConflict: the new version has parked
  // streams that the active one has not.
  Status Swap(bool back, std::stop_token stop);

  // Ends the version that is not active, and drops its tables. The number of it. kConflict: it
  // still has side effects to do, up to where it has handed them over.
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

  Store& store_;
  EventLog& log_;
  ReadModel& model_;
  Env& env_;
  const std::string set_;
  const std::shared_ptr<Projection> given_;
  const std::string name_;
};

}  // namespace muster
