#pragma once

#include <cstdint>
#include <string>

#include "lucene/chunk.h"
#include "lucene/document.h"
#include "lucene/segment_files.h"
#include "lucene/stored_fields_index.h"

namespace muster::lucene {

// The stored fields of a segment, chunk by chunk: all fields of a document are in one chunk, and
// each chunk can be read alone. One thread at a time.
class StoredFields {
 public:
  // Reads the index but no documents. kIncompatible, with the codec's name, for an unknown format.
  static Result<StoredFields> Open(const SegmentFiles& files);

  size_t chunks() const { return index_.size(); }
  ByteOrder order() const { return format_.order; }
  // Lucene 4.1 stored numbers in full width.
  NumberForm number_form() const {
    return format_.slices_by_size ? NumberForm::kFixed : NumberForm::kVariable;
  }
  // The chunk that contains a document of the segment.
  size_t ChunkOf(uint32_t doc) const { return index_.ChunkOf(doc); }

  // Reads and decompresses one. When all were read in order from the first, the file's CRC is
  // checked with the last: kCorrupt if it is wrong, with that chunk withheld.
  Status ReadChunk(size_t chunk, Chunk& into);

 private:
  StoredFields(const ShardFileView& fdt, uint32_t max_doc) : fdt_(fdt), max_doc_(max_doc) {}
  Status ReadBlockIndexed(const SegmentFiles& files, const std::string& codec, uint32_t version);
  Status ReadMonotonicIndexed(const SegmentFiles& files, uint32_t version);
  Status CheckEnd() const;
  Result<std::string_view> BytesOf(size_t chunk);

  ShardFileView fdt_;
  uint32_t max_doc_;
  ChunkFormat format_;
  ChunkIndex index_;
  // What was read last, from the start of a chunk to the end of the same or a later one.
  std::string window_;
  uint64_t window_start_ = 0;
  uint64_t ahead_ = 0;  // read-ahead size; grows while chunks are read in order
  size_t next_chunk_ = 0;
  bool has_footer_ = true;
  uint32_t crc_ = 0;
  size_t crc_chunks_ = 0;  // number of leading chunks in crc_
};

}  // namespace muster::lucene
