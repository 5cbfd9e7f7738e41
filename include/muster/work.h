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

namespace muster {

// A migration shared by any number of workers, on any number of machines, that have nothing in
// common but a store: its shards are work items, which are leased, checkpointed, split, handed over
// and completed there.
//
//   auto store = OpenStore(url, env);
//   RunWorker(**store, pipeline, {.run = {.name = "orders"}}, observer, stop);
//
// docs/internals/work.md tells how it works.

// The migration that workers take part in. All of them must mean the same by a name: one that comes
// with another source, sink, transforms or selection is refused.
struct RunSpec {
  std::string name;         // up to 100 letters, digits, '-', '_' and '.'
  std::string source = {};  // what people know them by, without secrets
  std::string sink = {};
  std::string transforms = {};
  std::string selection = {};  // of the source's collections; empty: all
  // The store has gone back in time or is a new one: what the sink knows of this run counts and is
  // continued.
  bool new_incarnation = false;
};

// How items are held.
struct WorkTerms {
  milliseconds lease{60'000};
  milliseconds max_lease{3'600'000};        // attempts without progress double the lease up to this
  milliseconds checkpoint_interval{2'000};  // the most work that a crash repeats
  milliseconds max_hold{600'000};           // after which an item is handed over; 0: never
  milliseconds retry_delay{1'000};  // before the second attempt; doubles with each further one
  milliseconds idle_wait{1'000};    // how long a worker without work waits
  // Claims without progress before an item is quarantined. What waiting may cure counts apart, and
  // only if other items get through meanwhile.
  int max_attempts = 5;
};

class Lease;
struct ItemBody;

// A work item that this process holds: a range of a shard. Every change is a compare-and-swap that
// holds only while the lease is ours; after kLeaseLost the holder must stop at once, and whatever
// it tries changes nothing. An outcome that was unknown has been read again. Used by one thread.
class WorkItem {
 public:
  WorkItem(std::unique_ptr<Lease> lease, std::unique_ptr<ItemBody> body, Fence fence);
  WorkItem(WorkItem&&) noexcept;
  WorkItem& operator=(WorkItem&&) noexcept;
  ~WorkItem();

  const std::string& name() const { return name_; }  // index__shard__position
  const Partition& partition() const;  // as it was created; splits lower progress().end
  const Progress& progress() const;    // as of the last checkpoint
  const Fence& fence() const { return fence_; }
  int attempt() const;  // claims since the last progress, this one included
  const std::string& last_error() const;
  bool sink_kept_progress() const;  // a former holder found its progress in the sink

  // Until when it is surely ours, by this process's monotonic clock.
  MonoTime deadline() const;
  bool Expired() const;

  // Whether the store still says that it is ours.
  Result<bool> StillOurs() const;

  // Creates the successors that a former holder named but may not have created.
  Status FinishSuccessors();

  // Stores progress, which renews the lease. Only progress renews: a stuck holder loses its item.
  // `fraction` of the item is done, as far as that is known; `kept` says that the sink knows the
  // progress itself.
  Status Checkpoint(const Progress& progress, std::optional<double> fraction, bool kept);

  // Gives the part behind progress.end away, which was cut by Progress::CutAt: one write lowers the
  // end and thereby names the successor, the next creates it. The item goes on up to its new end.
  // `share` of the item went away, as far as that is known.
  Status Split(const Progress& progress, std::optional<double> share);

  // That nothing of it can be given away is stored with the next checkpoint, so that nobody asks.
  bool whole() const;
  void SetUnsplittable();

  // Gives away all that lies after progress.position. What is left is to be completed.
  Status HandOver(const Progress& progress);

  // Ends the item for good.
  Status Complete(const Progress& progress);

  // Gives it back, due at once; the attempt does not count.
  Status Release();

  // Gives it back because it follows others that are not done yet. Due later and later, so that
  // many that wait cost little.
  Status Postpone();

  // Gives it back after a failure, due after `delay`. With progress all is counted anew. Without,
  // and if the item is to `blame`, one that waiting may cure counts among failures(), any other as
  // an attempt.
  Status Fail(const Error& error, milliseconds delay, const std::optional<Progress>& progress,
              bool blame);

  int failures() const;

  // Whether another worker than this one has failed at it since the last progress.
  bool FailedElsewhere() const;

  // Takes it out of circulation, until a person retries it.
  Status Quarantine(const std::string& error);

 private:
  Status CreateSuccessors(std::optional<int64_t> documents);
  void ForgetFailures();

  std::string name_;
  std::unique_ptr<Lease> lease_;
  std::unique_ptr<ItemBody> body_;
  Fence fence_;
};

class Circuit;
class RunRoster;
class TargetCheck;

// One worker's view of a run: what it acquires, and what it has seen finished. Used by one thread.
// `store` and `env` must outlive it.
class WorkCoordinator {
 public:
  // Joins the run, or begins it if there is none. kConflict: the name is taken by another
  // migration. Those of one worker share a `circuit`; none: it has one of its own.
  static Result<std::unique_ptr<WorkCoordinator>> Join(Store& store, Env& env, const RunSpec& run,
                                                       const WorkTerms& terms,
                                                       const std::string& worker,
                                                       std::shared_ptr<Circuit> circuit = nullptr);
  ~WorkCoordinator();

  // Claims an item that is due, if there is one.
  Result<std::optional<WorkItem>> AcquireNext(std::stop_token stop);

  // Whether every item is done or quarantined, decided by reading each by its key, along their
  // successors. What was seen done is not read again.
  Result<bool> AllSettled();

  // After AllSettled said no: asks the holder of the item with the most left to give a part away.
  Status RequestSplit();

  // Whether somebody wishes for a part of the item. The wish is gone afterwards.
  Result<bool> TakeSplitRequest(const WorkItem& item);

  // Of an item that follows others: whether all of those are done or quarantined.
  Result<bool> IsItsTurn(const WorkItem& item);

  // Whether the run is still in the incarnation in which the item was acquired.
  Result<bool> IsCurrent(const WorkItem& item);

  const std::vector<std::string>& quarantined() const;  // as AllSettled last saw them
  const std::string& judged() const;  // the incarnation that AllSettled has last spoken of

  // After AllSettled said yes with nothing quarantined: notes the end of the run. False: the store
  // has taken something back meanwhile, or another incarnation has begun.
  Result<bool> End();

  // That the run writes to the targets that it began with.
  TargetCheck& targets() { return *targets_; }

  const std::string& run() const { return spec_.name; }
  const std::string& worker() const { return worker_; }
  const WorkTerms& terms() const { return terms_; }
  Store& store() { return store_; }
  Env& env() { return env_; }
  Circuit& circuit() { return *circuit_; }

 private:
  WorkCoordinator(Store& store, Env& env, RunSpec run, WorkTerms terms, std::string worker,
                  std::shared_ptr<Circuit> circuit);
  Result<std::unique_ptr<Lease>> ClaimItem(const std::stop_token& stop);
  Result<bool> WasSplitOff(const ItemBody& item);
  void CancelSplitRequest();

  Store& store_;
  Env& env_;
  const RunSpec spec_;
  const WorkTerms terms_;
  const std::string worker_;
  const std::shared_ptr<Circuit> circuit_;
  std::unique_ptr<RunRoster> roster_;
  std::unique_ptr<TargetCheck> targets_;
  std::optional<Record> split_request_;  // ours, that may still be unanswered
};

// Brings the sink into shape and creates the items of the run, once, by whichever worker comes
// first; a crash on the way is continued by the next. True: the run is ready; false: another worker
// is preparing it, and items that are there may be acquired already.
Result<bool> PrepareWork(WorkCoordinator& coordinator, Pipeline& pipeline,
                         const CollectionFilter& allowed, std::stop_token stop);

enum class ShardOutcome {
  kCompleted,
  kHandedOver,   // a successor goes on where this one ended
  kReleased,     // given back as it was found
  kFailed,       // will be tried again
  kQuarantined,  // will not
  kLost,         // the lease ended under the worker, or it could not learn what was stored
  kNothingDue,   // all items are held by others, or wait
  kAllDone,      // every item is done or quarantined
};
std::string_view ShardOutcomeName(ShardOutcome outcome);

// Told what becomes of items. Calls come from the thread that holds the item.
class WorkObserver {
 public:
  virtual ~WorkObserver() = default;
  // `from` is where the work goes on, as the sink and the store know it.
  virtual void Acquired(const WorkItem& /*item*/, const Progress& /*from*/) {}
  virtual void Advanced(const WorkItem& /*item*/, const Progress& /*progress*/) {}
  // A checkpoint or split has prolonged the lease.
  virtual void Renewed(const WorkItem& /*item*/) {}
  virtual void Split(const WorkItem& /*item*/, const Progress& /*progress*/) {}
  virtual void Ended(const WorkItem& /*item*/, ShardOutcome /*outcome*/, const Error* /*why*/) {}
};

// How a worker is stopped: `stop` lets the batch in flight end, `abort` does not wait for it.
struct StopRequests {
  std::stop_token stop = {};
  std::stop_token abort = {};
};

// Acquires an item and migrates it, as far as the lease, the terms and `stop` let it; whatever
// happens, the item is completed, handed over or given back when this returns, or its lease is
// lost. Fails when the worker cannot go on: with kIncompatible when store and sink contradict each
// other, of which the message says more; with a transient code when the store does not answer.
Result<ShardOutcome> MigrateNextShard(WorkCoordinator& coordinator, Pipeline& pipeline,
                                      const CollectionFilter& allowed, WorkObserver& observer,
                                      const StopRequests& stops);

struct WorkerOptions {
  RunSpec run;
  WorkTerms terms = {};
  std::string worker = {};  // tells people who holds an item; need not be unique
  int slots = 1;            // items at a time
  bool forever = false;     // stay when all is done
  CollectionFilter allowed = {};
};

struct WorkerReport {
  bool all_done = false;                      // false: stopped before
  std::vector<std::string> quarantined = {};  // items of the run that nobody works on any more
};

// Prepares the run if that is still to be done, then migrates one shard after another, until every
// item is done or quarantined or a stop is requested, upon which what is held is handed over within
// a second. A store, source or sink that does not answer is waited for as long. `observer` is
// called from several threads.
Result<WorkerReport> RunWorker(Store& store, Pipeline& pipeline, const WorkerOptions& options,
                               WorkObserver& observer, std::stop_token stop);

// For people who look at a run. What they read may be a moment old.

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
  // Of one that is unreadable, only the key, the name, `due` and the error are known.
  enum class State { kOpen, kDone, kQuarantined, kUnreadable };
  std::string key = {};  // RUN/name, or RUN/ and a hash where that is too long
  std::string name = {};
  State state = State::kOpen;
  std::string holder = {};                  // the last; empty: nobody
  std::optional<milliseconds> due_in = {};  // the lease's end or the next attempt; none: never
  std::optional<WallTime> due = {};         // the same, by the store's clock
  int64_t epoch = 0;
  int attempt = 0;
  Partition partition = {};
  Progress progress = {};
  std::optional<double> fraction = {};  // of it that is done
  double docs_per_second = 0;           // of the present holder
  // What the last holder read within the last half minute, and what part of that it took, so that
  // a run of many short items has a rate as well.
  double recent_documents = 0;
  milliseconds recent{0};
  std::vector<std::string> successors = {};  // names
  std::string error = {};                    // the last
};

// Records that are not ours, or damaged, are listed as unreadable beside the others.
Result<std::vector<RunInfo>> ListRuns(Store& store);
// kCorrupt: its record cannot be read.
Result<RunInfo> ReadRun(Store& store, const std::string& run);

// Items of a run in the order of their keys, from after `after` on, up to `limit`; those that are
// damaged are listed as unreadable.
Result<std::vector<ItemInfo>> ListItems(Store& store, const std::string& run,
                                        const std::string& after, int limit);
Result<ItemInfo> ReadItem(Store& store, const std::string& run, const std::string& name);

// Lets a quarantined item be tried again. kConflict: it is not.
Status RetryItem(Store& store, const std::string& run, const std::string& name);

// Takes an item from its holder, which stops when it notices, or lets one that is to be tried later
// be tried now; it is due at once. kConflict: no worker holds it, and it is due already.
Status ReleaseItem(Store& store, const std::string& run, const std::string& name);

}  // namespace muster
