#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "muster/env.h"
#include "muster/progress.h"
#include "muster/result.h"

namespace muster::pipeline {

// Documents flow source → transform → sink, shard by shard, each shard in order, one batch at a
// time; muster/migrate.h runs the flow. Nothing here depends on stores or leases.

// One document in transit. Views belong to the object that returned it: a Reader's are valid until
// its next Next, a Batch's as long as the Batch.
struct Document {
  std::string_view id;        // empty: none
  std::string_view routing;   // empty: the same as the id
  std::string_view body;      // a JSON object, byte for byte as in the source
  std::string_view position;  // where reading continues after this document
  std::string_view defect;    // not empty: why it cannot be migrated; `body` is then what was found
  // It was deleted in the source and must be deleted in the sink; `body` is its last content, or
  // {}.
  bool deleted = false;
  // Not 0: of two changes to one document the higher version wins, whichever comes last, if the
  // sink supports it.
  int64_t version = 0;
  // Distinguishes JSON null from SQL NULL, which JSON alone cannot: in this document null is a JSON
  // value where the column is of JSON, and a JSON column without a field is NULL, not its default.
  bool null_is_json = false;
  // Not 0: which of the documents that transforms made of one, from 1 on. They share its position.
  int64_t part = 0;
};

// A target and its shape: an index, a table, a file.
struct Collection {
  std::string name;
  // Its schema as known to the source, as a JSON object: {"mappings", "settings", "aliases",
  // "cluster_version"} of an index, {"columns": [{"name", "type", "nullable"}], "key": [name]} of a
  // table; "{}": unknown.
  std::string metadata = "{}";
  // Why it cannot be read, which matters only if it is selected.
  std::optional<Error> refusal = {};
};

// What a source has but does not list, and why.
struct LeftOut {
  std::string name;
  std::string reason;  // "it is hidden: name it at the end of the source's URL"
};

// A range of a collection that is read in one go. Positions are source-specific (byte offsets, row
// keys, Lucene document numbers): stable across connections and processes.
struct Partition {
  std::string collection;
  int shard = 0;
  std::string part = {};   // which part of the collection, if the source needs it: a file, say
  std::string begin = {};  // empty: the first document
  std::string end = {};    // the first position not to read; empty: to the last document
  std::optional<int64_t> documents = {};  // their number, if the source knows
  std::optional<int64_t> bytes = {};
  // Read only after all others of its collection and shard: picks up changes made while they were
  // read.
  bool follows = false;
  // Identifies what is read: if it was replaced meanwhile, reading fails with kCorrupt. Empty: the
  // source cannot tell.
  std::string mark = {};

  bool operator==(const Partition&) const = default;
};

// Reads one partition from a position on. Used by one thread at a time.
class Reader {
 public:
  virtual ~Reader() = default;

  // The next document; none: the end. What cannot be read as a document is one with a defect; an
  // error ends the reading: it concerns the source, not one document.
  virtual Result<std::optional<Document>> Next() = 0;

  // Gives up about the second half of what is left: returns where it begins, and Next ends there
  // from now on. None: too little is left, or the source cannot split.
  virtual Result<std::optional<std::string>> Split() { return std::nullopt; }
};

// Where documents come from. Thread-safe; must outlive its readers.
class MUSTER_EXPORT Source {
 public:
  virtual ~Source() = default;

  // All collections, in a fixed order.
  virtual Result<std::vector<Collection>> Collections() = 0;

  // What Collections() lacks although the source has it: hidden indices, say. For display: nothing
  // of it is migrated.
  virtual Result<std::vector<LeftOut>> Unlisted() { return std::vector<LeftOut>(); }

  // One of them, with its full schema; none: no collection of that name.
  virtual Result<std::optional<Collection>> Describe(const std::string& collection);

  // The name, among Collections(), of what a sink with this source's URL writes `collection` to:
  // sinks encode and fold names, and some have a single target. None: there is no such target.
  virtual Result<std::optional<std::string>> TargetOf(const std::string& collection);

  // Identifies the table that a collection is read from, the same as Sink::TableId if that writes
  // to it, however each is addressed. Empty: not a table, or the source cannot tell.
  virtual Result<std::string> TableId(const std::string& /*collection*/) { return std::string(); }

  // Metadata outside collections, as a JSON object: {"cluster_version": "opensearch 2.19",
  // "index_templates": {name: template}, "component_templates": …, "templates": …, "data_streams":
  // …, "pipelines": …, "policies": …, "hidden": [index], "stores": [index], "unreadable": {member:
  // why}} of a cluster.
  virtual Result<std::string> GlobalMetadata() { return std::string("{}"); }

  // Whether documents keep their types: a string that looks like a number is a string, null is not
  // missing.
  virtual bool KeepsTypes() const { return false; }
  // Whether documents have their routing. False: the source knows of none.
  virtual bool KeepsRouting() const { return false; }
  // Whether it sets Document::null_is_json.
  virtual bool KeepsJsonNulls() const { return false; }

  // Whether its documents may include deletes.
  virtual bool HasDeletes() const { return false; }

  // The same partitions every time, as long as the source does not change.
  virtual Result<std::vector<Partition>> Partitions(const std::string& collection) = 0;

  // Reads [position, partition.end); `position` empty: from partition.begin. Nothing before it is
  // read. `stop` cancels waiting and retrying inside with kCancelled.
  virtual Result<std::unique_ptr<Reader>> Read(const Partition& partition,
                                               const std::string& position,
                                               std::stop_token stop) = 0;

  // How many documents reading all of these partitions, those of a whole collection, must have
  // returned, by the source's own count, which is independent of reading them; none: unknown, or
  // there were changes since the partitions were made.
  virtual Result<std::optional<int64_t>> CountAgain(const std::vector<Partition>& /*partitions*/) {
    return std::nullopt;
  }

  // The approximate fraction of the partition before `position`, from 0 to 1; none: unknown.
  virtual std::optional<double> FractionBefore(const Partition& partition,
                                               const std::string& position) = 0;
};

// Memory for edited or copied bytes; freed as a whole, kept for reuse by Clear.
class MUSTER_EXPORT Arena {
 public:
  Arena();
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();

  std::string_view Copy(std::string_view bytes);
  // Room for `size` bytes for the caller to fill. Never moves.
  char* Allocate(size_t size);
  void Clear();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct BatchLimits {
  size_t max_docs = 1'000;
  size_t max_bytes = 8 * 1024 * 1024;  // of ids and bodies; a larger document gets its own batch
};

// Documents that are written together, with their memory.
struct Batch {
  std::vector<Document> documents;
  Arena arena;

  MUSTER_EXPORT void Add(const Document& document);  // copies
  MUSTER_EXPORT void Clear();
};

// Edits documents one by one. An instance is used by one thread.
class Transform {
 public:
  virtual ~Transform() = default;

  // Edits `document`, with new bytes in `arena`. False: skip it. An error concerns this document
  // alone, which fails with it. A transform that makes several documents of one appends all but the
  // first to `more`, the same ones in the same order every time, each with an id of its own.
  virtual Result<bool> Apply(Document& document, Arena& arena, std::vector<Document>& more) = 0;
};

// Creates the transforms of one thread for the documents of a collection, by the source's name, in
// order of application. Thread-safe.
class TransformPlan {
 public:
  virtual ~TransformPlan() = default;

  // For one thread. Empty: the collection's documents stay as they are.
  virtual Result<std::vector<std::unique_ptr<Transform>>> Make(
      const std::string& collection) const = 0;

  // The collection's name in the sink.
  virtual std::string TargetName(const std::string& collection) const = 0;

  // Whether documents may change. False: at most collections are renamed.
  virtual bool EditsDocuments() const { return true; }

  // The files that it consists of besides its own text. Empty: none. Part of a run's identity: with
  // other scripts it is another migration.
  virtual std::string Scripts() const { return {}; }

  // The collection after the transforms: its new name, and matching metadata. kInvalid: a script
  // fails on the metadata.
  virtual Result<Collection> Target(const Collection& collection) const {
    return Collection{TargetName(collection.name), collection.metadata};
  }
};

// A document that the sink will never accept, by its index in the batch.
struct Refused {
  size_t index = 0;
  std::string reason;
  // Left out by the target's own rules: it has a later version, or a trigger drops the row. Counts
  // as skipped and is not a dead letter. A table reports how many rows a trigger dropped, not
  // which: their indices are meaningless.
  bool skipped = false;
};

// Deadline of a call, including retries.
struct Patience {
  MonoTime deadline = MonoTime::max();
  std::stop_token stop = {};
  // Called, if set, before each pause between retries inside the call.
  std::function<void(const Error& why)> waits = {};
};

// Writes the documents of one item. Used by one thread.
class Writer {
 public:
  virtual ~Writer() = default;

  // The item's progress as stored in the sink with its last committed write; none: the sink does
  // not store progress. Authoritative: overrides the store's checkpoint. Progress{}, with an empty
  // end, if the sink stores progress but has none for this item.
  virtual const std::optional<Progress>& Known() const = 0;

  // Whether an earlier holder has sealed the item: nothing may be written, its progress is Known().
  virtual bool Sealed() const { return false; }

  // Writes all documents, in order, each either accepted or permanently refused. `after` is the
  // progress afterwards, except that refused documents still count as `written`: a sink that stores
  // progress corrects that and stores it in the same transaction as the documents. An empty batch
  // only stores `after`. Idempotent: replaying a batch after kUnknownOutcome or a crash has the
  // same result as writing it once.
  virtual Result<std::vector<Refused>> Write(const Batch& batch, const Progress& after,
                                             const Patience& patience) = 0;

  // Refusals must survive a crash after a write that counts them as failed. A sink that stores
  // progress calls `record` for each refused document before its write takes effect, and returns
  // true here; by default the caller records what Write returns. Called before the first Write.
  using RefusalRecorder = std::function<Status(const Document& document, std::string_view reason)>;
  // NOLINTNEXTLINE(performance-unnecessary-value-param): who implements it keeps it
  virtual bool RecordsRefusals(RefusalRecorder /*record*/) { return false; }

  // Makes everything written durable. Only then may progress be checkpointed elsewhere.
  virtual Status Flush() { return {}; }

  // From now on no write to this item has any effect, by any writer, however late. Returns
  // the final progress; none: the sink stores none, and what was acknowledged counts.
  virtual Result<std::optional<Progress>> Seal() { return std::nullopt; }

  // All documents are written: makes them durable and publishes them, if that is a separate step.
  // Idempotent.
  virtual Status Finish() { return {}; }
};

// A change a target needs to fit a collection, for display.
struct TargetChange {
  std::string collection;
  std::string change;  // "create table orders (id bigint, …)"
};

// Where documents go. Thread-safe; must outlive its writers.
class Sink {
 public:
  virtual ~Sink() = default;

  // Prepares the target for the collection, already renamed; existing objects are left alone. With
  // `evaluate` it only reports what would be done. Idempotent.
  virtual Result<std::vector<TargetChange>> Prepare(const Collection& collection,
                                                    bool evaluate) = 0;

  // The same for metadata outside collections. Called after Prepare of all collections: templates
  // would apply to their targets.
  virtual Result<std::vector<TargetChange>> PrepareGlobal(const std::string& metadata,
                                                          bool evaluate) {
    static_cast<void>(metadata), static_cast<void>(evaluate);
    return std::vector<TargetChange>{};
  }

  // Whether its writers accept deleted documents.
  virtual bool CanDelete() const { return false; }

  // Whether documents with the same id, or key, replace each other in a collection; and a
  // collection's place, to detect two that share one.
  virtual bool ReplacesById(const Collection& /*collection*/) const { return false; }
  virtual std::string Place(const std::string& collection) const { return collection; }

  // The identity of a prepared collection's target beyond its name: a table that was dropped and
  // recreated, or a replaced file, has another identity, and so has a target that lost what was
  // written to it, if the sink can tell. Empty: it cannot. kNotFound: the target is gone.
  virtual Result<std::string> Identity(const std::string& /*collection*/) { return std::string(); }

  // As Source::TableId, of a collection's target. Empty also if it does not exist yet.
  virtual Result<std::string> TableId(const std::string& /*collection*/) { return std::string(); }

  // How many documents a collection's target has, for sinks in which one replaces another of the
  // same id without a word. None: not such a sink, or it cannot be counted.
  virtual Result<std::optional<int64_t>> CountDocuments(const std::string& /*collection*/) {
    return std::nullopt;
  }

  // The preferred batch size, unless configured otherwise.
  virtual BatchLimits PreferredLimits() const { return {}; }

  // Opens `collection` for one item, and fences off older epochs.
  virtual Result<std::unique_ptr<Writer>> Open(const std::string& collection,
                                               const Fence& fence) = 0;

  // Every item of the collection is finished: brings the target into its final shape. Idempotent,
  // from any process.
  virtual Status Finish(const std::string& /*collection*/) { return {}; }
};

}  // namespace muster::pipeline
