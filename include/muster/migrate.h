#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "muster/env.h"
#include "muster/pipeline.h"
#include "muster/result.h"

namespace muster::pipeline {

// The parts of a migration. MigrateAll and RunWorker of muster/work.h run a Pipeline made of them.

// Opens a source or a sink by URL; docs/guide/sources.md and sinks.md list them all.
MUSTER_EXPORT Result<std::unique_ptr<Source>> OpenSource(const std::string& url, Env& env);
MUSTER_EXPORT Result<std::unique_ptr<Sink>> OpenSink(const std::string& url, Env& env);

// Transforms declared in YAML or JSON; empty: none. `file` is for error messages.
MUSTER_EXPORT Result<std::unique_ptr<TransformPlan>> ParseTransforms(const std::string& text,
                                                                     const std::string& file);

// A document that could not be migrated, and why.
struct DeadLetter {
  std::string_view collection;  // the source's name for it
  std::string_view target;      // the sink's
  std::string_view item;
  const Document& document;
  std::string_view reason;
  // Whether `document` has been transformed. False: it failed before, and is as in the source.
  bool transformed = false;
  // Its place in the order of versions, see Fence: the start of its run, 0 if unknown, and whether
  // it was read after others of its shard.
  int64_t since_ms = 0;
  bool follows = false;
};

// Documents that could not be migrated, each with its reason, in an append-only file: one JSON
// object per line,
// {"run","collection","target","transformed","item","id","routing","position","error", "document"},
// with "since_ms", "follows", "part", "deleted" and "version" before the error for documents that
// have them; a document that is not valid JSON is a string in "document_base64". Thread-safe. After
// a crash the same document may occur twice, with the same collection, position and part.
class DeadLetters {
 public:
  virtual ~DeadLetters() = default;
  virtual Status Add(const DeadLetter& letter) = 0;
  // Makes added letters durable.
  virtual Status Flush() = 0;
};

// Lines of such a file that are not letters: torn by a crash, or foreign.
struct MUSTER_EXPORT BadLines {
  int64_t count = 0;
  std::vector<size_t> first = {};  // numbers of the first ten

  // "2 lines are not dead letters and were skipped: 3, 17"
  std::string ToString() const;
};

// The run in letters of a standalone migration.
inline constexpr char kStandaloneRun[] = "standalone";

// Appends to `path`, which is created with the first letter.
MUSTER_EXPORT Result<std::unique_ptr<DeadLetters>> OpenDeadLetters(const std::string& path,
                                                                   const std::string& run);

// Rate limit for all shards of a process together. 0: no limit. Thread-safe.
class MUSTER_EXPORT Throttle {
 public:
  explicit Throttle(Env& env);
  ~Throttle();

  // Takes effect at once, also for waiters.
  void Set(double docs_per_second, double bytes_per_second);

  // Waits until this much may pass. False: stopped.
  bool Pass(int64_t docs, int64_t bytes, std::stop_token stop);

  // The limits, lowered to about a second's worth, so that no batch waits longer.
  BatchLimits Bounded(const BatchLimits& limits) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct PipelineOptions {
  BatchLimits limits = {};
  bool read_ahead = true;  // a thread reads the next batch while the last is in flight
  bool merge = false;      // several collections may share a target: their ids differ
};

struct Pipeline;

// Admits the targets that documents choose. Thread-safe.
class ChosenTargets {
 public:
  virtual ~ChosenTargets() = default;
  // Before an item of `collection` writes to `target`, perhaps the collection's own: the target is
  // prepared and has room for this collection. kIncompatible: it cannot be written to, is read
  // from, belongs to another collection, or there are too many.
  virtual Status Admit(const Pipeline& pipeline, const std::string& collection,
                       const std::string& target, const Fence& fence) = 0;
};

struct Pipeline {
  Env& env;
  Source& source;
  const TransformPlan& transforms;
  Sink& sink;
  DeadLetters& dead_letters;
  Throttle& throttle;
  PipelineOptions options = {};
  ChosenTargets* chosen = nullptr;  // null: documents may choose targets that exist
};

// Selects collections by the source's names; none: all.
using CollectionFilter = std::function<bool(const std::string& collection)>;

// Prepares the sink for the source itself and all allowed collections or, with `evaluate`, reports
// what would be done. Idempotent. kIncompatible: the source reports deleted documents, and the sink
// cannot delete. kConflict: several collections share a target in which documents with the same id
// replace each other, and PipelineOptions::merge is off. kInvalid: a target is a table that is read
// from.
MUSTER_EXPORT Result<std::vector<TargetChange>> PrepareCollections(Pipeline& pipeline,
                                                                   const CollectionFilter& allowed,
                                                                   bool evaluate);

// One side of a comparison: a collection of a source.
struct VerifySide {
  Source& source;
  std::string collection;
};

struct VerifyOptions {
  bool checksums = false;                     // compare contents, not only counts
  const TransformPlan* transforms = nullptr;  // applied to the source's documents
  size_t max_named = 100;                     // differing documents to name individually
  // What VerifyObserver::Save got from an earlier call for the same sides and options: partitions
  // that are still the same are not read again, unless differences are to be named. Empty: none.
  std::string state = {};
  // With checksums: deletes documents from the target, those of up to a thousand ids at a time. Not
  // empty: extra documents that the source still lacks when it is read once more are deleted. An
  // error: there are no ids, or the source has unreadable documents, or most would be deleted.
  std::function<Status(const Batch& extra)> delete_extra = {};
};

// Notified by VerifyCollection, on its thread.
class VerifyObserver {
 public:
  virtual ~VerifyObserver() = default;
  // Now and then: documents read so far, of both sides, also by earlier calls.
  virtual void Advanced(int64_t /*documents*/) {}
  // After each partition: `state` makes a VerifyOptions::state. An error ends the comparison.
  virtual Status Save(const std::function<std::string()>& /*state*/) { return {}; }
};

// A document that differs between the sides.
struct VerifyDifference {
  enum class Kind { kMissing, kExtra, kChanged, kUnreadable };
  Kind kind = Kind::kMissing;
  std::string id;        // empty: none
  int shard = 0;         // where it was found: in the source, or in the target for an extra one
  std::string position;  // where reading continues after it
};

struct MUSTER_EXPORT VerifyReport {
  struct Count {
    Partition partition;
    int64_t documents = 0;   // after the transforms; including those that cannot be compared
    int64_t unreadable = 0;  // of these, invalid or failing in a transform
  };
  // Documents of one target, if transforms chose any for some of them.
  struct Chosen {
    std::string target;
    int64_t source = 0;  // those that were sent there
    int64_t sink = 0;    // those that are there
  };
  std::vector<Count> source;
  std::vector<Count> target;
  std::vector<Chosen> chosen;
  // Missing, extra and changed documents, by checksum, and those that cannot be compared.
  int64_t differences = 0;
  int64_t deleted = 0;                  // extra documents, which are no differences any more
  std::vector<VerifyDifference> named;  // up to max_named of them

  int64_t SourceDocuments() const;
  int64_t TargetDocuments() const;
  int64_t Unreadable() const;  // of both sides
  bool Equal() const;
};

// Reads both sides completely and compares them: by count, or by the content of documents with the
// same id; if one side has no ids, by content alone. Memory is bounded by the differences, and
// those by a million documents. Documents that change during the comparison may show up as
// different.
MUSTER_EXPORT Result<VerifyReport> VerifyCollection(const VerifySide& source,
                                                    const VerifySide& target,
                                                    const VerifyOptions& options,
                                                    VerifyObserver& observer, std::stop_token stop);

}  // namespace muster::pipeline
