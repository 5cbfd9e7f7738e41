#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/replica.h"
#include "muster/store.h"
#include "replica/set_records.h"

namespace muster::replica {

// One worker's part in the set: its heartbeat, and its share of coordinating.
//
// There is no leader. Each worker that looks at the set takes the next step by one
// compare-and-swap: declares members dead whose heartbeat is overdue by the store's clock, proposes
// a new generation when the living are not the members, and says "go" when all are ready. Of
// concurrent attempts one succeeds.
//
// Used by one thread.
class Member {
 public:
  Member(store::Store& store, Env& env, const ReplicaOptions& options, int slots,
         std::vector<std::string> projections);

  // Enters the set under a new id, pending until a generation includes it. kIncompatible: the set
  // has another number of slots, a projection that is not among ours, or forgot one that is.
  Status Register();

  // Reads the set, renews the heartbeat if due, and coordinates. After kLeaseLost the worker is
  // out: it must stop all work and may register again. Other failures may be transient, until the
  // deadline. The view is valid until the next call.
  Result<const SetView*> Tick();

  // Publishes this worker's state. kLeaseLost as from Tick.
  Status Say(MemberState::Phase phase, int64_t generation);

  // Leaves the set. Retries for some seconds, even if a stop was requested.
  Status Leave();

  // A fence ahead of the store was found: the store was restored or recreated. The next generation
  // will be beyond it.
  void GenerationsSeenUpTo(int64_t generation);

  // Until then no peer may declare us dead. Past it, all work must have stopped.
  MonoTime deadline() const { return lease_ ? lease_->deadline() : MonoTime{}; }

  // How long until the next look, unless signalled.
  std::chrono::nanoseconds Rest() const;

  const std::string& id() const { return id_; }
  MemberState& state() { return state_; }

 private:
  Status CheckSet(const SetView& view) const;
  Status Renew();
  // Stores this worker's state.
  Status Commit(store::Due due);
  Error WhyLost(Code code, MonoTime deadline) const;
  Status Coordinate(SetView& view);
  std::chrono::nanoseconds PreparingFor(const SetView& view);
  bool IsLate(const SetView& view, const std::string& id, const MemberState& state,
              std::chrono::nanoseconds waited) const;
  Result<bool> ExpireMembers(SetView& view, WallTime now);
  Result<bool> DeclareDead(SetView& view, const std::vector<store::Change>& changes,
                           const std::vector<std::string>& ids);
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
  SetView seen_;  // by the last look

  int64_t beyond_ = 0;
  // Since when the living have differed from the members, and since when they have not changed.
  std::vector<std::string> wanted_;
  std::optional<MonoTime> differs_since_;
  MonoTime changed_{};
  // Since when this generation has been preparing, as far as we have seen.
  int64_t preparing_ = 0;
  MonoTime preparing_since_{};
};

}  // namespace muster::replica
