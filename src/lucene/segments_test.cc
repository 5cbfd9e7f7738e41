#include "lucene/segments.h"

#include <gtest/gtest.h>

#include "lucene/byte_writer.h"
#include "lucene/segment_files.h"

namespace muster::lucene {
namespace {

// A commit of one segment, as Lucene 8.6 and later write it.
std::string Commit() {
  ByteWriter writer;
  writer.IndexHeader("segments", 10, kTestId, "3").VInt(9).VInt(12).VInt(0).VInt(9);
  writer.U64(7).VInt(1).U32(1).VInt(9).VInt(12).VInt(0);
  writer.String("_0").Raw(kTestId).String("Lucene912").U64(5).U32(2).U64(UINT64_MAX).U64(1).U32(4);
  writer.U8(1).Raw(kTestId).VInt(0).U32(1).U32(3).VInt(1).String("_0_1.dvd");
  writer.VInt(1).String("key").String("value");
  return writer.bytes();
}

TEST(Segments, ReadsACommit) {
  const auto segments = ParseSegments(Sealed(Commit()), "segments_3");
  ASSERT_TRUE(segments) << segments.error().message;
  ASSERT_EQ(segments->size(), 1);
  EXPECT_EQ((*segments)[0].name, "_0");
  EXPECT_EQ((*segments)[0].id, kTestId);
  EXPECT_EQ((*segments)[0].delete_gen, 5);
  EXPECT_EQ((*segments)[0].delete_count, 2);
  EXPECT_EQ((*segments)[0].field_infos_gen, -1);
  EXPECT_EQ((*segments)[0].soft_delete_count, 4);
}

TEST(Segments, RejectsTruncationsWithAValidFooter) {
  EXPECT_TRUE(EveryTruncation(Commit(), [](auto cut) { return !ParseSegments(cut, "f"); }));
  EXPECT_TRUE(EveryTruncation(Commit(), [](auto cut) { return !ParseSegments(Sealed(cut), "f"); }));
}

TEST(Segments, RejectsNewerVersions) {
  ByteWriter writer;
  const auto segments = ParseSegments(Sealed(writer.Header("segments", 11).bytes()), "segments_3");
  EXPECT_EQ(segments.error().code, Code::kIncompatible);
}

std::string Info(int format, int minor) {
  const ByteOrder order = format == 90 ? ByteOrder::kLittle : ByteOrder::kBig;
  ByteWriter writer(order);
  writer.IndexHeader("Lucene" + std::to_string(format) + "SegmentInfo", 0, kTestId);
  writer.U32(format / 10).U32(minor).U32(1).U8(0xFF).U32(42).U8(1);
  if (format == 90 && minor >= 9) writer.U8(0xFF);
  writer.VInt(1).String("os").String("Linux").VInt(1).String("_0.cfs").VInt(0);
  return writer.bytes();
}

TEST(SegmentInfo, ReadsOldAndNewLayouts) {
  for (const auto& [format, minor] : {std::pair{70, 7}, {86, 11}, {90, 8}, {90, 12}}) {
    const std::string content = Info(format, minor);
    const auto info = ParseSegmentInfo(Sealed(content), kTestId, "_0.si");
    ASSERT_TRUE(info) << info.error().message;
    EXPECT_EQ(info->max_doc, 42);
    EXPECT_TRUE(info->is_compound);
    EXPECT_EQ(info->lucene_version,
              std::to_string(format / 10) + "." + std::to_string(minor) + ".1");
    EXPECT_TRUE(EveryTruncation(
        content, [](auto cut) { return !ParseSegmentInfo(Sealed(cut), kTestId, "_0.si"); }));
  }
}

TEST(SegmentInfo, RejectsOtherSegmentsAndUnknownKinds) {
  EXPECT_FALSE(ParseSegmentInfo(Sealed(Info(90, 8)), "another id 45678", "_0.si"));
  ByteWriter writer;
  const auto info = ParseSegmentInfo(Sealed(writer.Header("SimpleText", 0).bytes()), "", "_0.si");
  EXPECT_EQ(info.error().code, Code::kIncompatible);
  EXPECT_NE(info.error().message.find("SimpleText"), std::string::npos);
}

TEST(CompoundEntries, EntriesAreReadByName) {
  ByteWriter writer(ByteOrder::kLittle);
  writer.IndexHeader("Lucene90CompoundEntries", 0, kTestId);
  writer.VInt(2).String(".fdt").U64(48).U64(100).String(".fnm").U64(148).U64(7);
  const auto entries = ParseCompoundEntries(Sealed(writer.bytes()), kTestId, "_0.cfe");
  ASSERT_TRUE(entries) << entries.error().message;
  EXPECT_EQ(entries->at(".fnm").offset, 148);
  EXPECT_EQ(entries->at(".fnm").length, 7);
  EXPECT_TRUE(EveryTruncation(writer.bytes(), [](auto cut) {
    return !ParseCompoundEntries(Sealed(cut), kTestId, "_0.cfe");
  }));
}

}  // namespace
}  // namespace muster::lucene
