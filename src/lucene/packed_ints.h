#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lucene/byte_reader.h"

namespace muster::lucene {

// The number at `index` among numbers of `bits` (1..64) that lie bit by bit: most significant bit
// first in big order, least significant first in little order. `bytes` must hold it.
uint64_t PackedAt(std::string_view bytes, uint32_t bits, uint64_t index, ByteOrder order);

// How many bytes `count` numbers of `bits` take.
constexpr uint64_t PackedBytes(uint64_t count, uint32_t bits) { return (count * bits + 7) / 8; }

// Reads the `count` numbers of a chunk of stored fields: how many fields, or how many bytes, each
// document has. The form follows from the reader's byte order.
void ReadChunkInts(ByteReader& reader, size_t count, std::vector<uint32_t>& values);

// Numbers that mostly grow by the same step: kept as a line per block, and what each is off it.
class DirectMonotonic {
 public:
  // Reads the description of `count` numbers in blocks of 2^shift.
  static DirectMonotonic ReadMeta(ByteReader& meta, uint64_t count, uint32_t shift);

  // All the numbers; `data` is the region that the description belongs to. kCorrupt, with `origin`,
  // when they do not lie in it.
  Result<std::vector<uint64_t>> Decode(std::string_view data, ByteOrder order,
                                       std::string_view origin) const;

 private:
  struct Block {
    uint64_t min;
    float average;
    uint64_t offset;
    uint32_t bits;
  };
  uint64_t count_ = 0;
  uint32_t shift_ = 0;
  std::vector<Block> blocks_;
};

}  // namespace muster::lucene
