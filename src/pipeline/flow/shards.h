#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "muster/migrate.h"

namespace muster::pipeline {

// What the engine does with collections and their shards.

// kIncompatible: the source reports deleted documents, and the sink cannot delete.
Status CheckDeletes(const Source& source, const Sink& sink);

// The selected collections of the source; without a filter, all. Fails for the first that cannot be
// read.
Result<std::vector<Collection>> SelectCollections(Source& source, const CollectionFilter& allowed);

// kConflict: several of these collections share a target in which documents with the same id
// replace each other, and PipelineOptions::merge is off. kInvalid: a target is a table that is read
// from.
Status CheckTargets(const Pipeline& pipeline, const std::vector<Collection>& collections);

// As PrepareCollections, for collections that are selected already: once targets exist, the source
// may list them, too.
Result<std::vector<TargetChange>> PrepareSelected(Pipeline& pipeline,
                                                  const std::vector<Collection>& collections,
                                                  bool evaluate);

// Equal for all names of one target: of an alias and its index. A target that does not exist yet
// has its place in the sink.
Result<std::string> TargetKey(Sink& sink, const std::string& target);

// The collections that share a target with others, by TargetKey.
Result<std::map<std::string, std::vector<std::string>>> MergedCollections(
    const Pipeline& pipeline, const std::vector<std::string>& collections);

// kCorrupt: the target that these collections share has fewer documents than were written to it, so
// some have replaced others. `written`: without repeats of the same document.
Status CheckMerged(const Pipeline& pipeline, const std::vector<std::string>& collections,
                   int64_t written);

// A writer for an item of `collection` that also writes to the targets its documents choose:
// `writer`, which is open for the collection's own target, and others with the same fence, each
// opened when the first document goes there. Only sinks that keep no progress take chosen targets,
// so a batch that ends halfway is written again as a whole. If no document can choose one, returns
// `writer` itself. `pipeline` must outlive the result. Errors are those of ChosenTargets::Admit and
// Sink::Open.
Result<std::unique_ptr<Writer>> DividedWriter(const Pipeline& pipeline,
                                              const std::string& collection, const Fence& fence,
                                              std::unique_ptr<Writer> writer);

// kNotFound: the sink has no target of this name.
Status CheckExists(Sink& sink, const std::string& target);

// Whether the sink writes files. These are complete once their collection is finished: nothing can
// be added to them later.
bool WritesFiles(const Sink& sink);

// Names a shard from a position on: indexName__shardNumber__startingDocId, orders__0__0 from the
// first document on. Every name and position round-trips, even with `__`; the text is always valid
// UTF-8 without control characters.
struct WorkItemName {
  std::string collection;
  int shard = 0;
  std::string position = {};  // empty: the first document

  std::string ToString() const;
  static Result<WorkItemName> Parse(std::string_view text);
  bool operator==(const WorkItemName&) const = default;
};

// Lets a shard's cursor split off part of it.
class Rest {
 public:
  virtual ~Rest() = default;
  // As Reader::Split; the reader keeps what it has read ahead.
  virtual Result<std::optional<std::string>> Split() = 0;
};

// Accompanies the migration of one shard.
class WorkItemCursor {
 public:
  virtual ~WorkItemCursor() = default;

  // A document of the batch that Advance will be called for has failed.
  virtual void Failed(const Document& /*document*/, std::string_view /*reason*/) {}

  // A batch is in the sink; `progress` is the shard's new progress. May lower `progress.end` after
  // a split. kCancelled ends the shard in good order between two batches, any other failure at
  // once.
  virtual Status Advance(Progress& progress, Writer& writer, Rest& rest) = 0;

  // How long the next write may take.
  virtual Patience NextPatience() = 0;
};

// Migrates one partition from `start` on: reads, transforms and writes batch after batch, in order,
// up to start.end or, if empty, the partition's end. Returns the final progress; calling Finish is
// up to the caller. kCancelled: stopped in good order, after the last batch reported to `cursor`.
// `writer` is open for this item.
Result<Progress> MigrateShard(Pipeline& pipeline, const Partition& partition,
                              const std::string& item, const Progress& start, Writer& writer,
                              WorkItemCursor& cursor, std::stop_token stop);

// kCorrupt: the source's own count differs from the number of documents read from the collection's
// partitions, and the source has not changed meanwhile. `read` returns that number; it is called
// only if the source can count.
Status CheckCount(Source& source, const std::string& collection,
                  const std::vector<Partition>& partitions,
                  const std::function<Result<int64_t>()>& read);

}  // namespace muster::pipeline
