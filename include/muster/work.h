#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/migrate.h"
#include "muster/pipeline.h"
#include "muster/result.h"
#include "muster/store.h"

namespace muster::store {
class Lease;
}  // namespace muster::store

namespace muster::work {

// A migration shared by any number of workers, on any number of machines, that only share a store:
// its shards are work items, which are leased, checkpointed, split, handed over and completed
// there.
//
//   auto store = OpenStore(url, env);
//   RunWorker(**store, pipeline, {.run = {.name = "orders"}}, observer, stop);
//
// See docs/internals/work.md.

// The migration that workers take part in. A worker with the same name but another source, sink,
// transforms or selection is rejected.
struct RunSpec {
  std::string name;         // up to 100 letters, digits, '-', '_' and '.'
  std::string source = {};  // for display, without secrets
  std::string sink = {};
  std::string transforms = {};
  std::string selection = {};  // of the source's collections; empty: all
  // The store went back in time or is a new one: continue from what the sink has of this run.
  bool new_incarnation = false;
};

// Lease and retry settings.
struct WorkTerms {
  milliseconds lease{60'000};
  milliseconds max_lease{3'600'000};        // attempts without progress double the lease up to this
  milliseconds checkpoint_interval{2'000};  // bounds the work repeated after a crash
  milliseconds max_hold{600'000};           // after which an item is handed over; 0: never
  milliseconds retry_delay{1'000};  // before the second attempt; doubles with each further one
  milliseconds idle_wait{1'000};    // polling interval of an idle worker
  // Claims without progress before an item is quarantined. Transient failures are counted
  // separately, and only while other items succeed.
  int max_attempts = 5;
};

struct ItemBody;

// A work item held by this process: a range of a shard. Every change is a compare-and-swap that
// succeeds only while the lease is ours; after kLeaseLost the holder must stop at once, and nothing
// it tries has an effect. Unknown outcomes are resolved inside. Used by one thread.
class WorkItem {
 public:
  WorkItem(std::unique_ptr<store::Lease> lease, std::unique_ptr<ItemBody> body,
           pipeline::Fence fence);
  WorkItem(WorkItem&&) noexcept;
  WorkItem& operator=(WorkItem&&) noexcept;
  ~WorkItem();

  const std::string& name() const { return name_; }  // index__shard__position
  const pipeline::Partition& partition() const;      // as created; splits lower progress().end
  const pipeline::Progress& progress() const;        // as of the last checkpoint
  const pipeline::Fence& fence() const { return fence_; }
  int attempt() const;  // claims since the last progress, including this one
  const std::string& last_error() const;
  bool sink_kept_progress() const;  // a former holder found its progress in the sink

  // Until when it is certainly ours, by this process's monotonic clock.
  MonoTime deadline() const;
  bool Expired() const;

  // Whether it is still ours, according to the store.
  Result<bool> StillOurs() const;

  // Creates successors that a former holder named but may not have created.
  Status FinishSuccessors();

  // Stores progress, which renews the lease. Only progress renews: a stuck holder loses its item.
  // `fraction` is the finished part, if known; `kept` says that the sink stores the progress
  // itself.
  Status Checkpoint(const pipeline::Progress& progress, std::optional<double> fraction, bool kept);

  // Splits off the part after progress.end, which was lowered by Progress::CutAt: one write lowers
  // the end and thereby names the successor, the next creates it. The item continues up to its new
  // end. `share` is the part split off, if known.
  Status Split(const pipeline::Progress& progress, std::optional<double> share);

  // Marks the item unsplittable; persisted with the next checkpoint so idle workers stop asking.
  bool whole() const;
  void SetUnsplittable();

  // Hands over everything after progress.position to a successor. The rest must be completed.
  Status HandOver(const pipeline::Progress& progress);

  // Completes the item.
  Status Complete(const pipeline::Progress& progress);

  // Releases it, due at once; the attempt does not count.
  Status Release();

  // Releases it because it follows unfinished items. The delay grows, so that many waiting items
  // cost little.
  Status Postpone();

  // Releases it after a failure, due after `delay`. With progress all counters are reset. Without,
  // and if the item is to `blame`, a transient failure counts among failures(), any other as an
  // attempt.
  Status Fail(const Error& error, milliseconds delay,
              const std::optional<pipeline::Progress>& progress, bool blame);

  int failures() const;

  // Whether another worker has failed at it since the last progress.
  bool FailedElsewhere() const;

  // Quarantines it until an operator retries it.
  Status Quarantine(const std::string& error);

 private:
  Status CreateSuccessors(std::optional<int64_t> documents);
  void ForgetFailures();

  std::string name_;
  std::unique_ptr<store::Lease> lease_;
  std::unique_ptr<ItemBody> body_;
  pipeline::Fence fence_;
};

class Circuit;
class RunRoster;
class TargetCheck;

// One worker's view of a run: acquires items and tracks which are finished. Used by one thread.
// `store` and `env` must outlive it.
class WorkCoordinator {
 public:
  // Joins the run, or starts it. kConflict: the name belongs to another migration. The coordinators
  // of one worker share a `circuit`; none: creates its own.
  static Result<std::unique_ptr<WorkCoordinator>> Join(store::Store& store, Env& env,
                                                       const RunSpec& run, const WorkTerms& terms,
                                                       const std::string& worker,
                                                       std::shared_ptr<Circuit> circuit = nullptr);
  ~WorkCoordinator();

  // Claims a due item, if any.
  Result<std::optional<WorkItem>> AcquireNext(std::stop_token stop);

  // Whether every item is done or quarantined, decided by reading each by key, along their
  // successors. Finished items are not read again.
  Result<bool> AllSettled();

  // After AllSettled returned false: asks the holder of the item with the most work left to split
  // off a part.
  Status RequestSplit();

  // Whether a part of the item was requested. Removes the request.
  Result<bool> TakeSplitRequest(const WorkItem& item);

  // For a following item: whether all items it follows are done or quarantined.
  Result<bool> IsItsTurn(const WorkItem& item);

  // Whether the run is still in the incarnation in which the item was acquired.
  Result<bool> IsCurrent(const WorkItem& item);

  const std::vector<std::string>& quarantined() const;  // as AllSettled last saw them
  const std::string& judged() const;                    // the incarnation AllSettled last judged

  // After AllSettled returned true with nothing quarantined: records the end of the run. False: the
  // store has lost commits meanwhile, or another incarnation has begun.
  Result<bool> End();

  // Checks that the run keeps writing to its original targets.
  TargetCheck& targets() { return *targets_; }

  const std::string& run() const { return spec_.name; }
  const std::string& worker() const { return worker_; }
  const WorkTerms& terms() const { return terms_; }
  store::Store& store() { return store_; }
  Env& env() { return env_; }
  Circuit& circuit() { return *circuit_; }

 private:
  WorkCoordinator(store::Store& store, Env& env, RunSpec run, WorkTerms terms, std::string worker,
                  std::shared_ptr<Circuit> circuit);
  Result<std::unique_ptr<store::Lease>> ClaimItem(const std::stop_token& stop);
  Result<bool> WasSplitOff(const ItemBody& item);
  void CancelSplitRequest();

  store::Store& store_;
  Env& env_;
  const RunSpec spec_;
  const WorkTerms terms_;
  const std::string worker_;
  const std::shared_ptr<Circuit> circuit_;
  std::unique_ptr<RunRoster> roster_;
  std::unique_ptr<TargetCheck> targets_;
  std::optional<store::Record> split_request_;  // ours, possibly unanswered
};

// Prepares the sink and creates the items of the run, once, by whichever worker comes first; after
// a crash the next continues. True: the run is ready; false: another worker is preparing it, and
// existing items may already be acquired.
Result<bool> PrepareWork(WorkCoordinator& coordinator, pipeline::Pipeline& pipeline,
                         const pipeline::CollectionFilter& allowed, std::stop_token stop);

enum class ShardOutcome {
  kCompleted,
  kHandedOver,   // a successor continues where this one ended
  kReleased,     // released unchanged
  kFailed,       // will be retried
  kQuarantined,  // will not be retried
  kLost,         // the lease expired, or the stored state could not be determined
  kNothingDue,   // all items are held by others, or waiting
  kAllDone,      // every item is done or quarantined
};
std::string_view ShardOutcomeName(ShardOutcome outcome);

// Notified of what happens to items, on the thread that holds the item.
class WorkObserver {
 public:
  virtual ~WorkObserver() = default;
  // `from` is where work resumes, according to sink and store.
  virtual void Acquired(const WorkItem& /*item*/, const pipeline::Progress& /*from*/) {}
  virtual void Advanced(const WorkItem& /*item*/, const pipeline::Progress& /*progress*/) {}
  // A checkpoint or split has extended the lease.
  virtual void Renewed(const WorkItem& /*item*/) {}
  virtual void Split(const WorkItem& /*item*/, const pipeline::Progress& /*progress*/) {}
  virtual void Ended(const WorkItem& /*item*/, ShardOutcome /*outcome*/, const Error* /*why*/) {}
};

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

struct WorkerOptions {
  RunSpec run;
  WorkTerms terms = {};
  std::string worker = {};  // names the holder for display; need not be unique
  int slots = 1;            // items at a time
  bool forever = false;     // keep running when all is done
  pipeline::CollectionFilter allowed = {};
};

struct WorkerReport {
  bool all_done = false;                      // false: stopped before
  std::vector<std::string> quarantined = {};  // items of the run
};

// Prepares the run if needed, then migrates shard after shard until every item is done or
// quarantined or a stop is requested; then held items are handed over within a second. Waits for an
// unresponsive store, source or sink. `observer` is called from several threads.
Result<WorkerReport> RunWorker(store::Store& store, pipeline::Pipeline& pipeline,
                               const WorkerOptions& options, WorkObserver& observer,
                               std::stop_token stop);

// For display. What is read may be slightly out of date.

struct RunInfo {
  std::string name = {};
  std::string source = {};
  std::string sink = {};
  std::string incarnation = {};
  bool ready = false;     // all items have been created
  bool finished = false;  // all items are done
  WallTime created = {};
  std::string unreadable = {};  // why its record cannot be read; then only the name is known
};

struct ItemInfo {
  // If unreadable, only the key, the name, `due` and the error are known.
  enum class State { kOpen, kDone, kQuarantined, kUnreadable };
  std::string key = {};  // RUN/name, or RUN/ and a hash if that is too long
  std::string name = {};
  State state = State::kOpen;
  std::string holder = {};                  // the last; empty: none
  std::optional<milliseconds> due_in = {};  // the lease's end or the next attempt; none: never
  std::optional<WallTime> due = {};         // the same, by the store's clock
  int64_t epoch = 0;
  int attempt = 0;
  pipeline::Partition partition = {};
  pipeline::Progress progress = {};
  std::optional<double> fraction = {};  // of it that is done
  double docs_per_second = 0;           // of the current holder
  // What the last holder read within the last half minute, and how much of that time it took, so
  // that a run of many short items has a rate too.
  double recent_documents = 0;
  milliseconds recent{0};
  std::vector<std::string> successors = {};  // names
  std::string error = {};                    // the last
};

// Foreign or damaged records are listed as unreadable.
Result<std::vector<RunInfo>> ListRuns(store::Store& store);
// kCorrupt: its record cannot be read.
Result<RunInfo> ReadRun(store::Store& store, const std::string& run);

// Up to `limit` items of a run in key order, after `after`; damaged ones are listed as unreadable.
Result<std::vector<ItemInfo>> ListItems(store::Store& store, const std::string& run,
                                        const std::string& after, int limit);
Result<ItemInfo> ReadItem(store::Store& store, const std::string& run, const std::string& name);

// Makes a quarantined item due again. kConflict: it is not quarantined.
Status RetryItem(store::Store& store, const std::string& run, const std::string& name);

// Takes an item from its holder, which stops when it notices, or makes a waiting one due at once.
// kConflict: no worker holds it, and it is already due.
Status ReleaseItem(store::Store& store, const std::string& run, const std::string& name);

}  // namespace muster::work
