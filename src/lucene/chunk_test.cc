#include "lucene/chunk.h"

#include <gtest/gtest.h>

#include "lucene/byte_writer.h"
#include "lucene/stored_fields_index.h"

namespace muster::lucene {
namespace {

using std::string_view_literals::operator""sv;

const ChunkFormat kPlainFormat = {.packing = Packing::kLz4, .chunk_size = 1024, .token_flags = 1};

TEST(Chunk, ReturnsTheBytesOfEachDocument) {
  const std::string bytes = std::string("\x07\x04\x00\x01\x02\xB0\x50", 7) + "abcde";
  Chunk chunk;  // lengths 2 and 3 in two bits each: 10 11
  const Status decoded = chunk.Decode(bytes, kPlainFormat, 7, 2, "f", 0);
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(chunk.size(), 2);
  EXPECT_EQ(chunk.FieldCount(1), 1);
  EXPECT_EQ(chunk.Document(0), "ab");
  EXPECT_EQ(chunk.Document(1), "cde");
  EXPECT_TRUE(EveryTruncation(
      bytes, [&](auto cut) { return !chunk.Decode(cut, kPlainFormat, 7, 2, "f", 0); }));
  EXPECT_FALSE(chunk.Decode(bytes, kPlainFormat, 8, 2, "f", 0)) << "other documents";
  EXPECT_FALSE(chunk.Decode(bytes, kPlainFormat, 7, 1, "f", 0)) << "another number";
  EXPECT_FALSE(chunk.Decode(bytes + "x", kPlainFormat, 7, 2, "f", 0)) << "more bytes";
  EXPECT_EQ(chunk.size(), 0) << "a damaged chunk has no documents";
}

TEST(Chunk, JoinsSlices) {
  // One document of 6 bytes in slices of 4: "abcd" and "ef".
  const std::string bytes = std::string("\x00\x03\x01\x06\x40", 5) + "abcd" + "\x20" + "ef";
  const ChunkFormat format = {.packing = Packing::kLz4, .chunk_size = 4, .token_flags = 1};
  Chunk chunk;
  ASSERT_TRUE(chunk.Decode(bytes, format, 0, 1, "f", 0));
  EXPECT_EQ(chunk.Document(0), "abcdef");
}

TEST(Chunk, UnpacksBlocksThatReferToADictionary) {
  // Dictionary "wxyz", then blocks of 4: a match into it, and literals.
  ByteWriter writer(ByteOrder::kLittle);
  writer.VInt(0).VInt(1 << 2).VInt(1).VInt(12);
  writer.VInt(4).VInt(4).VInt(5).VInt(3).VInt(5);
  writer.Raw("\x40wxyz").Raw("\x00\x04\x00"sv).Raw("\x40stuv");
  const ChunkFormat format = {.packing = Packing::kLz4Dictionary,
                              .order = ByteOrder::kLittle,
                              .chunk_size = 1024,
                              .token_flags = 2};
  Chunk chunk;
  const Status decoded = chunk.Decode(writer.bytes(), format, 0, 1, "f", 0);
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(chunk.Document(0), "wxyzwxyzstuv");
  EXPECT_TRUE(EveryTruncation(writer.bytes(),
                              [&](auto cut) { return !chunk.Decode(cut, format, 0, 1, "f", 0); }));
}

TEST(Chunk, RejectsImpossibleLengths) {
  ByteWriter writer;
  writer.VInt(0).VInt(2).VInt(1).VInt(INT32_MAX).Raw("abc");
  Chunk chunk;
  EXPECT_FALSE(chunk.Decode(writer.bytes(), kPlainFormat, 0, 1, "f", 0));
}

TEST(Chunk, EmptyChunkHasBytes) {
  const std::string bytes("\x00\x04\x00\x00\x00\x00\x00", 7);
  Chunk chunk;
  ASSERT_TRUE(chunk.Decode(bytes, kPlainFormat, 0, 2, "f", 0));
  EXPECT_EQ(chunk.Document(1), "");
}

TEST(BlockIndex, AddsLineAndDelta) {
  // Two chunks: documents 0 and 10 + 1; positions 40 and 140 - 1; deltas in 2 bits each.
  ByteWriter writer;
  writer.VInt(2).VInt(2).VInt(0).VInt(10).VInt(2).U8(0b00'10'0000);
  writer.VInt(40).VInt(100).VInt(2).U8(0b00'01'0000).VInt(0);
  ByteReader reader(writer.bytes(), "f");
  ChunkIndex index = ReadBlockIndex(reader);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(index.first_docs, (std::vector<uint64_t>{0, 11}));
  EXPECT_EQ(index.positions, (std::vector<uint64_t>{40, 139}));
  index.end = 200;
  EXPECT_TRUE(index.Check(40, 200, 12, "f"));
  EXPECT_FALSE(index.Check(41, 200, 12, "f"));
  EXPECT_FALSE(index.Check(40, 199, 12, "f"));
  EXPECT_FALSE(index.Check(40, 200, 11, "f"));
  EXPECT_EQ(index.ChunkOf(10), 0);
  EXPECT_EQ(index.ChunkOf(11), 1);
  EXPECT_TRUE(EveryTruncation(writer.bytes(), [](auto cut) {
    ByteReader cut_reader(cut, "f");
    ReadBlockIndex(cut_reader);
    return !cut_reader.ok();
  }));
}

}  // namespace
}  // namespace muster::lucene
