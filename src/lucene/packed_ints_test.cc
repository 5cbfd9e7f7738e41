#include "lucene/packed_ints.h"

#include <gtest/gtest.h>

#include <bit>

#include "lucene/byte_writer.h"

namespace muster::lucene {
namespace {

TEST(PackedAt, ReadsBitsFromEitherEnd) {
  const std::string bytes("\xB4\x2F", 2);  // 10110100 00101111
  EXPECT_EQ(PackedAt(bytes, 3, 0, ByteOrder::kBig), 0b101);
  EXPECT_EQ(PackedAt(bytes, 3, 2, ByteOrder::kBig), 0b000);
  EXPECT_EQ(PackedAt(bytes, 12, 0, ByteOrder::kBig), 0xB42);
  EXPECT_EQ(PackedAt(bytes, 3, 0, ByteOrder::kLittle), 0b100);
  EXPECT_EQ(PackedAt(bytes, 12, 0, ByteOrder::kLittle), 0xFB4);
}

TEST(ChunkInts, ReadsPackedNumbersOfOldFormats) {
  const std::string bytes("\x04\x12\x30", 3);
  ByteReader reader(bytes, "file");
  std::vector<uint32_t> values;
  ReadChunkInts(reader, 3, values);
  EXPECT_EQ(values, (std::vector<uint32_t>{1, 2, 3}));
  EXPECT_TRUE(EveryTruncation(bytes, [&](auto cut) {
    ByteReader cut_reader(cut, "file");
    ReadChunkInts(cut_reader, 3, values);
    return !cut_reader.ok() && values.size() == 3;
  }));
}

TEST(ChunkInts, ReadsTheSameNumberForAll) {
  for (const ByteOrder order : {ByteOrder::kBig, ByteOrder::kLittle}) {
    ByteReader reader(std::string_view("\0\7", 2), "file", order);
    std::vector<uint32_t> values;
    ReadChunkInts(reader, 2, values);
    EXPECT_EQ(values, (std::vector<uint32_t>{7, 7}));
  }
}

TEST(ChunkInts, ReadsColumnsOfNewFormats) {
  for (const size_t width : {8, 16, 32}) {
    // 130 numbers: a group of 128 in columns, then two.
    const size_t lanes = 64 / width;
    const size_t words = 128 / lanes;
    ByteWriter writer(ByteOrder::kLittle);
    writer.U8(width);
    for (size_t word = 0; word < words; ++word) {
      uint64_t bits = 0;
      for (size_t lane = 0; lane < lanes; ++lane) {
        bits |= static_cast<uint64_t>(word + lane * words) << (64 - width * (lane + 1));
      }
      writer.U64(bits);
    }
    for (const uint64_t value : {128, 129}) {
      width == 8 ? writer.U8(value) : width == 16 ? writer.U16(value) : writer.U32(value);
    }
    ByteReader reader(writer.bytes(), "file", ByteOrder::kLittle);
    std::vector<uint32_t> values;
    ReadChunkInts(reader, 130, values);
    ASSERT_TRUE(reader.ok());
    EXPECT_EQ(reader.left(), 0);
    for (uint32_t i = 0; i < 130; ++i) EXPECT_EQ(values[i], i) << "of width " << width;
    EXPECT_TRUE(EveryTruncation(writer.bytes(), [&](auto cut) {
      ByteReader cut_reader(cut, "file", ByteOrder::kLittle);
      ReadChunkInts(cut_reader, 130, values);
      return !cut_reader.ok();
    }));
  }
}

TEST(DirectMonotonic, AddsLineAndDelta) {
  for (const ByteOrder order : {ByteOrder::kBig, ByteOrder::kLittle}) {
    ByteWriter writer(order);
    writer.U64(100).U32(std::bit_cast<uint32_t>(2.5F)).U64(0).U8(8);
    writer.U64(900).U32(0).U64(0).U8(0);
    ByteReader meta(writer.bytes(), "meta", order);
    const auto numbers = DirectMonotonic::ReadMeta(meta, 5, 2);
    ASSERT_TRUE(meta.ok());
    const auto values = numbers.Decode("\1\2\3\4", order, "data");
    ASSERT_TRUE(values);
    EXPECT_EQ(*values, (std::vector<uint64_t>{101, 104, 108, 111, 900}));
    EXPECT_FALSE(numbers.Decode("\1\2\3", order, "data"));
    EXPECT_TRUE(EveryTruncation(writer.bytes(), [&](auto cut) {
      ByteReader cut_meta(cut, "meta", order);
      DirectMonotonic::ReadMeta(cut_meta, 5, 2);
      return !cut_meta.ok();
    }));
  }
}

}  // namespace
}  // namespace muster::lucene
