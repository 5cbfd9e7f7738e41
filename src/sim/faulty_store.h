#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "muster/store.h"
#include "sim/faulty_wire.h"
#include "sim/simulation.h"

namespace muster::sim {

// The world's view of a store's traffic. Every function is optional.
struct StoreObserver {
  // A process is about to send a change.
  std::function<void(const store::Change& change)> sends = {};
  // A change has reached the store; `before` and `after` are what was and is stored.
  std::function<void(const store::Change& change, const std::optional<store::Record>& before,
                     const std::optional<store::Record>& after, bool late)>
      changed = {};
  // A claim has reached the store; `before` contains the stored state of the records it took.
  std::function<void(const store::ClaimRequest& request, const std::vector<store::Record>& before,
                     const std::vector<store::Record>& taken, bool late)>
      claimed = {};
  // A process has read one record, whether or not the response reaches it.
  std::function<void(const std::optional<store::Record>& stored)> reads = {};
  // The store has gone back in time.
  std::function<void()> went_back = {};
};

// The memory store behind a faulty wire, with its own jumping clock. Only for use by simulated
// processes. No wrapper: a call that was forwarded would get past the wire.
class FaultyStore final : public store::Store {
 public:
  FaultyStore(Simulation& sim, StoreObserver observer);
  ~FaultyStore() override;

  Result<std::optional<store::Record>> Get(std::string_view kind, std::string_view key) override;
  Result<std::vector<store::Record>> Scan(std::string_view kind, std::string_view prefix,
                                          std::string_view after, int limit) override;
  Result<std::vector<store::Written>> Write(std::span<const store::Change> changes) override;
  Result<std::vector<store::Record>> Claim(const store::ClaimRequest& request) override;
  Result<WallTime> Now() override;
  void Wait(std::string_view kind, milliseconds timeout, std::stop_token stop) override;

  // The store itself, for checks from outside: no faults, no time passes.
  store::Store& Truth() { return *truth_; }

  // How far its clock has jumped ahead so far, in all: more of its time than this and what has
  // passed cannot have gone by.
  nanoseconds JumpedAhead() const;

  // Whether the store is currently unreachable.
  bool Away() const { return wire_.Away(); }

  // Adds torn writes, throttling and claims from stale views.
  void AddHarshFaults() { harsher_ = true; }

  // All processes share one machine with the store, and it may lose power: deferred writes are lost
  // unless a regular write followed.
  void MayLosePower() { may_lose_power_ = true; }

  // The store may lose up to this much acknowledged history. Once, at any write or only on request.
  void MayGoBack(nanoseconds at_most, bool at_any_write) {
    may_lose_ = at_most;
    goes_back_at_any_write_ = at_any_write;
  }

  // If it may still go back, and the fault fires: goes back to its last backup shortly before this
  // time has passed. False: it does not.
  bool GoBackBefore(nanoseconds time);

 private:
  class Clock;

  Status RefuseWrites(const std::string& what);
  Status Throttled(const std::string& what);
  void PickByOldView(store::ClaimRequest& request);
  void MaybeGoBack();
  void GoBackAfter(nanoseconds delay, std::unique_ptr<store::Store> backup);
  void RestoreBackup(std::unique_ptr<store::Store> backup);
  void MaybeLosePower(bool deferred);
  Result<std::vector<store::Written>> Apply(std::span<const store::Change> changes, bool late);
  void CheckNothingIsDue(const store::ClaimRequest& request);

  Simulation& sim_;
  StoreObserver observer_;
  FaultyWire wire_;
  std::unique_ptr<Clock> clock_;
  std::unique_ptr<store::Store> truth_;
  nanoseconds read_only_until_{0};
  nanoseconds throttled_until_{0};
  nanoseconds may_lose_{0};
  std::unique_ptr<store::Store> backup_;
  bool goes_back_at_any_write_ = false;
  bool harsher_ = false;
  bool may_lose_power_ = false;
  std::set<std::pair<std::string, std::string>> due_at_once_;  // kinds and keys, until claimed
  std::shared_ptr<std::unique_ptr<store::Store>>
      unsynced_since_;  // what a power failure leaves, if less
  int server_ = 1;      // requests in flight to a dead one go nowhere
};

}  // namespace muster::sim
