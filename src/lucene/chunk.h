#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "lucene/byte_reader.h"

namespace muster::lucene {

// A chunk's compression.
enum class Packing {
  kLz4,
  kDeflate,
  kLz4Dictionary,
  kDeflateDictionary,
  kZstd,
  kZstdDictionary,
  kZstdBlocks
};

// Common to all chunks of a file.
struct ChunkFormat {
  Packing packing = Packing::kLz4;
  ByteOrder order = ByteOrder::kBig;
  uint32_t chunk_size = 0;      // bytes of each slice of a sliced chunk
  uint32_t token_flags = 0;     // how many bits of the token are flags, the lowest being "sliced"
  bool slices_by_size = false;  // Lucene 4.1: no flag, sliced from twice the chunk's size on
  bool never_slices = false;    // the first version of Lucene 4.1
};

// Documents that were compressed together, decompressed. Reusable: keeps its memory.
class Chunk {
 public:
  // Decodes a chunk from all of its bytes. kCorrupt unless it contains exactly the documents
  // [first_doc, first_doc + docs). `base` is the offset of the bytes in `origin`.
  Status Decode(std::string_view bytes, const ChunkFormat& format, uint64_t first_doc,
                uint64_t docs, std::string_view origin, uint64_t base);

  uint64_t first_doc() const { return first_doc_; }
  size_t size() const { return field_counts_.size(); }
  bool Holds(uint64_t doc) const { return doc >= first_doc_ && doc - first_doc_ < size(); }
  uint32_t FieldCount(size_t index) const { return field_counts_[index]; }
  std::string_view Document(size_t index) const {
    return {buffer_.get() + starts_[index], lengths_[index]};
  }

 private:
  void MakeRoom(size_t size);

  uint64_t first_doc_ = 0;
  std::vector<uint32_t> field_counts_;
  std::vector<uint32_t> lengths_;
  std::vector<uint64_t> starts_;
  std::unique_ptr<char[]> buffer_;
  size_t capacity_ = 0;
};

// Scratch space `Unpack` needs after its output; its content is undefined.
constexpr size_t kUnpackSpare = 64;

// Decompresses one unit of `size` bytes to `to` from the reader's position, and advances the reader
// past it. Failures are latched in the reader.
void Unpack(ByteReader& reader, Packing packing, char* to, size_t size);

}  // namespace muster::lucene
