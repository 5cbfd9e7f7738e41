#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lucene/doc_set.h"
#include "lucene/document.h"
#include "lucene/segments.h"
#include "lucene/shard_directory.h"
#include "lucene/stored_fields.h"

namespace muster::lucene {

// What was met while reading. `documents` have an id and are live; the rest was passed over.
struct ShardCounts {
  uint64_t documents = 0;
  uint64_t nested = 0;          // live, but part of the document that follows
  uint64_t deleted = 0;         // hard or softly
  uint64_t without_source = 0;  // among `documents`
};

// What the commit says of a segment; nested documents count as documents here.
struct SegmentSummary {
  std::string name;
  std::string lucene_version;
  uint64_t documents = 0;  // deleted ones included
  uint64_t deleted = 0;    // hard or softly
};

// The documents of a shard, one after the other. Positions are the numbers of Lucene's documents,
// over the segments in the order of the commit: from 0 to `end`, with gaps where documents are
// deleted or nested. They are the same for everybody who reads this shard of this snapshot.
//
// Holds one chunk of documents in memory, and of one segment where its chunks are and what is
// deleted. One thread at a time; refers to the directory, which must outlive it.
class ShardReader {
 public:
  static Result<ShardReader> Open(const ShardDirectory& directory);

  // The documents that `other`, the same shard in another snapshot, does not hold in the same
  // place: all those of segments that are not there, and those that are deleted there. Positions
  // are the same as without it. Refers to both.
  static Result<ShardReader> OpenWithout(const ShardDirectory& directory,
                                         const ShardDirectory& other);

  // The position behind the last document.
  uint64_t end() const { return end_; }
  const ShardCounts& counts() const { return counts_; }
  // In the order of their documents.
  std::vector<SegmentSummary> Segments() const;
  // Whether a segment has documents with a routing of their own.
  Result<bool> HasRouting() const;

  // Goes on at the first document at or behind `position`, without unpacking what comes before it.
  void Seek(uint64_t position) { next_ = position; }

  // The next document; false at the end. Its views hold until the next call. After an error
  // nothing more can be read.
  Result<bool> Next(Document& document);

 private:
  struct Segment {
    SegmentFiles files;
    uint64_t base = 0;
    std::optional<SegmentFiles> other;  // the same segment in the other snapshot
  };
  // What is open of the one segment that is being read.
  struct OpenSegment {
    uint64_t begin;  // its positions
    uint64_t end;
    StoredFields stored;
    DocumentFields fields;
    std::optional<DocSet> live;
    NumberForm form;
    std::string place;
    Chunk chunk;
  };

  Status OpenSegmentAt(uint64_t position);

  std::vector<Segment> segments_;
  uint64_t end_ = 0;
  uint64_t next_ = 0;
  bool is_without_ = false;
  std::unique_ptr<OpenSegment> open_;
  ShardCounts counts_;
};

}  // namespace muster::lucene
