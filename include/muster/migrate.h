#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "muster/env.h"
#include "muster/pipeline.h"
#include "muster/result.h"

namespace muster {

// A document that could not be migrated, and why.
struct DeadLetter {
  std::string_view collection;  // the source's name for it
  std::string_view target;      // the sink's
  std::string_view item;
  const Document& document;
  std::string_view reason;
  // Whether `document` is as the sink is to have it. False: it failed before the transforms had
  // edited it, and is as the source has it.
  bool transformed = false;
};

// Documents that could not be migrated, each with its reason, in a file that grows: one JSON object
// a line, {"run","collection","target","transformed","item","id","routing","position","error",
// "document"}, with "deleted" and "version" before the error where a document has them, and where a
// document that is not valid JSON is a string of "document_base64". Thread-safe. After a crash the
// same document may be there twice, with the same collection and position.
class DeadLetters {
 public:
  virtual ~DeadLetters() = default;
  virtual Status Add(const DeadLetter& letter) = 0;
  // Makes what was added durable.
  virtual Status Flush() = 0;
};

// The run that letters name where there is none.
inline constexpr char kStandaloneRun[] = "standalone";

// Appends to `path`, which is created when the first letter comes.
Result<std::unique_ptr<DeadLetters>> OpenDeadLetters(const std::string& path,
                                                     const std::string& run);

// Limits the flow, for all shards of a process together. 0: no limit. Thread-safe.
class Throttle {
 public:
  explicit Throttle(Env& env) : env_(env) {}

  // Holds at once, also for those who wait already.
  void Set(double docs_per_second, double bytes_per_second);

  // Waits until so much may pass. False: stopped.
  bool Pass(int64_t docs, int64_t bytes, std::stop_token stop);

  // The limits, lowered to what may pass in about a second: no batch waits longer for its turn.
  BatchLimits Bounded(const BatchLimits& limits) const;

 private:
  Env& env_;
  mutable std::mutex mutex_;
  double docs_per_second_ = 0;
  double bytes_per_second_ = 0;
  int64_t settings_ = 0;  // how often they were set
  MonoTime free_at_{};
};

// Lets the watcher of a shard take a part of it away.
class Rest {
 public:
  virtual ~Rest() = default;
  // As Reader::Split, with what was read ahead kept by the reader.
  virtual Result<std::optional<std::string>> Split() = 0;
};

// Watches one shard being migrated.
class WorkItemCursor {
 public:
  virtual ~WorkItemCursor() = default;

  // A batch is in the sink; `progress` is where the shard is now. May change `progress.end` after a
  // split. kCancelled ends the shard in good order between two batches, any other failure at once.
  virtual Status Advance(Progress& progress, Writer& writer, Rest& rest) = 0;

  // How long the next write may take.
  virtual Patience NextPatience() = 0;
};

struct PipelineOptions {
  BatchLimits limits = {};
  bool read_ahead = true;  // the next batch is read, by a thread, while the last is in flight
  bool merge = false;      // several collections may go to one: their ids are different
};

struct Pipeline {
  Env& env;
  Source& source;
  const TransformPlan& transforms;
  Sink& sink;
  DeadLetters& dead_letters;
  Throttle& throttle;
  PipelineOptions options = {};
};

// Migrates one partition from `start` on: reads, transforms and writes batch after batch, in order,
// until its end, which is start.end or, if that is empty, the partition's. The answer is the
// progress at the end; Finish is the caller's. kCancelled: stopped in good order, after the last
// batch that `cursor` was told of. `writer` is open for this item.
Result<Progress> MigrateShard(Pipeline& pipeline, const Partition& partition,
                              const std::string& item, const Progress& start, Writer& writer,
                              WorkItemCursor& cursor, std::stop_token stop);

// Chooses collections by the source's names; none: all.
using CollectionFilter = std::function<bool(const std::string& collection)>;

// kIncompatible: the source tells of deleted documents, and the sink cannot delete any.
Status CheckDeletes(const Source& source, const Sink& sink);

// The source's collections that are wanted; with no filter, all. Fails for the first of them that
// cannot be read.
Result<std::vector<Collection>> SelectCollections(Source& source, const CollectionFilter& allowed);

// kConflict: several of these collections go to one target where documents of the same id replace
// one another, and PipelineOptions::merge is off.
Status CheckTargets(const Pipeline& pipeline, const std::vector<Collection>& collections);

// kCorrupt: the source itself counts more or fewer documents in the collection than were read of
// its partitions, and has not changed meanwhile. `read` says how many were read; it is asked only
// if the source can count.
Status CheckCount(Source& source, const std::string& collection,
                  const std::vector<Partition>& partitions,
                  const std::function<Result<int64_t>()>& read);

// Brings the sink into shape for the source itself and all allowed collections or, with `evaluate`,
// says what would be done. Repeatable.
Result<std::vector<TargetChange>> PrepareCollections(Pipeline& pipeline,
                                                     const CollectionFilter& allowed,
                                                     bool evaluate);

// What MigrateAll tells while it works; calls come from several threads, one at a time.
class MigrationObserver {
 public:
  virtual ~MigrationObserver() = default;
  virtual void Prepared(const std::vector<TargetChange>& changes) = 0;
  virtual void CollectionStarted(const std::string& collection,
                                 const std::vector<Partition>& partitions) = 0;
  virtual void Advanced(const Partition& partition, const Progress& progress) = 0;
  virtual void CollectionEnded(const std::string& collection, const Counts& counts) = 0;
};

struct MigrateAllOptions {
  int shard_concurrency = 1;
  CollectionFilter allowed = {};
};

// Standalone: one process, no store, nothing to resume. Collections one after another, the shards
// of a collection `shard_concurrency` at a time. Ends at the first error, with kCancelled in good
// order when stopped.
Result<Counts> MigrateAll(Pipeline& pipeline, const MigrateAllOptions& options,
                          MigrationObserver& observer, std::stop_token stop);

// The name of a shard from a position on: indexName__shardNumber__startingDocId, orders__0__0 from
// the first document on. Every name and position round-trips, those that hold `__` too; the text is
// always valid UTF-8 without control characters.
struct WorkItemName {
  std::string collection;
  int shard = 0;
  std::string position = {};  // empty: the first document

  std::string ToString() const;
  static Result<WorkItemName> Parse(std::string_view text);
  bool operator==(const WorkItemName&) const = default;
};

// Opens a source or a sink by its URL; docs/guide/sources.md and sinks.md tell them all.
Result<std::unique_ptr<Source>> OpenSource(const std::string& url, Env& env);
Result<std::unique_ptr<Sink>> OpenSink(const std::string& url, Env& env);

// Transforms as declared in YAML or JSON; an empty text: none. `file` is for error messages.
Result<std::unique_ptr<TransformPlan>> ParseTransforms(const std::string& text,
                                                       const std::string& file);

}  // namespace muster
