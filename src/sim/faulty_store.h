#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "muster/store.h"
#include "sim/faulty_wire.h"
#include "sim/simulation.h"

namespace muster::sim {

// What the world sees of a store, beside those that call it. Every function may be left out.
struct StoreObserver {
  // A process is about to send a change.
  std::function<void(const Change& change)> sends = {};
  // A change has reached the store; `before` and `after` are what was and is stored.
  std::function<void(const Change& change, const std::optional<Record>& before,
                     const std::optional<Record>& after, bool late)>
      changed = {};
  // A claim has reached the store; `before` holds what was stored of the records it took.
  std::function<void(const ClaimRequest& request, const std::vector<Record>& before,
                     const std::vector<Record>& taken, bool late)>
      claimed = {};
  // A process has read one record, whether or not the answer reaches it.
  std::function<void(const std::optional<Record>& stored)> reads = {};
  // The store is what it was some time ago.
  std::function<void()> went_back = {};
};

// The memory store behind a faulty wire, with a clock of its own that jumps. To be called from
// processes of the simulation only.
class FaultyStore final : public Store {
 public:
  FaultyStore(Simulation& sim, StoreObserver observer);
  ~FaultyStore() override;

  Result<std::optional<Record>> Get(std::string_view kind, std::string_view key) override;
  Result<std::vector<Record>> Scan(std::string_view kind, std::string_view prefix,
                                   std::string_view after, int limit) override;
  Result<std::vector<Written>> Write(std::span<const Change> changes) override;
  Result<std::vector<Record>> Claim(const ClaimRequest& request) override;
  Result<WallTime> Now() override;
  void Wait(std::string_view kind, milliseconds timeout, std::stop_token stop) override;

  // The store itself, for whoever judges from outside: no fault, no time passes.
  Store& Truth() { return *truth_; }

  // Whether the store answers nobody at the moment.
  bool Away() const { return wire_.Away(); }

  // From now on also torn writes, throttling and claims by stale views.
  void AddHarshFaults() { harsher_ = true; }

  // All processes share one machine with the store, and it may lose power: what is deferred is
  // lost unless something that is not was written after it.
  void MayLosePower() { may_lose_power_ = true; }

  // The store may lose what it has acknowledged in up to this time. Once, at any write or only when
  // it is asked to.
  void MayGoBack(nanoseconds at_most, bool at_any_write) {
    may_lose_ = at_most;
    goes_back_at_any_write_ = at_any_write;
  }

  // If it may still go back, and the fault happens: shortly before this time has passed it does, to
  // what it was when its last backup was made. False: it does not.
  bool GoBackBefore(nanoseconds time);

 private:
  class Clock;

  Status RefuseWrites(const std::string& what);
  Status Throttled(const std::string& what);
  void PickByOldView(ClaimRequest& request);
  void MaybeGoBack();
  void GoBackAfter(nanoseconds delay, std::unique_ptr<Store> backup);
  void RestoreBackup(std::unique_ptr<Store> backup);
  void MaybeLosePower(bool deferred);
  Result<std::vector<Written>> Apply(std::span<const Change> changes, bool late);

  Simulation& sim_;
  StoreObserver observer_;
  FaultyWire wire_;
  std::unique_ptr<Clock> clock_;
  std::unique_ptr<Store> truth_;
  nanoseconds read_only_until_{0};
  nanoseconds throttled_until_{0};
  nanoseconds may_lose_{0};
  std::unique_ptr<Store> backup_;
  bool goes_back_at_any_write_ = false;
  bool harsher_ = false;
  bool may_lose_power_ = false;
  std::shared_ptr<std::unique_ptr<Store>> unsynced_since_;  // what a loss of power leaves, if less
  int server_ = 1;  // what is on its way to one that is gone arrives nowhere
};

}  // namespace muster::sim
