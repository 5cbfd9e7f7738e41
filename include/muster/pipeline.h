#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "muster/env.h"
#include "muster/result.h"

namespace muster {

// Documents flow source → transform → sink, shard by shard, each shard in order, one batch at a
// time; muster/migrate.h runs the flow. Nothing here knows of stores or leases.

// One document on its way. The views belong to whoever handed it out: a Reader's live until its
// next Next, a Batch's as long as the Batch.
struct Document {
  std::string_view id;        // empty: the source has none
  std::string_view routing;   // empty: the same as the id
  std::string_view body;      // a JSON object, byte for byte as the source has it
  std::string_view position;  // where reading goes on after this document
  std::string_view defect;    // not empty: why it cannot be migrated; `body` is then what was found
  // It is gone from the source and is to go from the sink, too; `body` is then what it was, or {}.
  bool deleted = false;
  // Not 0: of two changes to one document the one of the higher version stays, whichever comes
  // last, where the sink can tell.
  int64_t version = 0;
};

// Where a document goes and how it must look there: an index, a table, a file.
struct Collection {
  std::string name;
  // What the source knows of its shape, as a JSON object: {"mappings", "settings", "aliases"} of an
  // index, {"columns": [{"name", "type", "nullable"}], "key": [name]} of a table; "{}": nothing.
  std::string metadata = "{}";
  // Why it cannot be read, which matters only to those who want it.
  std::optional<Error> refusal = {};
};

// A range of a collection that is read in one go. Positions are the source's own (byte offsets, row
// keys, Lucene document numbers): stable names for places, which outlive a connection and a
// process.
struct Partition {
  std::string collection;
  int shard = 0;
  std::string part = {};   // what of the collection, where the source needs to know: a file, say
  std::string begin = {};  // empty: the first document
  std::string end = {};    // the first position that is not read; empty: to the last document
  std::optional<int64_t> documents = {};  // how many there are, as far as the source knows
  std::optional<int64_t> bytes = {};
  // Read only after all others of its collection and shard: what has changed in the source while
  // they were read.
  bool follows = false;
  // What the source knows it by when it is read later: what was replaced meanwhile is refused with
  // kCorrupt. Empty: it cannot tell.
  std::string mark = {};

  bool operator==(const Partition&) const = default;
};

// What became of the documents read: read = written + skipped + failed, always.
struct Counts {
  int64_t read = 0;
  int64_t written = 0;
  int64_t skipped = 0;  // by a transform, or by the sink: see Refused
  int64_t failed = 0;   // in the dead letters, each with its reason
  int64_t bytes = 0;    // of the bodies read

  Counts& operator+=(const Counts& other);
  bool operator==(const Counts&) const = default;
};

// How far a partition has come: every document before `position` is safely in the sink, or
// accounted for in the counts. Who keeps it keeps all of it, as ToJson gives it.
struct Progress {
  std::string position = {};  // empty: at the partition's begin
  std::string end = {};       // the partition's, lowered by every split
  Counts counts = {};
  std::vector<std::string> former_ends = {};  // `end` before each split, the first one first

  // The same progress of a partition that ends here.
  Progress CutAt(const std::string& new_end) const;

  // One line of JSON, valid UTF-8 whatever the positions hold.
  std::string ToJson() const;
  static Result<Progress> FromJson(std::string_view json);
  bool operator==(const Progress&) const = default;
};

// Reads one partition from a position on. Used by one thread at a time.
class Reader {
 public:
  virtual ~Reader() = default;

  // The next document; none: the end. What cannot be read as a document is one with a defect; an
  // error ends the reading: it is about the source, not about one document.
  virtual Result<std::optional<Document>> Next() = 0;

  // Gives up about the second half of what is not read yet: the answer is where it begins, and
  // Next ends there from now on. None: too little is left, or the source cannot tell.
  virtual Result<std::optional<std::string>> Split() { return std::nullopt; }
};

// Where documents come from. Thread-safe; must outlive its readers.
class Source {
 public:
  virtual ~Source() = default;

  // Everything there is, in a fixed order.
  virtual Result<std::vector<Collection>> Collections() = 0;

  // One of them, with all that the source knows of its shape; none: there is none of that name.
  virtual Result<std::optional<Collection>> Describe(const std::string& collection);

  // What belongs to no collection, as a JSON object: {"index_templates": {name: template},
  // "component_templates": …, "templates": …} of a cluster.
  virtual Result<std::string> GlobalMetadata() { return std::string("{}"); }

  // Whether its documents are as they were written: a text that looks like a number is a text, null
  // is not missing.
  virtual bool KeepsTypes() const { return false; }
  virtual bool KeepsRouting() const { return false; }

  // Whether there may be deleted ones among its documents.
  virtual bool HasDeletes() const { return false; }

  // The same partitions every time, as long as the source does not change.
  virtual Result<std::vector<Partition>> Partitions(const std::string& collection) = 0;

  // Reads [position, partition.end); `position` empty: from partition.begin. Nothing of what lies
  // before is read. `stop` ends waiting and retrying inside with kCancelled.
  virtual Result<std::unique_ptr<Reader>> Read(const Partition& partition,
                                               const std::string& position,
                                               std::stop_token stop) = 0;

  // How many documents reading all of these partitions, those of a whole collection, must have
  // given, by the source's own count, which does not come from reading them; none: it cannot tell,
  // or there were changes since the partitions were made.
  virtual Result<std::optional<int64_t>> CountAgain(const std::vector<Partition>& /*partitions*/) {
    return std::nullopt;
  }

  // About how much of the partition lies before `position`, from 0 to 1; none: nobody knows.
  virtual std::optional<double> FractionBefore(const Partition& partition,
                                               const std::string& position) = 0;
};

// Memory for what is edited or copied; freed as a whole, kept for the next use by Clear.
class Arena {
 public:
  std::string_view Copy(std::string_view bytes);
  // Room for `size` bytes that the caller fills. Never moves.
  char* Allocate(size_t size);
  void Clear();

 private:
  struct Block {
    std::unique_ptr<char[]> bytes;
    size_t size = 0;
  };
  std::deque<Block> blocks_;
  size_t block_ = 0;  // the one in use
  size_t used_ = 0;   // of it
};

struct BatchLimits {
  size_t max_docs = 1'000;
  size_t max_bytes = 8 * 1024 * 1024;  // of ids and bodies; a larger document goes alone
};

// Documents that are written together, with their memory.
struct Batch {
  std::vector<Document> documents;
  Arena arena;

  void Add(const Document& document);  // copies
  void Clear();
};

// Edits documents one by one. An instance is used by one thread.
class Transform {
 public:
  virtual ~Transform() = default;

  // Edits `document`, with new bytes in `arena`. False: it is to be skipped. An error is about this
  // document alone, which fails with it.
  virtual Result<bool> Apply(Document& document, Arena& arena) = 0;
};

// Makes the transforms of one thread, in the order in which they are applied. Thread-safe.
class TransformPlan {
 public:
  virtual ~TransformPlan() = default;
  virtual Result<std::vector<std::unique_ptr<Transform>>> Make() const = 0;
  virtual std::string TargetName(const std::string& collection) const = 0;

  // Whether documents may be other ones afterwards. False: collections get other names at most.
  virtual bool EditsDocuments() const { return true; }

  // The collection as the transforms leave it: its new name, and metadata that fits the documents.
  virtual Collection Target(const Collection& collection) const {
    return {TargetName(collection.name), collection.metadata};
  }
};

// Ranks from here on belong to items that follow others.
inline constexpr int64_t kFirstFollowerRank = 2048;

// Who writes: the holder of an item, by the highest epoch granted. A sink that keeps fences refuses
// an older epoch with kLeaseLost, from the moment on when a newer one has opened the item.
struct Fence {
  std::string run;          // a name for the whole migration
  std::string incarnation;  // of the run's store: another one is not a continuation of this one
  bool adopts = false;      // what an earlier incarnation of the run wrote is to be continued
  bool alone = false;       // nobody else ever opens this item: there is nothing to keep for later
  std::string item;
  int64_t epoch = 1;
  std::string origin =
      {};  // the partition that the item is of, by collection, shard and part: with a
           // document's position it names that document, whichever item it is in
  // For a sink that has no fence but an order of each document's versions: a later one wins. When
  // the run's incarnation began (0: there is no order), and then by the epochs of the item and of
  // those that it was a part of.
  int64_t since_ms = 0;
  int64_t rank = 1;
  // Of this epoch. Only a store that lost commits grants an epoch twice: the second holder of an
  // epoch that another has opened is refused like an older one.
  std::string holder = {};
};

// A document that the sink will never take, by its place in the batch.
struct Refused {
  size_t index = 0;
  std::string reason;
  // Left out by the target's own rules: it has a later version, or a trigger drops the row. Counts
  // as skipped and is no dead letter. A table says how many rows a trigger dropped, not which:
  // their indices mean nothing.
  bool skipped = false;
};

// Until when a call may go on, retries included.
struct Patience {
  MonoTime deadline = MonoTime::max();
  std::stop_token stop = {};
};

// Writes the documents of one item. Used by one thread.
class Writer {
 public:
  virtual ~Writer() = default;

  // What the sink itself knows of this item's progress, as of the last write that it kept; none:
  // the sink does not keep it. What it knows is right, whatever others say: Progress{}, with an
  // empty end, if it keeps progress and has none of this item.
  virtual const std::optional<Progress>& Known() const = 0;

  // Whether an earlier holder has sealed the item: nothing may be written, its progress is Known().
  virtual bool Sealed() const { return false; }

  // Writes all documents, in order, each either taken or refused for good. `after` is the progress
  // when that is done, but for the failed ones among `written`: a sink that keeps it corrects that
  // and stores it in the same transaction as the documents. An empty batch only stores `after`.
  // Replaying a batch after kUnknownOutcome or a crash leaves what writing it once would have left.
  virtual Result<std::vector<Refused>> Write(const Batch& batch, const Progress& after,
                                             const Patience& patience) = 0;

  // Refusals must not be lost when a crash follows a write that counts them as failed. A sink that
  // keeps progress calls `record` for each refused document before its write takes effect, and says
  // true here; by default whoever writes records what Write answers. Called before the first Write.
  using RefusalRecorder = std::function<Status(const Document& document, std::string_view reason)>;
  // NOLINTNEXTLINE(performance-unnecessary-value-param): who implements it keeps it
  virtual bool RecordsRefusals(RefusalRecorder /*record*/) { return false; }

  // Makes everything written durable. Only then may progress be checkpointed elsewhere.
  virtual Status Flush() { return {}; }

  // From now on no write to this item has an effect, by whoever and however late. The answer is the
  // progress that counts; none: the sink keeps none, and what was acknowledged counts.
  virtual Result<std::optional<Progress>> Seal() { return std::nullopt; }

  // All documents are written: makes them durable and publishes them, where that is a step of its
  // own. Repeatable.
  virtual Status Finish() { return {}; }
};

// What is to be done to a target so that a collection fits in, in words for a person.
struct TargetChange {
  std::string collection;
  std::string change;  // "create table orders (id bigint, …)"
};

// Where documents go. Thread-safe; must outlive its writers.
class Sink {
 public:
  virtual ~Sink() = default;

  // Brings the target into shape for the collection, already renamed; what is there already is left
  // alone. With `evaluate` it only says what would be done. Repeatable.
  virtual Result<std::vector<TargetChange>> Prepare(const Collection& collection,
                                                    bool evaluate) = 0;

  // The same for what belongs to no collection.
  virtual Result<std::vector<TargetChange>> PrepareGlobal(const std::string& metadata,
                                                          bool evaluate) {
    static_cast<void>(metadata), static_cast<void>(evaluate);
    return std::vector<TargetChange>{};
  }

  // Whether its writers take deleted documents.
  virtual bool CanDelete() const { return false; }

  // Whether documents of the same id, or key, replace one another in a collection, and where those
  // of a collection go, by which it is told whether two go to the same place.
  virtual bool ReplacesById(const Collection& /*collection*/) const { return false; }
  virtual std::string Place(const std::string& collection) const { return collection; }

  // Which target a prepared collection goes to, by more than its name: a table that was dropped and
  // created again, or a file that was replaced, has another identity, and so has a target that lost
  // what was written to it, where the sink can tell. Empty: it cannot. kNotFound: there is no
  // target any more.
  virtual Result<std::string> Identity(const std::string& /*collection*/) { return std::string(); }

  // How much is best written at once, where nobody says otherwise.
  virtual BatchLimits PreferredLimits() const { return {}; }

  // Opens `collection` for one item. An older epoch is refused from now on.
  virtual Result<std::unique_ptr<Writer>> Open(const std::string& collection,
                                               const Fence& fence) = 0;

  // Every item of the collection is finished: brings the target into its final shape. Repeatable,
  // by any process.
  virtual Status Finish(const std::string& /*collection*/) { return {}; }
};

}  // namespace muster
