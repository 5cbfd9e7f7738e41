#include "lucene/live_docs.h"

#include <gtest/gtest.h>

#include "lucene/byte_writer.h"
#include "lucene/soft_deletes.h"

namespace muster::lucene {
namespace {

std::string FieldInfos94() {
  ByteWriter writer(ByteOrder::kLittle);
  writer.IndexHeader("Lucene94FieldInfos", 2, kTestId).VInt(2);
  writer.String("_id").VInt(0).U8(0).U8(1).U8(0).U8(0).U64(UINT64_MAX);
  writer.VInt(0).VInt(0).VInt(0).U8(0).U8(0);
  writer.String("__soft_deletes").VInt(5).U8(8).U8(0).U8(1).U8(0).U64(3);
  writer.VInt(2).String("PerFieldDocValuesFormat.format").String("Lucene90");
  writer.String("PerFieldDocValuesFormat.suffix").String("0");
  writer.VInt(1).VInt(1).VInt(8).VInt(0).U8(0).U8(0);
  return writer.bytes();
}

TEST(FieldInfos, ReadsTheRelevantProperties) {
  const auto fields = ParseFieldInfos(Sealed(FieldInfos94()), kTestId, "_0.fnm");
  ASSERT_TRUE(fields) << fields.error().message;
  ASSERT_EQ(fields->size(), 2);
  EXPECT_EQ((*fields)[0].name, "_id");
  EXPECT_EQ((*fields)[0].doc_values_gen, -1);
  EXPECT_TRUE((*fields)[1].is_soft_deletes);
  EXPECT_EQ((*fields)[1].number, 5);
  EXPECT_EQ((*fields)[1].doc_values_type, 1);
  EXPECT_EQ((*fields)[1].doc_values_gen, 3);
  EXPECT_EQ((*fields)[1].doc_values_format, "Lucene90");
  EXPECT_EQ((*fields)[1].doc_values_suffix, "0");
}

TEST(FieldInfos, RejectsTruncationsAndUnknownKinds) {
  EXPECT_TRUE(EveryTruncation(
      FieldInfos94(), [](auto cut) { return !ParseFieldInfos(Sealed(cut), kTestId, "_0.fnm"); }));
  ByteWriter writer;
  const auto fields =
      ParseFieldInfos(Sealed(writer.Header("Lucene99FieldInfos", 0).bytes()), kTestId, "_0.fnm");
  EXPECT_EQ(fields.error().code, Code::kIncompatible);
}

TEST(LiveDocs, ReadsBitsInBothOrders) {
  for (const auto& [codec, order] :
       {std::pair{"Lucene50LiveDocs", ByteOrder::kBig}, {"Lucene90LiveDocs", ByteOrder::kLittle}}) {
    ByteWriter writer(order);
    writer.IndexHeader(codec, 0, kTestId, "1").U64(~2ULL).U64(1);
    const auto live = ParseLiveDocs(Sealed(writer.bytes()), kTestId, 66, "_0_1.liv");
    ASSERT_TRUE(live) << live.error().message;
    EXPECT_EQ(live->Count(), 64);
    EXPECT_FALSE(live->Has(1));
    EXPECT_TRUE(live->Has(64));
    EXPECT_FALSE(live->Has(65));
    EXPECT_FALSE(ParseLiveDocs(Sealed(writer.bytes()), kTestId, 64, "f")) << "of fewer documents";
    EXPECT_TRUE(EveryTruncation(writer.bytes(), [](auto cut) {
      return !ParseLiveDocs(Sealed(cut), kTestId, 66, "_0_1.liv");
    }));
  }
}

TEST(LiveDocs, ReadsDeletionsOfLucene4PlainAndWithGaps) {
  ByteWriter plain;
  plain.U32(static_cast<uint32_t>(-2)).Header("BitVector", 2).U32(10).U32(8).Raw("\xFE\x01");
  ByteWriter gaps;
  gaps.U32(static_cast<uint32_t>(-2)).Header("BitVector", 2);
  gaps.U32(static_cast<uint32_t>(-1)).U32(10).U32(8).VInt(0).U8(0xFE).VInt(1).U8(0x01);
  for (const std::string& content : {plain.bytes(), gaps.bytes()}) {
    const auto live = ParseLiveDocs(Sealed(content), "", 10, "_0_1.del");
    ASSERT_TRUE(live) << live.error().message;
    EXPECT_FALSE(live->Has(0));
    EXPECT_TRUE(live->Has(1));
    EXPECT_TRUE(live->Has(8));
    EXPECT_FALSE(live->Has(9));
    EXPECT_FALSE(ParseLiveDocs(content, "", 10, "_0_1.del")) << "without a footer";
  }
  EXPECT_TRUE(EveryTruncation(plain.bytes(),
                              [](auto cut) { return !ParseLiveDocs(Sealed(cut), "", 10, "f"); }));
}

// Entries of a `.dvm`: of a sorted set with many values in each document, then of field 5.
std::string DocValuesMeta90() {
  ByteWriter writer(ByteOrder::kLittle);
  writer.U32(0).U8(0).U64(0).U64(8).U16(0).U8(0xFF).U64(3).U32(2).U64(1).U64(2).U8(1);
  writer.U64(0).U64(1).U64(0).U64(0).U64(0);
  writer.U32(5).U8(0).U64(16).U64(20).U16(1).U8(9).U64(2).U32(UINT32_MAX).U8(0);
  writer.U64(1).U64(1).U64(0).U64(0).U64(0);
  return writer.U32(UINT32_MAX).bytes();
}

TEST(SoftDeletes, FindsTheFieldAfterOthers) {
  const std::vector<FieldInfo> fields = {{.name = "_seq_no", .number = 0},
                                         {.name = "__soft_deletes", .number = 5}};
  const std::string meta = DocValuesMeta90();
  const auto location =
      FindNumericField(ByteReader(meta, "f", ByteOrder::kLittle), 90, 0, fields, 5);
  ASSERT_TRUE(location) << location.error().message;
  EXPECT_EQ(location->offset, 16);
  EXPECT_EQ(location->length, 20);
  EXPECT_EQ(location->dense_rank_power, 9);
  EXPECT_EQ(location->count, 2);
  EXPECT_FALSE(FindNumericField(ByteReader(meta, "f", ByteOrder::kLittle), 90, 0, fields, 6));
  // The end mark is not needed once the field is found.
  EXPECT_TRUE(EveryTruncation(std::string_view(meta).substr(0, meta.size() - 4), [&](auto cut) {
    return !FindNumericField(ByteReader(cut, "f", ByteOrder::kLittle), 90, 0, fields, 5);
  }));
}

TEST(SoftDeletes, ReadsSparseDenseAndFullBlocks) {
  for (const ByteOrder order : {ByteOrder::kBig, ByteOrder::kLittle}) {
    ByteWriter writer(order);
    writer.U16(0).U16(1).U16(3).U16(7);
    writer.U16(1).U16(4999).Raw(std::string(256, 'r'));
    for (int word = 0; word < 1024; ++word) {
      writer.U64(word < 78 ? UINT64_MAX : word == 78 ? 0xFF : 0);
    }
    writer.U16(2).U16(65535);
    writer.U16(0x7FFF).U16(0).U16(0xFFFF);
    const DocSetLocation location{
        .offset = 0, .length = 0, .dense_rank_power = 9, .count = 2 + 5000 + 65536};
    const auto docs = ParseDocSet(writer.bytes(), order, location, 3 << 16, "f");
    ASSERT_TRUE(docs) << docs.error().message;
    EXPECT_TRUE(docs->Has(3));
    EXPECT_FALSE(docs->Has(4));
    EXPECT_TRUE(docs->Has(65536 + 4999));
    EXPECT_FALSE(docs->Has(65536 + 5000));
    EXPECT_TRUE(docs->Has(3 * 65536 - 1));
    EXPECT_FALSE(ParseDocSet(writer.bytes(), order, location, 2 << 16, "f")) << "beyond the last";
    const std::string_view cut = std::string_view(writer.bytes()).substr(0, 7);
    EXPECT_FALSE(ParseDocSet(cut, order, location, 3 << 16, "f"));
  }
}

TEST(SoftDeletes, RejectsEveryTruncationOfASet) {
  ByteWriter writer;
  writer.U16(0).U16(1).U16(3).U16(7).U16(0x7FFF).U16(0).U16(0xFFFF);
  const DocSetLocation location{.offset = 0, .length = 0, .dense_rank_power = -1, .count = 2};
  ASSERT_TRUE(ParseDocSet(writer.bytes(), ByteOrder::kBig, location, 8, "f"));
  // Without the last two bytes the end mark is there already.
  const std::string_view needed = std::string_view(writer.bytes()).substr(0, 12);
  EXPECT_TRUE(EveryTruncation(
      needed, [&](auto cut) { return !ParseDocSet(cut, ByteOrder::kBig, location, 8, "f"); }));
}

}  // namespace
}  // namespace muster::lucene
