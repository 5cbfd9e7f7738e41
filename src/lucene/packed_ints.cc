#include "lucene/packed_ints.h"

#include <algorithm>
#include <bit>

namespace muster::lucene {
namespace {

constexpr size_t kGroup = 128;

void ReadPacked(ByteReader& reader, size_t count, std::vector<uint32_t>& values) {
  const uint32_t bits = reader.VInt();
  if (bits == 0) {
    values.assign(count, reader.VInt());
    return;
  }
  if (bits > 31) return reader.Fail("numbers of " + std::to_string(bits) + " bits");
  const std::string_view bytes = reader.Take(PackedBytes(count, bits));
  if (!reader.ok()) return;
  values.resize(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = static_cast<uint32_t>(PackedAt(bytes, bits, i, ByteOrder::kBig));
  }
}

// Groups of 128 numbers are stored in columns for SIMD: the first word contains the numbers 0, n,
// 2n..., from its top bits down. The remainder follows one by one.
void ReadColumns(ByteReader& reader, size_t count, std::vector<uint32_t>& values) {
  const uint8_t width = reader.U8();
  if (width == 0) {
    values.assign(count, reader.VInt());
    return;
  }
  if (width != 8 && width != 16 && width != 32) {
    return reader.Fail("numbers of " + std::to_string(width) + " bits");
  }
  if (reader.left() < count * (width / 8)) return reader.Fail("it ends within its numbers");
  values.resize(count);
  const size_t lanes = 64 / width;
  const size_t words = kGroup / lanes;
  size_t done = 0;
  for (; count - done >= kGroup; done += kGroup) {
    for (size_t word = 0; word < words; ++word) {
      const uint64_t bits = reader.U64();
      for (size_t lane = 0; lane < lanes; ++lane) {
        values[done + word + lane * words] =
            static_cast<uint32_t>(bits >> (64 - width * (lane + 1)) & (UINT64_MAX >> (64 - width)));
      }
    }
  }
  for (; done < count; ++done) {
    values[done] = width == 8 ? reader.U8() : width == 16 ? reader.U16() : reader.U32();
  }
}

}  // namespace

uint64_t PackedAt(std::string_view bytes, uint32_t bits, uint64_t index, ByteOrder order) {
  uint64_t value = 0;
  uint64_t bit = index * bits;
  for (uint32_t got = 0; got < bits;) {
    const auto byte = static_cast<uint8_t>(bytes[bit / 8]);
    const auto skip = static_cast<uint32_t>(bit % 8);
    const uint32_t take = std::min(8 - skip, bits - got);
    const uint32_t mask = (1U << take) - 1;
    if (order == ByteOrder::kBig) {
      value = value << take | (byte >> (8 - skip - take) & mask);
    } else {
      value |= static_cast<uint64_t>(byte >> skip & mask) << got;
    }
    got += take;
    bit += take;
  }
  return value;
}

void ReadChunkInts(ByteReader& reader, size_t count, std::vector<uint32_t>& values) {
  values.clear();
  if (reader.order() == ByteOrder::kBig) {
    ReadPacked(reader, count, values);
  } else {
    ReadColumns(reader, count, values);
  }
  if (!reader.ok()) values.assign(count, 0);
}

DirectMonotonic DirectMonotonic::ReadMeta(ByteReader& meta, uint64_t count, uint32_t shift) {
  constexpr size_t kBlockBytes = 8 + 4 + 8 + 1;
  DirectMonotonic numbers;
  if (shift > 31) {
    meta.Fail("blocks of 2^" + std::to_string(shift) + " numbers");
    return numbers;
  }
  const uint64_t blocks = (count >> shift) + ((count & ((1ULL << shift) - 1)) != 0 ? 1 : 0);
  if (blocks > meta.left() / kBlockBytes) {
    meta.Fail("more blocks of numbers than it has room for");
    return numbers;
  }
  numbers.count_ = count;
  numbers.shift_ = shift;
  for (uint64_t i = 0; i < blocks; ++i) {
    Block block{};
    block.min = meta.U64();
    block.average = std::bit_cast<float>(meta.U32());
    block.offset = meta.U64();
    block.bits = meta.U8();
    meta.Expect(block.bits <= 64, "numbers of more than 64 bits");
    numbers.blocks_.push_back(block);
  }
  return numbers;
}

std::optional<uint64_t> DirectMonotonic::Block::LineAt(uint64_t index) const {
  // In single precision, as written: in double it would round differently.
  const float expected = static_cast<float>(index) * average;
  if (!(expected > -0x1p62F && expected < 0x1p62F)) return std::nullopt;
  return min + static_cast<uint64_t>(static_cast<int64_t>(expected));
}

std::optional<DirectMonotonic::Place> DirectMonotonic::PlaceOf(uint64_t index) const {
  const uint64_t block_number = index >> shift_;
  if (index >= count_ || block_number >= blocks_.size()) return std::nullopt;
  const Block& block = blocks_[block_number];
  const uint64_t in_block = index & ((1ULL << shift_) - 1);
  const auto line = block.LineAt(in_block);
  if (!line) return std::nullopt;
  return Place{*line, block.offset, block.bits, in_block};
}

Result<std::vector<uint64_t>> DirectMonotonic::Decode(std::string_view data, ByteOrder order,
                                                      std::string_view origin) const {
  std::vector<uint64_t> values;
  values.reserve(count_);
  const uint64_t block_size = 1ULL << shift_;
  for (size_t j = 0; j < blocks_.size(); ++j) {
    const Block& block = blocks_[j];
    const uint64_t count = std::min(block_size, count_ - j * block_size);
    if (block.bits > 0 && (block.offset > data.size() ||
                           PackedBytes(count, block.bits) > data.size() - block.offset)) {
      return Error{Code::kCorrupt, std::string(origin) + ": its numbers lie beyond its end"};
    }
    const std::string_view deltas = block.bits > 0 ? data.substr(block.offset) : data;
    for (uint64_t i = 0; i < count; ++i) {
      const auto line = block.LineAt(i);
      if (!line) {
        return Error{Code::kCorrupt, std::string(origin) + ": its numbers grow beyond 64 bits"};
      }
      const uint64_t delta = block.bits == 0 ? 0 : PackedAt(deltas, block.bits, i, order);
      values.push_back(*line + delta);
    }
  }
  return values;
}

}  // namespace muster::lucene
