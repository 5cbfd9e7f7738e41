#include "lucene/document.h"

#include <gtest/gtest.h>

#include "lucene/byte_writer.h"

namespace muster::lucene {
namespace {

using std::string_view_literals::operator""sv;

const DocumentFields kFields = {.id = 0, .uid = 1, .routing = 2, .source = 3, .recovery_source = 4};

std::string Key(uint32_t field, uint32_t type) {
  ByteWriter writer;
  return writer.VInt(field << 3 | type).bytes();
}

Result<bool> Parse(std::string_view bytes, uint32_t count, Document& document,
                   NumberForm form = NumberForm::kVariable) {
  return ParseDocument(bytes, count, kFields, form, ByteOrder::kLittle, document);
}

TEST(DocumentId, DecodesEveryForm) {
  std::string id = "the one before";
  const auto is = [&](std::string_view bytes, std::string_view text) {
    return DecodeId(bytes, id).has_value() && id == text;
  };
  EXPECT_TRUE(is("\xFFs1", "s1"));
  EXPECT_TRUE(is("\xFE\x7F", "7"));
  EXPECT_TRUE(is("\xFE\0"sv, "00"));
  EXPECT_TRUE(is("\xFE\x12\x34", "1234"));
  EXPECT_TRUE(is("\0\0\0"sv, "AAAA"));
  EXPECT_TRUE(is("\xFD\xFD\xFF\0"sv, "_f8A"));
  EXPECT_FALSE(DecodeId("", id));
  EXPECT_FALSE(DecodeId("\xFE", id));
  EXPECT_FALSE(DecodeId("\xFE\xA0", id));
  EXPECT_FALSE(DecodeId("\xFE\xFF", id));
  EXPECT_FALSE(DecodeId("\xFE\x1F\x20", id)) << "odd, but not at the end";
}

TEST(Document, ReadsItsFields) {
  ByteWriter writer;
  writer.Raw(Key(3, 1)).String("{\"a\":1}").Raw(Key(0, 1)).String("\xFFid").Raw(Key(2, 0));
  writer.String("route").Raw(Key(4, 1)).String("{}");
  Document document;
  const auto found = Parse(writer.bytes(), 4, document);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(*found);
  EXPECT_EQ(document.id, "id");
  EXPECT_EQ(document.type, "");
  EXPECT_EQ(document.routing, "route");
  EXPECT_EQ(document.source, "{\"a\":1}");
  EXPECT_EQ(document.recovery_source, "{}");
  EXPECT_TRUE(EveryTruncation(writer.bytes(), [&](auto cut) { return !Parse(cut, 4, document); }));
  EXPECT_FALSE(Parse(writer.bytes(), 3, document)) << "bytes left over";
}

TEST(Document, ReadsTypeAndIdFromItsUid) {
  ByteWriter writer;
  writer.Raw(Key(1, 0)).String("type#id#1");
  Document document;
  ASSERT_TRUE(*Parse(writer.bytes(), 1, document));
  EXPECT_EQ(document.type, "type");
  EXPECT_EQ(document.id, "id#1");
  EXPECT_EQ(document.source, std::nullopt);
  ByteWriter bad;
  EXPECT_FALSE(Parse(bad.Raw(Key(1, 0)).String("no type").bytes(), 1, document));
}

TEST(Document, WithoutAnIdIsNested) {
  Document document;
  EXPECT_FALSE(*Parse("", 0, document));
}

TEST(Document, SkipsNumbersOfAllKinds) {
  ByteWriter writer;
  writer.Raw(Key(9, 2)).VInt(300);
  writer.Raw(Key(9, 3)).U8(200).Raw(Key(9, 3)).U8(255).U32(0).Raw(Key(9, 3)).U8(1).Raw("abc");
  writer.Raw(Key(9, 4)).U8(0x45).Raw(Key(9, 4)).U8(0x25).VInt(1000);
  writer.Raw(Key(9, 5)).U8(200).Raw(Key(9, 5)).U8(255).U64(0).Raw(Key(9, 5)).U8(254).U32(0);
  writer.Raw(Key(9, 5)).U8(1).Raw("abcdefg");
  writer.Raw(Key(0, 0)).String("text id");
  Document document;
  ASSERT_TRUE(Parse(writer.bytes(), 11, document).value_or(false));
  EXPECT_EQ(document.id, "text id");
  ByteWriter fixed;
  fixed.Raw(Key(9, 2)).U32(1).Raw(Key(9, 3)).U32(1).Raw(Key(9, 4)).U64(1).Raw(Key(9, 5)).U64(1);
  fixed.Raw(Key(1, 0)).String("t#1");
  ASSERT_TRUE(Parse(fixed.bytes(), 5, document, NumberForm::kFixed).value_or(false));
  EXPECT_EQ(document.id, "1");
}

TEST(Document, ReadsWantedFieldsInTheirOrder) {
  DocumentFields fields = kFields;
  fields.wanted = {{9, 0}, {10, 1}};
  ByteWriter writer(ByteOrder::kLittle);
  writer.Raw(Key(0, 0)).String("id").Raw(Key(10, 0)).String("second").Raw(Key(8, 0)).String("no");
  writer.Raw(Key(10, 1)).String("first").Raw(Key(9, 2)).VInt(5);
  writer.Raw(Key(9, 3)).U8(0x80).Raw(Key(9, 3)).U8(255).U32(0xBFC00000);
  writer.Raw(Key(9, 3)).U8(0x3F).U16(0xC000).U8(0);
  writer.Raw(Key(9, 4)).U8(0x42).Raw(Key(9, 4)).U8(0x21).VInt(2);
  writer.Raw(Key(9, 5)).U8(0x83).Raw(Key(9, 5)).U8(254).U32(0xBFC00000);
  writer.Raw(Key(9, 5)).U8(255).U64(0xBFF8000000000000);
  writer.Raw(Key(9, 5)).U8(0x3F).U32(0xF8000000).U16(0).U8(0);
  const auto parse = [&](std::string_view bytes, Document& document) {
    document.fields = {{}, {}};
    return ParseDocument(bytes, 14, fields, NumberForm::kVariable, ByteOrder::kLittle, document);
  };
  Document document;
  ASSERT_TRUE(parse(writer.bytes(), document).value_or(false));
  const std::vector<IndexedValue> numbers = {int64_t{-3},  -1.0F, -1.5F, 1.5F, int64_t{1000},
                                             int64_t{-33}, 2.0,   -1.5,  -1.5, 1.5};
  EXPECT_EQ(document.fields[0], numbers);
  const std::vector<IndexedValue> texts = {"second", "first"};
  EXPECT_EQ(document.fields[1], texts);
  EXPECT_TRUE(EveryTruncation(writer.bytes(), [&](auto cut) { return !parse(cut, document); }));
}

TEST(Document, RejectsLzfSourceByName) {
  ByteWriter writer;
  writer.Raw(Key(1, 0)).String("t#1").Raw(Key(3, 1)).String("ZV\1");
  Document document;
  EXPECT_EQ(Parse(writer.bytes(), 2, document).error().code, Code::kIncompatible);
}

}  // namespace
}  // namespace muster::lucene
