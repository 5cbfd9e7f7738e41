#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "muster/store.h"
#include "muster/work.h"
#include "work/circuit.h"
#include "work/error_budget.h"
#include "work/leased_item.h"
#include "work/suspect_gate.h"

namespace muster::work {

class RunRoster;
class TargetCheck;

// What the slots of one worker share.
struct WorkerState {
  WorkerState(Env& env, const WorkTerms& terms)
      : circuit(env, terms.retry_delay), gate(env, terms.lease) {}

  Circuit circuit;
  SuspectGate gate;
  FailureEstimate failures;
  std::atomic<bool> finishing = false;  // a slot finishes the run
};

// One slot's view of a run: acquires items and tracks which are finished. Used by one thread.
// `store` and `env` must outlive it.
class WorkCoordinator {
 public:
  // Joins the run, or starts it. kConflict: the name belongs to another migration. The coordinators
  // of one worker share its `state`; none: creates its own.
  static Result<std::unique_ptr<WorkCoordinator>> Join(
      store::Store& store, Env& env, const RunSpec& run, const WorkTerms& terms,
      const std::string& worker, std::shared_ptr<WorkerState> state = nullptr);
  ~WorkCoordinator();

  // Claims a due item, if any.
  Result<std::optional<LeasedItem>> AcquireNext(std::stop_token stop);

  // Whether every item is done or quarantined, decided by reading each by key, along their
  // successors. Finished items are not read again.
  Result<bool> AllSettled();

  // After AllSettled returned false: asks the holder of the item with the most work left to split
  // off a part.
  Status RequestSplit();

  // After AllSettled returned false: the item of others whose lease ends first, and when. Empty:
  // others hold none, or this worker holds items too.
  std::string HeldByOthers() const;

  // After AllSettled returned false: makes a following item due that waits although its turn has
  // come. False: no item waits like that.
  Result<bool> WakeFollower();

  // Whether a part of the item was requested. Removes the request.
  Result<bool> TakeSplitRequest(const WorkItem& item);

  // Whether all items that this partition follows are done or quarantined.
  Result<bool> IsItsTurn(const pipeline::Partition& follower);

  // Whether the run is still in the incarnation in which the item was acquired.
  Result<bool> IsCurrent(const WorkItem& item);

  const std::vector<std::string>& quarantined() const;  // as AllSettled last saw them
  const std::string& judged() const;                    // the incarnation AllSettled last judged

  // After AllSettled returned true with nothing quarantined: records the end of the run. False: the
  // store has lost commits meanwhile, or another incarnation has begun.
  Result<bool> End();

  // Stops the run if too many documents fail.
  ErrorBudget& budget() { return budget_; }

  // Checks that the run keeps writing to its original targets.
  TargetCheck& targets() { return *targets_; }

  const std::string& run() const { return spec_.name; }
  const std::string& worker() const { return worker_; }
  bool alone() const { return spec_.alone; }
  const WorkTerms& terms() const { return terms_; }
  store::Store& store() { return store_; }
  Env& env() { return env_; }
  Circuit& circuit() { return state_->circuit; }
  SuspectGate::Pass& pass() { return pass_; }
  std::atomic<bool>& finishing() { return state_->finishing; }

 private:
  WorkCoordinator(store::Store& store, Env& env, RunSpec run, WorkTerms terms, std::string worker,
                  std::shared_ptr<WorkerState> state);
  Result<std::optional<store::Lease>> ClaimItem(const std::string& holder,
                                                const std::stop_token& stop);
  Result<bool> WasSplitOff(const ItemBody& item);
  void CancelSplitRequest();

  store::Store& store_;
  Env& env_;
  const RunSpec spec_;
  const WorkTerms terms_;
  const std::string worker_;
  const std::shared_ptr<WorkerState> state_;
  SuspectGate::Pass pass_;
  std::unique_ptr<RunRoster> roster_;
  std::unique_ptr<TargetCheck> targets_;
  ErrorBudget budget_;
  std::optional<store::Record> split_request_;  // ours, possibly unanswered
};

// Prepares the sink and creates the items of the run, once, by the first worker; after a crash the
// next continues. True: the run is ready; false: another worker is preparing it, and existing items
// may already be acquired.
Result<bool> PrepareWork(WorkCoordinator& coordinator, pipeline::Pipeline& pipeline,
                         const pipeline::CollectionFilter& allowed, std::stop_token stop);

// How a worker is stopped: `stop` lets the batch in flight finish, `abort` does not wait for it.
struct StopRequests {
  std::stop_token stop = {};
  std::stop_token abort = {};
};

// Acquires an item and migrates it, as far as the lease, the terms and `stop` allow; in any case
// the item is completed, handed over or released on return, or its lease is lost. Fails if the
// worker cannot continue: with kIncompatible if store and sink contradict each other, as the
// message explains; with a transient code if the store does not respond.
Result<ShardOutcome> MigrateNextShard(WorkCoordinator& coordinator, pipeline::Pipeline& pipeline,
                                      const pipeline::CollectionFilter& allowed,
                                      WorkObserver& observer, const StopRequests& stops);

}  // namespace muster::work
