#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "muster/states.h"
#include "plan/plan.h"
#include "sim/faulty_store.h"
#include "sim/simulation.h"

namespace muster::sim {

// Tracks which process drives a migration's run, by the lease on its record, and checks the
// invariants.
class PlanDrivers {
 public:
  PlanDrivers(Simulation& sim, std::string migration)
      : sim_(sim), migration_(std::move(migration)) {}

  // As observed at the store.
  void Sends(const store::Change& change);
  void Changed(const store::Change& change, const std::optional<store::Record>& before,
               const std::optional<store::Record>& after);
  void Claimed(const store::ClaimRequest& request, const std::vector<store::Record>& before,
               const std::vector<store::Record>& taken);

  // While it lives, the current process drives the run: only one that has claimed it may.
  class Driving {
   public:
    explicit Driving(PlanDrivers& drivers);
    ~Driving();
    Driving(const Driving&) = delete;
    Driving& operator=(const Driving&) = delete;

   private:
    PlanDrivers& drivers_;
    const std::string name_;
  };

  // A process that drives the run only if no other does.
  class Draining {
   public:
    explicit Draining(PlanDrivers& drivers) : drivers_(drivers) { ++drivers_.draining_; }
    ~Draining() { --drivers_.draining_; }
    Draining(const Draining&) = delete;
    Draining& operator=(const Draining&) = delete;

   private:
    PlanDrivers& drivers_;
  };

  // The current process begins a call.
  void CheckCall(const states::TaskCall& call);

  // The run's state as reported to a user who asked at `asked`.
  void CheckReported(const plan::RunState& run, nanoseconds asked);

 private:
  bool Calm() const { return sim_.now() > sim_.calm_since() + 2 * plan::kRunLease; }
  // How long the current process has had to notice an event at `since`.
  bool HadTimeSince(nanoseconds since, nanoseconds time) const;
  bool IsOwner(const std::string& process) const;
  void CheckTaken(const store::Record& before);
  void CheckLease(const states::TaskCall& call);
  void CheckDrain(const states::TaskCall& call);

  Simulation& sim_;
  const std::string migration_;
  std::map<std::string, std::string, std::less<>> known_as_;  // the owner that a process writes
  std::set<std::string> claimers_;                            // owners that have held the record
  std::string owner_;                                         // the record's current one
  nanoseconds claimed_at_{0};                                 // when it was last claimed
  nanoseconds leased_at_{0};                                  // when its lease was last set
  bool released_ = false;                                     // by its owner
  std::set<std::string> driving_;                             // processes that drive, by name
  int draining_ = 0;                                          // processes that may
  nanoseconds driven_changed_{0};          // when the first began or the last ended
  std::optional<nanoseconds> drained_at_;  // since when the run is to be drained
  std::string drained_;                    // the execution to drain
};

}  // namespace muster::sim
