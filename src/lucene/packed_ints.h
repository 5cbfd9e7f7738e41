#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "lucene/byte_reader.h"

namespace muster::lucene {

// The number at `index` among bit-packed numbers of `bits` (1..64): most significant bit first in
// big-endian order, least significant first in little-endian. `bytes` must contain it.
uint64_t PackedAt(std::string_view bytes, uint32_t bits, uint64_t index, ByteOrder order);

// How many bytes `count` numbers of `bits` take.
constexpr uint64_t PackedBytes(uint64_t count, uint32_t bits) { return (count * bits + 7) / 8; }

// Reads the `count` numbers of a stored-fields chunk: how many fields, or bytes, each document has.
// The format depends on the reader's byte order.
void ReadChunkInts(ByteReader& reader, size_t count, std::vector<uint32_t>& values);

// Numbers that mostly grow by a constant step: stored as a line per block, plus each number's
// offset from it.
class DirectMonotonic {
 public:
  // Reads the description of `count` numbers in blocks of 2^shift.
  static DirectMonotonic ReadMeta(ByteReader& meta, uint64_t count, uint32_t shift);

  // All numbers; `data` is the region of the description. kCorrupt, with `origin`, if they lie
  // outside it.
  Result<std::vector<uint64_t>> Decode(std::string_view data, ByteOrder order,
                                       std::string_view origin) const;

  // Where the number at `index` is: `base`, plus the packed number at `index` of `bits` (0: none)
  // from `offset` of the region on. None: there is no such number.
  struct Place {
    uint64_t base = 0;
    uint64_t offset = 0;
    uint32_t bits = 0;
    uint64_t index = 0;
  };
  std::optional<Place> PlaceOf(uint64_t index) const;

 private:
  struct Block {
    uint64_t min;
    float average;
    uint64_t offset;
    uint32_t bits;

    // The block's line at the number `index` in it; none beyond 64 bits.
    std::optional<uint64_t> LineAt(uint64_t index) const;
  };
  uint64_t count_ = 0;
  uint32_t shift_ = 0;
  std::vector<Block> blocks_;
};

}  // namespace muster::lucene
