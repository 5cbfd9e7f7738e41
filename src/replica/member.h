#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/replica.h"
#include "muster/store.h"
#include "replica/set_records.h"
#include "store/store.h"

namespace muster::replica {

// One worker's part in the set: its heartbeat, and its share of coordinating.
//
// Nobody is in charge. Whoever looks at the set does what is to be done next, by one
// compare-and-swap: declares those dead whose heartbeat is overdue by the store's clock, makes a
// new generation when the living are not the members, and says "go" when all are ready. Of several
// who try at once one succeeds, and the others see that it is done.
//
// Used by one thread.
class Member {
 public:
  Member(store::Store& store, Env& env, const ReplicaOptions& options, int slots,
         std::vector<std::string> projections);

  // Enters the set under a new id, pending until a generation has a place for it. kIncompatible:
  // the set has other slots, or a projection that is not among ours.
  Status Register();

  // Looks at the set, renews where that is due, and does what is to be done. After kLeaseLost the
  // worker is out: it must stop all work and may register anew. Other failures pass, or the
  // deadline does.
  Result<SetView> Tick();

  // Tells the set what this worker is now. kLeaseLost as from Tick.
  Status Say(MemberState::Phase phase, int64_t generation);

  // Leaves for good. Tries for a while, whether or not a stop was requested.
  Status Leave();

  // Fences that we met are ahead of the store: it was restored, or created anew. The next
  // generation will be beyond them.
  void GenerationsSeenUpTo(int64_t generation);

  // Until when we surely count as alive. Past it, all work must have stopped.
  MonoTime deadline() const { return lease_ ? lease_->deadline() : MonoTime{}; }

  // How long nothing has to be looked at, unless somebody signals.
  std::chrono::nanoseconds Rest() const;

  const std::string& id() const { return id_; }
  MemberState& state() { return state_; }

 private:
  Status CheckSet(const SetView& view) const;
  Status Renew();
  // Stores what this worker is now.
  Status Commit(store::Due due);
  Error WhyLost(Code code, MonoTime deadline) const;
  Status Coordinate(SetView& view);
  Result<bool> ExpireMembers(SetView& view, WallTime now);
  Status Propose(SetView& view, std::vector<std::string> members, const std::string& reason,
                 WallTime now);
  Status Go(SetView& view);
  Result<bool> Swap(SetView& view, const Generation& next);
  bool Settled(const std::vector<std::string>& wanted);

  store::Store& store_;
  Env& env_;
  const ReplicaOptions& options_;
  const int slots_;
  const std::vector<std::string> projections_;
  std::string id_;
  std::optional<store::Lease> lease_;  // of our record; none: not registered
  MemberState state_;
  MonoTime renewed_{};

  int64_t beyond_ = 0;
  // How long the living have differed from the members, and since when they have been the same.
  std::vector<std::string> wanted_;
  std::optional<MonoTime> differs_since_;
  MonoTime changed_{};
  // Since when this generation has been preparing, as far as we have seen.
  int64_t preparing_ = 0;
  MonoTime preparing_since_{};
};

}  // namespace muster::replica
