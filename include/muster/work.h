#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "muster/env.h"
#include "muster/migrate.h"
#include "muster/pipeline.h"
#include "muster/result.h"
#include "muster/store.h"

namespace muster::work {

// One engine copies documents. RunWorker takes part in a migration shared by any number of workers,
// on any number of machines, that only share a store: its shards are work items, which are leased,
// checkpointed, split, handed over and completed there. MigrateAll runs the same engine in one
// process, on a store of its own.
//
//   auto store = OpenStore(url, env);
//   RunWorker(**store, pipeline, {.run = {.name = "orders"}}, observer, stop);
//
//   MigrationObserver nothing;
//   MigrateAll(pipeline, {.shard_concurrency = 4}, nothing, stop);
//
// See docs/internals/work.md.

// How many documents of a run may fail; one more stops it, for all its workers. A number, or a
// share of the documents read, of which there are taken to be at least 1,000.
struct MUSTER_EXPORT FailureLimit {
  std::optional<int64_t> documents = {};  // none: by share
  double percent = 50;                    // 100: no limit

  // "20" or "2.5%". kInvalid: neither.
  static Result<FailureLimit> Parse(const std::string& text);
  std::string ToString() const;

  bool IsExceeded(const pipeline::Counts& counts) const;
  bool operator==(const FailureLimit&) const = default;
};

// Documents that failed for the same reason.
struct FailureReason {
  std::string reason;  // the message without numbers, ids and texts; "other": any further ones
  int64_t count = 0;
  std::string id = {};       // of one of these documents; empty: none
  std::string message = {};  // why that one failed
};

// The migration that workers take part in. A worker with the same name but another source, sink,
// transforms or selection is rejected.
struct RunSpec {
  std::string name;         // up to 100 letters, digits, '-', '_' and '.'
  std::string source = {};  // for display, without secrets
  std::string sink = {};
  std::string transforms = {};
  std::string selection = {};      // of the source's collections; empty: all
  std::string former_source = {};  // as earlier versions recorded it; empty: the same
  std::string former_sink = {};
  // The store went back in time or is a new one: continue from what the sink has of this run.
  bool new_incarnation = false;
  // For the whole run; the last one given counts. None: as before, at first the default. A run that
  // was stopped goes on if this allows for what has failed, redriven documents excepted.
  std::optional<FailureLimit> max_failures = {};
  // Only this process has the store, and nothing is ever resumed: sinks keep no state of the run
  // once it ends, and a stop leaves its items incomplete.
  bool alone = false;
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
  // The first failure of an item ends the worker with its error: nothing is retried.
  bool fail_fast = false;
};

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

class WorkObserver;

// Prepares the run if needed, then migrates shard after shard until every item is done or
// quarantined or a stop is requested; then held items are handed over within a second. Waits for an
// unresponsive store, source or sink. `observer` is called from several threads.
//
// kIncompatible: an operator has to decide, as the message explains. Store and sink contradict each
// other; or too many documents have failed (RunInfo::stopped). Then no worker begins a batch once
// it has noticed, at its next checkpoint or item, held items are handed over, and the run is not
// finished.
MUSTER_EXPORT Result<WorkerReport> RunWorker(store::Store& store, pipeline::Pipeline& pipeline,
                                             const WorkerOptions& options, WorkObserver& observer,
                                             std::stop_token stop);

// A work item held by this process, a range of a shard, as an observer sees it.
class WorkItem {
 public:
  virtual ~WorkItem() = default;

  virtual const std::string& name() const = 0;  // index__shard__position
  // As created; splits lower progress().end.
  virtual const pipeline::Partition& partition() const = 0;
  virtual const pipeline::Progress& progress() const = 0;  // as of the last checkpoint
  virtual const pipeline::Fence& fence() const = 0;
  virtual int attempt() const = 0;  // claims since the last progress, including this one

  // Until when it is certainly ours, by this process's monotonic clock.
  virtual MonoTime deadline() const = 0;
};

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
MUSTER_EXPORT std::string_view ShardOutcomeName(ShardOutcome outcome);

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
  // What the worker waits for, and why if that is known, as long as none of its items makes
  // progress; empty: nothing. Calls that do not return are noticed after a few seconds.
  virtual void Waits(const std::string& /*what*/) {}
};

// Notified by MigrateAll; calls come from several threads, one at a time.
class MigrationObserver {
 public:
  virtual ~MigrationObserver() = default;
  virtual void Prepared(const std::vector<pipeline::TargetChange>& /*changes*/) {}
  virtual void CollectionStarted(const std::string& /*collection*/,
                                 const std::vector<pipeline::Partition>& /*partitions*/) {}
  virtual void Advanced(const pipeline::Partition& /*partition*/,
                        const pipeline::Progress& /*progress*/) {}
  virtual void CollectionEnded(const std::string& /*collection*/,
                               const pipeline::Counts& /*counts*/) {}
  // What it waits for, and why, once that takes a few seconds, and repeatedly while it lasts;
  // empty: nothing any more.
  virtual void Waits(const std::string& /*what*/) {}
  // Once, before the migration ends in any way: why documents have failed, if any have.
  virtual void Failed(const std::vector<FailureReason>& /*reasons*/) {}
};

struct MigrateAllOptions {
  int shard_concurrency = 1;
  pipeline::CollectionFilter allowed = {};
  FailureLimit max_failures = {};
};

// Standalone: one process, nothing to resume. Collections run one after another, the shards of a
// collection `shard_concurrency` at a time. Ends at the first error; with kCancelled, in good
// order, when stopped; with kIncompatible when too many documents have failed.
MUSTER_EXPORT Result<pipeline::Counts> MigrateAll(pipeline::Pipeline& pipeline,
                                                  const MigrateAllOptions& options,
                                                  MigrationObserver& observer,
                                                  std::stop_token stop);

// For display. What is read may be slightly out of date.

struct RunInfo {
  // kRunning: a worker holds an item. kWaiting: none does. kStopped: by its failures.
  enum class State { kPreparing, kRunning, kWaiting, kStopped, kFinished, kRemoving, kUnreadable };
  std::string name = {};
  std::string source = {};
  std::string sink = {};
  std::string incarnation = {};
  bool ready = false;     // all items have been created
  bool finished = false;  // all items are done
  bool removing = false;  // DeleteRun or ResetRun has begun and not ended
  FailureLimit max_failures = {};
  // Why no worker continues it: too many documents failed. Empty: it goes on.
  std::string stopped = {};
  WallTime created = {};
  std::string unreadable = {};  // why its record cannot be read; then only the name is known
};

// Documents read within the last half minute, and how much of that time it took, so that a run of
// many short items has a rate too.
struct MUSTER_EXPORT RecentRate {
  double documents = 0;
  milliseconds span{0};

  // Adds another item or run; their times overlap.
  RecentRate& operator+=(const RecentRate& other);
  double PerSecond() const;
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
  pipeline::Progress progress = {};     // of the migration itself
  pipeline::Counts counts = {};         // of that, with redriven documents by their new outcome
  std::optional<double> fraction = {};  // of it that is done
  double docs_per_second = 0;           // of the current holder
  RecentRate recent = {};               // of the last holder
  std::vector<std::string> successors = {};  // names
  std::string error = {};                    // the last
  // Of its failed documents, most frequent first, at most 20 and "other". Which of several reasons
  // redrives have settled is not known: they are listed as they were until no document is failed.
  std::vector<FailureReason> reasons = {};
};

// Totals over a run's items.
struct RunTotals {
  int64_t items = 0;
  int64_t done = 0;
  int64_t held = 0;
  int64_t waiting = 0;
  int64_t quarantined = 0;
  int64_t unreadable = 0;
  pipeline::Counts counts = {};  // with redriven documents by their new outcome
  double docs_per_second = 0;    // recent; 0 once nothing is left to do
  // Estimated number of documents in the run: started items extrapolate from their progress, and
  // the others are assumed to be as large. None: nothing started.
  std::optional<double> documents = {};
  std::optional<milliseconds> longest = {};  // that a holder still needs for its item
  std::string last_error = {};               // of an item without a holder
  std::vector<FailureReason> reasons = {};   // as in ItemInfo
};

// Foreign or damaged records are listed as unreadable.
MUSTER_EXPORT Result<std::vector<RunInfo>> ListRuns(store::Store& store);
// kNotFound: there is no such run. kCorrupt: its record cannot be read.
MUSTER_EXPORT Result<RunInfo> ReadRun(store::Store& store, const std::string& run);
MUSTER_EXPORT Result<RunTotals> ReadTotals(store::Store& store, const std::string& run);

// Up to `limit` items of a run in key order, after `after`; damaged ones are listed as unreadable.
MUSTER_EXPORT Result<std::vector<ItemInfo>> ListItems(store::Store& store, const std::string& run,
                                                      const std::string& after, int limit);
// Calls `each` for every item of a run, in key order, and returns the totals.
MUSTER_EXPORT Result<RunTotals> EachItem(store::Store& store, const std::string& run,
                                         const std::function<void(const ItemInfo& item)>& each);
// An item by its name (WorkItem::name). kNotFound, here and below: the run has no such item.
MUSTER_EXPORT Result<ItemInfo> ReadItem(store::Store& store, const std::string& run,
                                        const std::string& name);

// Whether RetryItem takes it: it is quarantined, or has failed and waits for its next attempt.
MUSTER_EXPORT bool MayRetry(const ItemInfo& item);

// Whether it has a holder right now.
MUSTER_EXPORT bool IsHeld(const ItemInfo& item);

// Names are in lower case: "open", "running".
MUSTER_EXPORT std::string_view ItemStateName(ItemInfo::State state);
MUSTER_EXPORT RunInfo::State RunStateOf(const RunInfo& run, const RunTotals& totals);
MUSTER_EXPORT std::string_view RunStateName(RunInfo::State state);

// Why the item has no holder, or who holds it; empty when done.
MUSTER_EXPORT std::string WhyItem(const ItemInfo& item);
// Why no worker is active, and what to do; empty if one is, or if nothing is left to do.
MUSTER_EXPORT std::string WhyRun(const RunInfo& run, const RunTotals& totals);

// Until the item is done, at its holder's rate, or the whole run, at this one. None: unknown.
MUSTER_EXPORT std::optional<milliseconds> TimeLeft(const ItemInfo& item);
MUSTER_EXPORT std::optional<milliseconds> TimeLeft(const RunTotals& totals, double docs_per_second);

// Makes an item due at once if MayRetry. kConflict: it may not.
MUSTER_EXPORT Status RetryItem(store::Store& store, const std::string& run,
                               const std::string& name);

// Takes an item from its holder, which stops when it notices, or makes a waiting one due at once.
// kConflict: no worker holds it, and it is already due.
MUSTER_EXPORT Status ReleaseItem(store::Store& store, const std::string& run,
                                 const std::string& name);

struct RunRemoval {
  int64_t records = 0;           // removed by this call
  std::string sink = {};         // which keeps what was written
  pipeline::Counts counts = {};  // of the items that were still there
  // Workers that held items of it and, if their processes live, may write until their next
  // checkpoint. Only with `force`.
  std::vector<std::string> holders = {};
};

// Removes everything that the store has of a run; the target and files of dead letters stay as they
// are. The run is marked first and its own record goes last, so after a crash at any point no
// worker takes it for a finished or a new one, and the next call continues.
//
// kConflict: a worker or a redrive holds something of it. With `force` it is removed all the same;
// the holder loses it at its next checkpoint. kNotFound: there is no such run.
MUSTER_EXPORT Result<RunRemoval> DeleteRun(store::Store& store, const std::string& run, bool force);

// The same, but the run stays and starts over with the next worker, as another incarnation; a
// worker that is running notices, and takes part. Unlike with RunSpec::new_incarnation, that does
// not continue from what the sink has: OpenSearch replaces documents by their ids; sinks that keep
// progress refuse to mix both, as their error explains.
MUSTER_EXPORT Result<RunRemoval> ResetRun(store::Store& store, const std::string& run, bool force,
                                          Env& env);

struct RedriveRequest {
  std::string letters;               // the file
  std::string sink;                  // a URL
  std::string transforms = {};       // YAML; empty: none given
  std::string transforms_file = {};  // for messages
  // Opens the store, to look up the letters' runs; called only if letters name one. The store must
  // outlive the redrive.
  std::function<Result<store::Store*>()> store = {};
  std::string worker = "redrive";  // this process, for people
  bool all = false;                // include letters settled by an earlier redrive
  bool merge = false;              // ids differ: letters of several targets may go to one place
};

struct RedriveReport {
  pipeline::Counts counts = {};
  pipeline::BadLines bad_lines = {};
  int64_t earlier = 0;                     // letters settled by an earlier redrive
  int64_t former = 0;                      // letters from before a run was reset: left out
  std::vector<std::string> recorded = {};  // runs whose counts are updated
  std::string record = {};                 // the file that has what is settled of other runs
  std::vector<std::string> notes = {};     // for the user

  // Every line of the file is settled.
  bool IsAll() const { return counts.failed == 0 && bad_lines.count == 0; }
};

// Writes a file's dead letters into a sink, each into the collection it was meant for. A document
// that the sink refused is written as is, since it was already transformed. One that failed earlier
// goes through the transforms, which may have been corrected. Documents that fail again go to the
// file named by AgainPathOf.
//
// Letters from a version that did not record the target are written as is, into the collection
// given by the transforms' renames.
//
// For letters of a run that is in the store and targets this sink, it is a step of the run: settled
// letters are recorded, the run's counts are updated, and no later redrive takes them again, from
// whichever file. Documents that failed again may be taken from either file. One redrive of a run
// at a time: another waits for it a little, then fails with kConflict. After a crash the next
// redrive continues behind what a sink with a fence has committed; any other sink must accept the
// same documents again. With `all`, rows of settled letters are replaced by key.
//
// Letters of other runs, as of a standalone migration, are recorded likewise in a file beside them,
// unless the sink is files. If another copy of them was redriven, a sink with a fence refuses this.
//
// Letters from before such a run was reset, or deleted and started again, are left out, also with
// `all`: it migrates their documents again, and does not count them.
//
// A sink with per-document versions gets them in the order of the letters' run, which letters
// record: a document that the run wrote later, or a later migration, is left alone and counts as
// skipped. Letters of versions that did not record it have the order of their run in the store, or
// none.
//
// kIncompatible: the sink has redriven letters that the store, or that file, does not know of.
//
// kConflict, and nothing is written: letters for several targets would go to one place, unlike in
// their run, where documents with the same id replace each other.
//
// kInvalid, and nothing is written: letters need transforms and none are given; or they do not name
// their target, no renames are given, and the sink has no collection of the source's name.
MUSTER_EXPORT Result<RedriveReport> RedriveDeadLetters(const RedriveRequest& request, Env& env,
                                                       std::stop_token stop);

// The file for those of `path` that fail again.
MUSTER_EXPORT std::string AgainPathOf(const std::string& path);

}  // namespace muster::work
