#include "lucene/byte_reader.h"

#include <gtest/gtest.h>

#include "lucene/byte_writer.h"

namespace muster::lucene {
namespace {

TEST(ByteReader, ReadsNumbersInBothOrders) {
  for (const ByteOrder order : {ByteOrder::kBig, ByteOrder::kLittle}) {
    ByteWriter writer(order);
    writer.U8(0xFE).U16(0x1234).U32(0x89ABCDEF).U64(0xFEDCBA9876543210);
    ByteReader reader(writer.bytes(), "file", order);
    EXPECT_EQ(reader.U8(), 0xFE);
    EXPECT_EQ(reader.U16(), 0x1234);
    EXPECT_EQ(reader.U32(), 0x89ABCDEF);
    EXPECT_EQ(reader.U64(), 0xFEDCBA9876543210);
    EXPECT_EQ(reader.left(), 0);
    EXPECT_TRUE(reader.ok());
  }
}

TEST(ByteReader, ReadsVariableNumbersAndTexts) {
  ByteWriter writer;
  writer.VInt(0).VInt(127).VInt(128).VInt(UINT32_MAX).VInt(INT64_MAX).String("text");
  ByteReader reader(writer.bytes(), "file");
  EXPECT_EQ(reader.VInt(), 0);
  EXPECT_EQ(reader.VInt(), 127);
  EXPECT_EQ(reader.VInt(), 128);
  EXPECT_EQ(reader.VInt(), UINT32_MAX);
  EXPECT_EQ(reader.VLong(), INT64_MAX);
  EXPECT_EQ(reader.String(), "text");
  EXPECT_TRUE(reader.ok());
}

TEST(ByteReader, LatchesTheFirstReadPastTheEndWithItsPosition) {
  ByteReader reader("\1\2", "shard file.fdt", ByteOrder::kBig, 100);
  reader.U8();
  EXPECT_EQ(reader.U32(), 0);
  EXPECT_EQ(reader.U8(), 0) << "after a failure nothing is read";
  ASSERT_FALSE(reader.status());
  EXPECT_EQ(reader.status().error().code, Code::kCorrupt);
  EXPECT_EQ(reader.status().error().message.find("shard file.fdt: at byte 101: "), 0);
}

TEST(ByteReader, RejectsNumbersThatAreTooLong) {
  ByteReader five(std::string_view("\xFF\xFF\xFF\xFF\x1F"), "file");
  five.VInt();
  EXPECT_FALSE(five.ok());
  ByteReader six(std::string_view("\xFF\xFF\xFF\xFF\xFF\x01"), "file");
  six.VInt();
  EXPECT_FALSE(six.ok());
}

TEST(ByteReader, BoundsCountsByTheRemainingBytes) {
  ByteReader reader(std::string_view("\x7F"
                                     "ab"),
                    "file");
  EXPECT_EQ(reader.Count(), 0);
  EXPECT_FALSE(reader.ok());
}

TEST(ByteReader, RejectsSeeksPastTheEnd) {
  ByteReader reader("abc", "file");
  reader.SeekTo(3);
  EXPECT_TRUE(reader.ok());
  reader.SeekTo(4);
  EXPECT_FALSE(reader.ok());
}

TEST(ZigZag, DecodesSmallNumbersOfEitherSign) {
  EXPECT_EQ(ZigZag(0), 0);
  EXPECT_EQ(ZigZag(1), -1);
  EXPECT_EQ(ZigZag(2), 1);
  EXPECT_EQ(ZigZag(UINT64_MAX), INT64_MIN);
}

}  // namespace
}  // namespace muster::lucene
