#include <algorithm>
#include <iterator>
#include <map>
#include <thread>

#include "core/guard.h"
#include "core/interrupt.h"
#include "core/mutex.h"
#include "muster/migrate.h"

namespace muster::pipeline {
namespace {

Status CheckTarget(Sink& sink, const std::string& target, const std::string& identity) {
  if (identity.empty()) return {};
  const auto now = sink.Identity(target);
  if (!now && now.error().code != Code::kNotFound) return now.error();
  if (now && *now == identity) return {};
  return Error{Code::kIncompatible,
               "'" + target + "' was removed or replaced while it was written to" +
                   (now ? "" : ": " + now.error().message),
               "what was written before is gone: run the migration again"};
}

// The shards of one collection, handed out to the threads that migrate them.
class CollectionRun {
 public:
  CollectionRun(Pipeline& pipeline, const std::string& run, const std::string& collection,
                std::vector<Partition> partitions, std::string identity,
                MigrationObserver& observer, std::stop_token stop)
      : pipeline_(pipeline),
        run_(run),
        collection_(collection),
        partitions_(std::move(partitions)),
        identity_(std::move(identity)),
        since_ms_(pipeline.env.WallNow().time_since_epoch().count()),
        observer_(observer),
        outer_stop_(std::move(stop)) {}

  Result<Counts> Run(int concurrency) {
    observer_.CollectionStarted(collection_, partitions_);
    const std::stop_callback pass_on(outer_stop_, [this] { stop_.request_stop(); });
    // Followers go last.
    const auto followers = std::stable_partition(partitions_.begin(), partitions_.end(),
                                                 [](const Partition& one) { return !one.follows; });
    for (const auto end : {followers, partitions_.end()}) {
      end_ = static_cast<size_t>(end - partitions_.begin());
      const auto threads = std::min(static_cast<size_t>(std::max(concurrency, 1)), end_ - taken_);
      if (threads <= 1) {
        Work();
      } else {
        std::vector<std::jthread> workers;
        for (size_t i = 0; i < threads; ++i) workers.emplace_back([this] { Work(); });
      }
    }
    if (!outcome_) return outcome_.error();
    MUSTER_TRY(
        CheckCount(pipeline_.source, collection_, partitions_, [this] { return counts_.read; }));
    observer_.CollectionEnded(collection_, counts_);
    return counts_;
  }

 private:
  class Cursor final : public WorkItemCursor {
   public:
    Cursor(CollectionRun& run, const Partition& partition) : run_(run), partition_(partition) {}
    Status Advance(Progress& progress, Writer&, Rest&) override {
      const MutexLock lock(run_.mutex_);
      run_.observer_.Advanced(partition_, progress);
      return {};
    }
    Patience NextPatience() override { return {.stop = run_.stop_.get_token()}; }

   private:
    CollectionRun& run_;
    const Partition& partition_;
  };

  void Work() {
    while (const Partition* partition = Take()) {
      const Result<Progress> end =
          GuardedThread("collection '" + collection_ + "'", [&] { return Migrate(*partition); });
      const MutexLock lock(mutex_);
      if (end) {
        counts_ += end->counts;
        continue;
      }
      // The others stop because of this error, so theirs are not the cause.
      if (outcome_) outcome_ = end.error();
      stop_.request_stop();
    }
  }

  const Partition* Take() {
    const MutexLock lock(mutex_);
    if (!outcome_ || taken_ == end_) return nullptr;
    if (stop_.stop_requested()) {
      outcome_ = Error{Code::kCancelled, "stopped on request"};
      return nullptr;
    }
    return &partitions_[taken_++];
  }

  Result<Progress> Migrate(const Partition& partition) {
    const std::string item = WorkItemName{collection_, partition.shard, partition.begin}.ToString();
    const std::string target = pipeline_.transforms.TargetName(collection_);
    MUSTER_ASSIGN(auto writer, pipeline_.sink.Open(
                                   target, {.run = run_,
                                            .incarnation = run_,
                                            .adopts = false,
                                            .alone = true,
                                            .item = item,
                                            .since_ms = since_ms_,
                                            .rank = partition.follows ? kFirstFollowerRank : 1}));
    Cursor cursor(*this, partition);
    MUSTER_ASSIGN(Progress end,
                  MigrateShard(pipeline_, partition, item, {}, *writer, cursor, stop_.get_token()));
    MUSTER_TRY(pipeline_.dead_letters.Flush());
    MUSTER_TRY(writer->Finish());
    MUSTER_TRY(CheckTarget(pipeline_.sink, target, identity_));
    return end;
  }

  Pipeline& pipeline_;
  const std::string& run_;
  const std::string& collection_;
  std::vector<Partition> partitions_;
  const std::string identity_;  // of the target
  const int64_t since_ms_;
  MigrationObserver& observer_;
  const std::stop_token outer_stop_;
  std::stop_source stop_;
  Mutex mutex_;  // guards what follows and serialises observer calls
  size_t taken_ = 0;
  size_t end_ = 0;  // of those that may be taken
  Counts counts_;
  Status outcome_ = {};
};

}  // namespace

Status CheckDeletes(const Source& source, const Sink& sink) {
  if (!source.HasDeletes() || sink.CanDelete()) return {};
  return Error{Code::kIncompatible,
               "the source has deleted documents, and this sink cannot delete any",
               "migrate into OpenSearch, PostgreSQL or SQLite, or migrate everything again"};
}

Result<std::vector<Collection>> SelectCollections(Source& source, const CollectionFilter& allowed) {
  MUSTER_ASSIGN(std::vector<Collection> collections, source.Collections());
  if (allowed) {
    std::erase_if(collections, [&](const Collection& one) { return !allowed(one.name); });
  }
  for (const Collection& collection : collections) {
    if (collection.refusal) return *collection.refusal;
  }
  return collections;
}

Status CheckTargets(const Pipeline& pipeline, const std::vector<Collection>& collections) {
  struct Taken {
    std::string collection;
    std::string target;
  };
  std::map<std::string, Taken> places;
  for (const Collection& collection : collections) {
    const Collection renamed = pipeline.transforms.Target(collection);
    // Fail before writing anything if the sink will never accept a collection, because of its name,
    // say.
    MUSTER_TRY(pipeline.sink.Prepare(renamed, /*evaluate=*/true));
    if (pipeline.options.merge) continue;
    const std::string place = pipeline.sink.Place(renamed.name);
    const auto [other, is_first] = places.emplace(place, Taken{collection.name, renamed.name});
    if (is_first) continue;
    const bool same_name = other->second.target == renamed.name;
    if (same_name && !pipeline.sink.ReplacesById(renamed)) continue;
    return Error{Code::kConflict,
                 other->second.collection + " and " + collection.name + " both go to " + place +
                     (same_name ? ", where documents with the same id replace each other"
                                : ": this sink takes their names for the same"),
                 "send each to its own target (rename_index), or use --merge if their ids "
                 "are different"};
  }
  return {};
}

Status CheckCount(Source& source, const std::string& collection,
                  const std::vector<Partition>& partitions,
                  const std::function<Result<int64_t>()>& read) {
  MUSTER_ASSIGN(const std::optional<int64_t> count, source.CountAgain(partitions));
  if (!count) return {};
  MUSTER_ASSIGN(const int64_t seen, read());
  if (seen == *count) return {};
  return Error{Code::kCorrupt,
               collection + ": the source counts " + std::to_string(*count) + " documents, but " +
                   std::to_string(seen) + " were read",
               "what was migrated is not complete: do not rely on it. Run 'muster verify' to see "
               "what differs"};
}

Result<std::vector<TargetChange>> PrepareCollections(Pipeline& pipeline,
                                                     const CollectionFilter& allowed,
                                                     bool evaluate) {
  MUSTER_TRY(CheckDeletes(pipeline.source, pipeline.sink));
  MUSTER_ASSIGN(const auto collections, SelectCollections(pipeline.source, allowed));
  MUSTER_TRY(CheckTargets(pipeline, collections));
  MUSTER_ASSIGN(const std::string global, pipeline.source.GlobalMetadata());
  MUSTER_ASSIGN(std::vector<TargetChange> all, pipeline.sink.PrepareGlobal(global, evaluate));
  for (const Collection& collection : collections) {
    MUSTER_ASSIGN(std::vector<TargetChange> changes,
                  pipeline.sink.Prepare(pipeline.transforms.Target(collection), evaluate));
    std::move(changes.begin(), changes.end(), std::back_inserter(all));
  }
  return all;
}

namespace {

// What to migrate, and to where.
struct Prepared {
  std::vector<TargetChange> changes;
  std::vector<Collection> collections;
  std::map<std::string, std::string> identities;  // by target
};

// Safe to interrupt: nothing is lost.
Result<Prepared> PrepareAll(Pipeline& pipeline, const CollectionFilter& allowed,
                            std::stop_token stop) {
  const InterruptScope scope(std::move(stop));
  Prepared all;
  MUSTER_ASSIGN(all.changes, PrepareCollections(pipeline, allowed, false));
  MUSTER_ASSIGN(all.collections, SelectCollections(pipeline.source, allowed));
  for (const Collection& collection : all.collections) {
    const std::string target = pipeline.transforms.TargetName(collection.name);
    auto identity = pipeline.sink.Identity(target);
    if (!identity && identity.error().code != Code::kNotFound) return identity.error();
    all.identities[target] = identity.value_or("");
  }
  return all;
}

Result<std::vector<Partition>> PartitionsOf(Source& source, const std::string& collection,
                                            std::stop_token stop) {
  const InterruptScope scope(std::move(stop));
  return source.Partitions(collection);
}

}  // namespace

Result<Counts> MigrateAll(Pipeline& pipeline, const MigrateAllOptions& options,
                          MigrationObserver& observer, std::stop_token stop) {
  // A standalone run is never resumed, so its name does not matter.
  const std::string run = "standalone-" + pipeline.env.NewId();
  MUSTER_ASSIGN(const Prepared all, PrepareAll(pipeline, options.allowed, stop));
  observer.Prepared(all.changes);
  Counts total;
  for (const Collection& collection : all.collections) {
    MUSTER_ASSIGN(auto partitions, PartitionsOf(pipeline.source, collection.name, stop));
    CollectionRun one(pipeline, run, collection.name, std::move(partitions),
                      all.identities.at(pipeline.transforms.TargetName(collection.name)), observer,
                      stop);
    MUSTER_ASSIGN(const Counts counts, one.Run(options.shard_concurrency));
    total += counts;
  }
  // Several collections may share a target, so check after all of them.
  for (const auto& [target, identity] : all.identities) {
    MUSTER_TRY(CheckTarget(pipeline.sink, target, identity));
    MUSTER_TRY(pipeline.sink.Finish(target));
  }
  return total;
}

}  // namespace muster::pipeline
