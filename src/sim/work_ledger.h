#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/work_leases.h"
#include "sim/work_scene.h"

namespace muster::sim {

// The records of a run as last seen, to check every change; and the moments at which a fault does
// most harm.
class WorkLedger {
 public:
  explicit WorkLedger(WorkScene& scene) : leases(scene), scene_(scene), sim_(scene.sim) {}

  StoreObserver StoreEvents();
  SinkObserver SinkEvents();

  // An item is no longer held.
  void Settled(Env& env, const work::WorkItem& item, work::ShardOutcome outcome, const Error* why);

  // Quarantined because no holder survived.
  bool IsUnlucky(const std::string& key) const { return unlucky_.contains(key); }

  // Whether the last holder of an item disappeared without progress: it may have killed it.
  bool IsSuspect(const std::string& key) { return known_[key].suspect; }

  WorkLeases leases;

 private:
  struct Known {
    int64_t highest_epoch = 0;
    int claims = 0;
    int claims_without_progress = 0;
    // Consecutive holders lost to a fault, or to a poison item beside it: they neither made
    // progress nor reported why.
    int lost_holders = 0;
    int lost_to_poison = 0;
    int disturbances_before_claim = 0;
    int poison_before_claim = 0;
    int64_t read = 0;
    bool suspect = false;
  };

  void Sends(const store::Change& change);
  void CrashesBeforeCreating(const std::string& key);
  void PausesBeforeASplit(const store::Change& change);
  void PausesBeforeAnEnd(const store::Change& change);
  void Hang(nanoseconds time);

  void Changed(const store::Change& change, const std::optional<store::Record>& before,
               const std::optional<store::Record>& after, bool late);
  void Conflicts(const store::Change& change, const store::Record& before, bool late);
  void Applied(const store::Change& change, const store::Record& before,
               const store::Record& after);
  void CheckProgress(const store::Change& change, const store::Record& after, Known& known);
  void CheckQuarantine(const store::Record& after, const Known& known);
  void CheckRest(const store::Change& change, const work::ItemBody& was, const work::ItemBody& is,
                 const store::Record& after);
  void CheckEnd(const store::Record& end);
  void Created(const store::Record& record);

  void Claimed(const store::ClaimRequest& request, const std::vector<store::Record>& before,
               const std::vector<store::Record>& taken, bool late);
  void CheckGrant(const store::ClaimRequest& request, const store::Record& before,
                  const store::Record& taken, bool late);
  void CountLostHolder(const store::Record& before, bool late, Known& known);
  void CheckOneClaim(const store::ClaimRequest& request, const store::Record& taken);

  void Reads(const std::optional<store::Record>& stored);
  void Sinks(const pipeline::Fence& fence, bool late, bool refused, bool empty);
  void WentBack();

  WorkScene& scene_;
  Simulation& sim_;
  std::map<std::string, Known> known_;
  std::set<std::string> unlucky_;
  std::map<std::string, std::vector<std::pair<std::string, int64_t>>> granted_;  // by claim_id
  std::map<std::string, std::pair<int64_t, std::string>> named_;  // successors: epoch, parent
  std::set<std::string> completing_;
};

}  // namespace muster::sim
