#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lucene/doc_set.h"
#include "lucene/doc_values.h"
#include "lucene/document.h"
#include "lucene/segments.h"
#include "lucene/shard_directory.h"
#include "lucene/stored_fields.h"

namespace muster::lucene {

// Counters of a read. `documents` have an id and are live; the rest was skipped.
struct ShardCounts {
  uint64_t documents = 0;
  uint64_t nested = 0;          // live, but part of the next document
  uint64_t deleted = 0;         // hard or softly
  uint64_t without_source = 0;  // among `documents`
};

// A segment's numbers from the commit; nested documents count as documents here.
struct SegmentSummary {
  std::string name;
  std::string lucene_version;
  uint64_t documents = 0;  // including deleted ones
  uint64_t deleted = 0;    // hard or softly
};

// A field that is read beside the documents: from stored fields or from doc values.
struct WantedField {
  std::string name;
  bool is_stored = false;
};

// The documents of a shard, in order. Positions are Lucene document numbers, across the segments in
// commit order: from 0 to `end`, with gaps for deleted or nested documents. They are the same for
// every reader of this shard of this snapshot.
//
// Keeps one chunk of documents in memory, and for one segment its chunk index and deletions. One
// thread at a time; refers to the directory, which must outlive it.
class ShardReader {
 public:
  static Result<ShardReader> Open(const ShardDirectory& directory);

  // The documents that `other`, the same shard in another snapshot, does not have in the same
  // place: all those of segments that are not there, and those deleted there. Positions are the
  // same as without it. Refers to both.
  static Result<ShardReader> OpenWithout(const ShardDirectory& directory,
                                         const ShardDirectory& other);

  // The position after the last document.
  uint64_t end() const { return end_; }
  const ShardCounts& counts() const { return counts_; }
  // In document order.
  std::vector<SegmentSummary> Segments() const;
  // Whether a segment has documents with custom routing.
  Result<bool> HasRouting() const;

  // Continues at the first document at or after `position`, without decompressing anything before
  // it.
  void Seek(uint64_t position) { next_ = position; }

  // Reads the values of these fields, too, into Document::fields. Before the first `Next`.
  void ReadFields(std::vector<WantedField> fields) { wanted_ = std::move(fields); }

  // The next document; false at the end. Its views are valid until the next call. After an error
  // nothing more can be read.
  Result<bool> Next(Document& document);

 private:
  struct Segment {
    SegmentFiles files;
    uint64_t base = 0;
    std::optional<SegmentFiles> other;  // the same segment in the other snapshot
  };
  // The state of the one segment being read.
  struct OpenSegment {
    uint64_t begin;  // its positions
    uint64_t end;
    StoredFields stored;
    DocumentFields fields;
    std::optional<DocSet> live;
    NumberForm form;
    std::string place;
    Chunk chunk;
    std::vector<std::unique_ptr<DocValues>> doc_values;  // of wanted fields; may be null
  };

  Status OpenSegmentAt(uint64_t position);
  Status OpenFields(const SegmentFiles& files, const std::vector<FieldInfo>& fields,
                    OpenSegment& segment) const;
  // The document at `doc` of the open segment; false if it is part of another.
  Result<bool> Parse(uint32_t doc, Document& document);

  std::vector<Segment> segments_;
  uint64_t end_ = 0;
  uint64_t next_ = 0;
  bool is_without_ = false;
  std::vector<WantedField> wanted_;
  std::unique_ptr<OpenSegment> open_;
  ShardCounts counts_;
};

}  // namespace muster::lucene
