#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/interrupt.h"
#include "muster/work.h"
#include "pipeline/pipeline.h"
#include "store/store.h"
#include "work/chosen_records.h"
#include "work/error_budget.h"
#include "work/failure_reasons.h"
#include "work/target_check.h"
#include "work/watched_pipeline.h"
#include "work/worker.h"

namespace muster::work {
namespace {

using pipeline::Collection;
using pipeline::Counts;
using pipeline::Partition;

// Longer than any migration takes.
constexpr milliseconds kForever = std::chrono::hours(24 * 365 * 10);

// The store is private and nothing is resumed: a lease never ends, so a write may wait for its sink
// as long as it takes; no checkpoint is due, so nothing is split off and documents of a shard stay
// in order.
constexpr WorkTerms kTerms{.lease = kForever,
                           .max_lease = kForever,
                           .checkpoint_interval = kForever,
                           .max_hold = milliseconds(0),
                           .idle_wait = milliseconds(100),
                           .max_attempts = 1,
                           .fail_fast = true};

// One collection of a source, with the partitions it had when its migration began.
class StartedCollection final : public pipeline::OneCollection {
 public:
  StartedCollection(pipeline::Source& source, const Collection& collection,
                    const std::vector<Partition>& partitions)
      : OneCollection(source, collection), partitions_(partitions) {}

  Result<std::vector<Partition>> Partitions(const std::string& /*collection*/) override {
    return partitions_;
  }

 private:
  const std::vector<Partition>& partitions_;
};

// A sink whose targets are prepared, and are finished when all collections are done: several may
// share one.
class PreparedSink final : public pipeline::SinkWrapper {
 public:
  explicit PreparedSink(pipeline::Sink& sink) : SinkWrapper(sink) {}

  Result<std::vector<pipeline::TargetChange>> Prepare(const Collection& /*collection*/,
                                                      bool /*evaluate*/) override {
    return std::vector<pipeline::TargetChange>();
  }
  Result<std::vector<pipeline::TargetChange>> PrepareGlobal(const std::string& /*metadata*/,
                                                            bool /*evaluate*/) override {
    return std::vector<pipeline::TargetChange>();
  }
  // Compared with the source's before.
  Result<std::string> TableId(const std::string& /*collection*/) override { return std::string(); }
  Status Finish(const std::string& /*collection*/) override { return {}; }
};

// Admits what documents choose with the pipeline of the whole migration: that of a collection
// prepares nothing.
class StandaloneTargets final : public pipeline::ChosenTargets {
 public:
  StandaloneTargets(const pipeline::Pipeline& pipeline, store::Store& store, const std::string& run)
      : pipeline_(pipeline), records_(store, run, [this] { return Names(); }) {}

  // Before documents are migrated.
  void SetCollections(const std::vector<Collection>& collections) {
    for (const Collection& one : collections) names_.push_back(one.name);
  }

  Status Admit(const pipeline::Pipeline& /*pipeline*/, const std::string& collection,
               const std::string& target, const pipeline::Fence& fence) override {
    return records_.Admit(pipeline_, collection, target, fence);
  }

 private:
  Result<std::vector<std::string>> Names() const { return names_; }

  const pipeline::Pipeline& pipeline_;
  std::vector<std::string> names_;
  ChosenRecords records_;
};

// Adds up the items of a collection, and passes their progress on. Serialises the calls of the
// observer.
class MigrationWatch final : public WaitingObserver {
 public:
  explicit MigrationWatch(MigrationObserver& observer) : observer_(observer) {}

  void Prepared(const std::vector<pipeline::TargetChange>& changes) {
    const MutexLock lock(mutex_);
    observer_.Prepared(changes);
  }
  void Start(const std::string& collection, const std::vector<Partition>& partitions) {
    const MutexLock lock(mutex_);
    counts_ = {};
    observer_.CollectionStarted(collection, partitions);
  }
  void Advanced(const WorkItem& item, const pipeline::Progress& progress) override {
    const MutexLock lock(mutex_);
    NoteProgress();
    observer_.Advanced(item.partition(), progress);
  }
  void Ended(const WorkItem& item, ShardOutcome outcome, const Error* /*why*/) override {
    if (outcome != ShardOutcome::kCompleted) return;
    const MutexLock lock(mutex_);
    counts_ += item.progress().counts;
    const Partition& partition = item.partition();
    if (!partition.follows) written_once_[partition.collection] += item.progress().counts.written;
  }
  Counts End(const std::string& collection) {
    const MutexLock lock(mutex_);
    observer_.CollectionEnded(collection, counts_);
    return counts_;
  }

  // Of the current collection.
  Counts counts() {
    const MutexLock lock(mutex_);
    return counts_;
  }
  void Failed(const std::vector<FailureReason>& reasons) {
    const MutexLock lock(mutex_);
    observer_.Failed(reasons);
  }

  // Documents of a collection, without those that were written again by items which follow others.
  int64_t WrittenOnce(const std::string& collection) {
    const MutexLock lock(mutex_);
    return written_once_[collection];
  }

 private:
  void ReportWait(const std::string& what) REQUIRES(mutex_) override { observer_.Waits(what); }

  MigrationObserver& observer_;
  Counts counts_ GUARDED_BY(mutex_);                                // of the current collection
  std::map<std::string, int64_t> written_once_ GUARDED_BY(mutex_);  // by collection
};

class StandaloneMigration {
 public:
  StandaloneMigration(pipeline::Pipeline& pipeline, const MigrateAllOptions& options,
                      MigrationObserver& observer, std::stop_token stop)
      : options_(options),
        observer_(observer),
        watched_(pipeline, observer_),
        pipeline_(watched_.pipeline()),
        stop_(std::move(stop)),
        // Never resumed, so its name does not matter.
        run_("standalone-" + pipeline.env.NewId()),
        store_(store::NewMemoryStore(pipeline.env)),
        targets_(*store_, run_),
        chosen_(pipeline_, *store_, run_) {}

  Result<Counts> Run() {
    auto counts = Migrate();
    if (reasons_.total() > 0) observer_.Failed(reasons_.List());
    return counts;
  }

 private:
  Result<Counts> Migrate() {
    MUSTER_ASSIGN(const std::vector<Collection> collections, Prepare());
    std::set<std::string> targets;
    for (const Collection& collection : collections) {
      MUSTER_ASSIGN(const Counts counts, Migrate(collection));
      total_ += counts;
      targets.insert(TargetOf(collection));
    }
    // Those that documents chose, too.
    if (pipeline_.transforms.ChoosesTargets()) {
      MUSTER_TRY(targets_.CheckAll(pipeline_.sink, run_));
    }
    for (const std::string& target : targets) {
      MUSTER_TRY(CheckTarget(target));
      MUSTER_TRY(pipeline_.sink.Finish(target));
    }
    MUSTER_TRY(CheckMerges(collections));
    return total_;
  }

  // Safe to interrupt: nothing is lost.
  Result<std::vector<Collection>> Prepare() {
    const InterruptScope scope(stop_);
    MUSTER_ASSIGN(std::vector<Collection> collections,
                  pipeline::SelectCollections(pipeline_.source, options_.allowed));
    MUSTER_ASSIGN(const std::vector<pipeline::TargetChange> changes,
                  pipeline::PrepareSelected(pipeline_, collections, /*evaluate=*/false));
    for (const Collection& one : collections) MUSTER_TRY(CheckTarget(TargetOf(one)));
    chosen_.SetCollections(collections);
    observer_.Prepared(changes);
    return collections;
  }

  // A run of its own, so that collections follow one another.
  Result<Counts> Migrate(const Collection& collection) {
    MUSTER_ASSIGN(const std::vector<Partition> partitions, Start(collection));
    observer_.Start(collection.name, partitions);
    StartedCollection source(pipeline_.source, collection, partitions);
    PreparedSink sink(pipeline_.sink);
    pipeline::Pipeline pipeline{pipeline_.env,          source,
                                pipeline_.transforms,   sink,
                                pipeline_.dead_letters, pipeline_.throttle,
                                pipeline_.options,      &chosen_};
    const auto most = std::max<size_t>(partitions.size(), 1);
    const WorkerOptions options{
        .run = {.name = run_, .max_failures = options_.max_failures, .alone = true},
        .terms = kTerms,
        .worker = "standalone",
        .slots = static_cast<int>(std::min<size_t>(most, std::max(options_.shard_concurrency, 1)))};
    const std::unique_ptr<store::Store> store = store::NewMemoryStore(pipeline_.env);
    MUSTER_TRY(BeginBudget(*store, run_, total_));
    const auto report = RunUnwatchedWorker(*store, pipeline, options, observer_, stop_);
    if (!report || observer_.counts().failed > 0) AddReasons(*store);
    MUSTER_TRY(report);
    if (!report->all_done) return Error{Code::kCancelled, "stopped on request"};
    return observer_.End(collection.name);
  }

  // Of collections that share a target, none may have replaced documents of another.
  Status CheckMerges(const std::vector<Collection>& collections) {
    std::vector<std::string> names;
    std::map<std::string, int64_t> by_collection;
    for (const Collection& one : collections) {
      names.push_back(one.name);
      by_collection[one.name] = observer_.WrittenOnce(one.name);
    }
    const ChosenMerges chosen{.store = *store_, .run = run_, .incarnation = run_};
    MUSTER_ASSIGN(const bool checked, chosen.Check(pipeline_, {names.begin(), names.end()}, [&] {
      return Result<std::map<std::string, int64_t>>(by_collection);
    }));
    if (checked) return {};
    MUSTER_ASSIGN(const auto merged, pipeline::MergedCollections(pipeline_, names));
    for (const auto& [target, ones] : merged) {
      int64_t written = 0;
      for (const std::string& one : ones) written += by_collection[one];
      MUSTER_TRY(pipeline::CheckMerged(pipeline_, ones, written));
    }
    return {};
  }

  void AddReasons(store::Store& store) {
    const auto totals = ReadTotals(store, run_);
    if (!totals) return;
    for (const FailureReason& reason : totals->reasons) reasons_.Add(reason);
  }

  Result<std::vector<Partition>> Start(const Collection& collection) {
    if (stop_.stop_requested()) return Error{Code::kCancelled, "stopped on request"};
    const InterruptScope scope(stop_);
    MUSTER_TRY(CheckTarget(TargetOf(collection)));
    MUSTER_ASSIGN(std::vector<Partition> partitions, pipeline_.source.Partitions(collection.name));
    // Items are taken in this order: those that follow others last.
    std::stable_partition(partitions.begin(), partitions.end(),
                          [](const Partition& one) { return !one.follows; });
    return partitions;
  }

  std::string TargetOf(const Collection& collection) const {
    return pipeline_.transforms.TargetName(collection.name);
  }

  // The same as when it was prepared.
  Status CheckTarget(const std::string& target) {
    return targets_.Check(pipeline_.sink, run_, target);
  }

  const MigrateAllOptions& options_;
  MigrationWatch observer_;
  WatchedPipeline watched_;
  pipeline::Pipeline& pipeline_;
  const std::stop_token stop_;
  const std::string run_;
  Counts total_;  // of the collections that are done
  FailureReasons reasons_{1'000};
  const std::unique_ptr<store::Store> store_;  // of the targets' identities
  TargetCheck targets_;
  StandaloneTargets chosen_;
};

}  // namespace

Result<Counts> MigrateAll(pipeline::Pipeline& pipeline, const MigrateAllOptions& options,
                          MigrationObserver& observer, std::stop_token stop) {
  auto counts = StandaloneMigration(pipeline, options, observer, std::move(stop)).Run();
  if (!counts && counts.error().hint == pipeline::kLostTargetHint) {
    Error error = counts.error();
    error.hint = "what was written before is gone: run the migration again";
    return error;
  }
  if (!counts && counts.error().hint == kStoppedHint) {
    Error error = counts.error();
    error.message = "the migration is stopped" + error.message.substr(error.message.find(": "));
    error.hint = "fix the cause, or allow for it with a higher --max-failures, and run it again";
    return error;
  }
  return counts;
}

}  // namespace muster::work
