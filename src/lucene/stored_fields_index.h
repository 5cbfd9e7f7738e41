#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lucene/packed_ints.h"
#include "lucene/segment_files.h"

namespace muster::lucene {

// Where the chunks of a `.fdt` are, and which documents they contain.
struct ChunkIndex {
  std::vector<uint64_t> first_docs;
  std::vector<uint64_t> positions;
  uint64_t end = 0;  // of the last chunk

  size_t size() const { return positions.size(); }
  uint64_t EndOf(size_t chunk) const { return chunk + 1 < size() ? positions[chunk + 1] : end; }
  // The chunk that contains an existing document.
  size_t ChunkOf(uint64_t doc) const;

  // kCorrupt unless chunks are contiguous, from `start` to `end` before `limit`, and contain the
  // documents 0..max_doc-1.
  Status Check(uint64_t start, uint64_t limit, uint64_t max_doc, std::string_view origin) const;
};

// Reads the index of Lucene 4.1 to 8.4, the body of `.fdx`, up to its end marker. Leaves `end`
// unset: it follows in the file, if the version has it.
ChunkIndex ReadBlockIndex(ByteReader& reader);

// The index of Lucene 8.5 and later: its description from `.fdm`, its numbers from `.fdx`.
class MonotonicIndex {
 public:
  static MonotonicIndex ReadMeta(ByteReader& meta, uint64_t max_doc);
  Result<ChunkIndex> Decode(std::string_view fdx, ByteOrder order, std::string_view origin) const;

 private:
  DirectMonotonic docs_;
  DirectMonotonic pointers_;
  uint64_t docs_start_ = 0;
  uint64_t pointers_start_ = 0;
  uint64_t pointers_end_ = 0;
  uint64_t max_pointer_ = 0;
};

}  // namespace muster::lucene
