// Doc values from files built by hand. A segment's data is one file; each test describes where in
// it the parts are.

#include "lucene/doc_values.h"

#include <gtest/gtest.h>

#include "lucene/byte_writer.h"
#include "muster/json.h"

namespace muster::lucene {
namespace {

class OneBlob final : public Blobs {
 public:
  const std::string& name() const override { return name_; }
  uint64_t read_ahead() const override { return 4096; }
  Result<std::vector<std::string>> ListRoot() const override { return std::vector<std::string>(); }
  Result<uint64_t> Size(const std::string&) const override { return bytes.size(); }
  Status ReadInto(const std::string&, uint64_t offset, uint64_t length,
                  std::string& into) const override {
    ++reads;
    into = bytes.substr(offset, length);
    return {};
  }

  std::string bytes;
  mutable int reads = 0;

 private:
  const std::string name_ = "blobs";
};

// A file with these bytes.
class DataFile {
 public:
  explicit DataFile(std::string_view bytes) {
    blobs_.bytes = bytes;
    const Json file{{"name", "__0"}, {"physical_name", "_0.dvd"}, {"length", bytes.size()}};
    directory_ =
        ShardDirectory::Parse(Json{{"files", Json::array({file})}}, blobs_, "", "i[0]").value();
  }

  FileWindow Window(uint64_t offset = 0, uint64_t piece = 64) const {
    const ShardFileView file = directory_.Open("_0.dvd").value();
    return FileWindow::Open(file, offset, file.length() - offset, piece).value();
  }
  int reads() const { return blobs_.reads; }

 private:
  OneBlob blobs_;
  ShardDirectory directory_;
};

TEST(FileWindow, ReadsNeighboursWithOneCallAndNothingBeyondItsEnd) {
  const DataFile file("0123456789abcdef");
  FileWindow window = file.Window(4, 8);
  EXPECT_EQ(window.At(0, 2).value(), "45");
  EXPECT_EQ(window.At(6, 2).value(), "ab");
  EXPECT_EQ(file.reads(), 1);
  EXPECT_EQ(window.At(2, 10).value(), "6789abcdef");
  EXPECT_EQ(file.reads(), 2);
  EXPECT_EQ(window.At(12, 0).value(), "");
  EXPECT_FALSE(window.At(11, 2));
  EXPECT_FALSE(window.At(UINT64_MAX, 2));
  EXPECT_FALSE(window.PackedNumber(0, 12, UINT64_MAX, ByteOrder::kBig));
  EXPECT_EQ(window.PackedNumber(0, 8, 3, ByteOrder::kBig).value(), uint64_t{'7'});
}

// Documents 3 and 7, a block without any, 5000 in the third, and all of the fourth.
std::string Blocks(ByteOrder order) {
  ByteWriter writer(order);
  writer.U16(0).U16(1).U16(3).U16(7);
  writer.U16(2).U16(4999).Raw(std::string(256, 'r'));
  for (int word = 0; word < 1024; ++word) {
    writer.U64(word < 78 ? UINT64_MAX : word == 78 ? 0xFF : 0);
  }
  writer.U16(3).U16(65535);
  return writer.U16(0x7FFF).U16(0).U16(0xFFFF).bytes();
}

TEST(DocSetCursor, CountsDocumentsInSparseDenseAndFullBlocks) {
  constexpr uint32_t kBlock = 65536;
  const std::vector<std::pair<uint32_t, std::optional<uint64_t>>> expected = {
      {0, std::nullopt},
      {3, 0},
      {4, std::nullopt},
      {7, 1},
      {8, std::nullopt},
      {kBlock + 3, std::nullopt},
      {2 * kBlock, 2},
      {2 * kBlock + 64, 66},
      {2 * kBlock + 4999, 5001},
      {2 * kBlock + 5000, std::nullopt},
      {3 * kBlock, 5002},
      {4 * kBlock - 1, 5001 + kBlock},
      {4 * kBlock, std::nullopt},
      {9 * kBlock, std::nullopt}};
  for (const ByteOrder order : {ByteOrder::kBig, ByteOrder::kLittle}) {
    const DataFile file(Blocks(order));
    const DocSetLocation location{
        .offset = 0, .length = 0, .dense_rank_power = 9, .count = 5002 + kBlock};
    DocSetCursor cursor(location, file.Window(), order);
    for (const auto& [doc, index] : expected) EXPECT_EQ(cursor.IndexOf(doc).value(), index) << doc;
    // Backwards.
    for (auto it = expected.rbegin(); it != expected.rend(); ++it) {
      EXPECT_EQ(cursor.IndexOf(it->first).value(), it->second) << it->first;
    }
  }
}

TEST(DocSetCursor, KnowsEmptyAndFullSets) {
  DocSetCursor empty({.offset = -2}, std::nullopt, ByteOrder::kBig);
  EXPECT_EQ(empty.IndexOf(5).value(), std::nullopt);
  DocSetCursor full({.offset = -1}, std::nullopt, ByteOrder::kBig);
  EXPECT_EQ(full.IndexOf(5).value(), 5U);
}

TEST(DocSetCursor, RejectsTruncationsAndBlocksOutOfOrder) {
  ByteWriter writer;
  writer.U16(0).U16(1).U16(3).U16(7).U16(1).U16(0).U16(1).U16(0x7FFF).U16(0).U16(0xFFFF);
  const auto last = [](std::string_view bytes) {
    const DataFile file(bytes);
    DocSetCursor cursor({.offset = 0, .count = 3}, file.Window(), ByteOrder::kBig);
    return cursor.IndexOf(3 << 16).has_value();
  };
  ASSERT_TRUE(last(writer.bytes()));
  const std::string_view needed = std::string_view(writer.bytes()).substr(0, 18);
  EXPECT_TRUE(EveryTruncation(needed, [&](auto cut) { return !last(cut); }));
  std::string back = writer.bytes();
  back[9] = 0;
  EXPECT_FALSE(last(back));
  std::string twice = writer.bytes();
  twice[5] = 7;
  EXPECT_FALSE(last(twice)) << "fewer documents than it says";
}

TEST(NumberColumn, AppliesFactorTableAndBlocks) {
  const DataFile file(std::string_view("\x01\x23\x45\x67\x89", 5));
  NumberColumn scaled({.bits = 8, .min = -5, .factor = 10}, file.Window(), ByteOrder::kBig);
  EXPECT_EQ(scaled.At(0).value(), 5);
  EXPECT_EQ(scaled.At(2).value(), 0x45 * 10 - 5);
  EXPECT_FALSE(scaled.At(5)) << "beyond the last";
  NumberColumn nibbles({.bits = 4}, file.Window(), ByteOrder::kBig);
  EXPECT_EQ(nibbles.At(3).value(), 3);
  NumberColumn little({.bits = 4}, file.Window(), ByteOrder::kLittle);
  EXPECT_EQ(little.At(3).value(), 2);
  NumberColumn table({.table = {7, -7}, .bits = 4}, file.Window(), ByteOrder::kBig);
  EXPECT_EQ(table.At(1).value(), -7);
  EXPECT_FALSE(table.At(2)) << "not in the table";
  NumberColumn constant({.bits = 0, .min = 42}, file.Window(), ByteOrder::kBig);
  EXPECT_EQ(constant.At(99).value(), 42);
}

TEST(NumberColumn, WalksBlocksOfDifferentWidthInBothDirections) {
  ByteWriter writer(ByteOrder::kLittle);
  writer.U8(8).U64(100).U32(4).Raw(std::string_view("\x00\x01\x02\x03", 4));
  writer.U8(0).U64(7);
  writer.U8(16).U64(UINT64_MAX).U32(8).U16(1).U16(2).U16(3).U16(4);
  const DataFile file(writer.bytes());
  const NumbersLocation location{.block_shift = 2, .bits = 0xFF, .factor = 3};
  NumberColumn column(location, file.Window(), ByteOrder::kLittle);
  for (const uint64_t place : {0, 3, 4, 7, 8, 11, 5, 1}) {
    const int64_t expected = place < 4   ? 100 + 3 * static_cast<int64_t>(place)
                             : place < 8 ? 7
                                         : -1 + 3 * static_cast<int64_t>(place - 7);
    EXPECT_EQ(column.At(place).value(), expected) << place;
  }
  EXPECT_FALSE(column.At(12));
  EXPECT_TRUE(EveryTruncation(writer.bytes(), [&](auto cut) {
    const DataFile part(cut);
    NumberColumn cut_column(location, part.Window(), ByteOrder::kLittle);
    return !cut_column.At(11);
  }));
}

// The description of `size` terms in blocks that start at these offsets, for a region without data.
TermsLocation Located(uint64_t size, uint32_t shift, TermPacking packing,
                      const std::vector<uint64_t>& starts) {
  ByteWriter meta;
  // Blocks of one number each.
  for (const uint64_t start : starts) meta.U64(start).U32(0).U64(0).U8(0);
  ByteReader reader(meta.bytes(), "meta");
  return {.size = size,
          .block_shift = shift,
          .packing = packing,
          .blocks = DirectMonotonic::ReadMeta(reader, starts.size(), 0)};
}

TEST(TermDictionary, ReadsPlainBlocks) {
  ByteWriter writer;
  writer.String("apple").U8(4 | 0 << 4).Raw("y");
  const size_t second = writer.bytes().size();
  // A rest of 20 bytes, and then a start of 16.
  writer.String("b").U8(1 | 15 << 4).VInt(4).Raw("0123456789abcdefghij");
  writer.U8(15 | 0 << 4).VInt(1).Raw("!");
  const DataFile file(writer.bytes());
  const TermsLocation location = Located(4, 1, TermPacking::kNone, {0, second});
  TermDictionary terms(location, file.Window(), file.Window(), ByteOrder::kBig);
  EXPECT_EQ(terms.At(1).value(), "apply");
  EXPECT_EQ(terms.At(3).value(), "b0123456789abcdefghij");
  EXPECT_EQ(terms.At(0).value(), "apple");
  EXPECT_FALSE(terms.At(4));
  const TermsLocation wide = Located(3, 2, TermPacking::kNone, {second});
  TermDictionary long_terms(wide, file.Window(), file.Window(), ByteOrder::kBig);
  EXPECT_EQ(long_terms.At(2).value(), "b0123456789abcde!");
}

// LZ4: a token with the number of literals, these, and no match after the last.
TEST(TermDictionary, ReadsPackedBlocks) {
  ByteWriter rest;
  rest.U8(4 | 0 << 4).Raw("y").U8(5 | 2 << 4).Raw("ing");
  ByteWriter writer(ByteOrder::kLittle);
  writer.String("apple").VInt(rest.bytes().size());
  writer.U8(rest.bytes().size() << 4).Raw(rest.bytes());
  for (const TermPacking packing : {TermPacking::kLz4, TermPacking::kLz4Dictionary}) {
    const TermsLocation location = Located(3, 6, packing, {0});
    const auto third = [&](std::string_view bytes) {
      const DataFile file(bytes);
      TermDictionary terms(location, file.Window(), file.Window(), ByteOrder::kLittle);
      const auto term = terms.At(2);
      return term ? std::string(*term) : "";
    };
    EXPECT_EQ(third(writer.bytes()), "applying");
    EXPECT_TRUE(EveryTruncation(writer.bytes(), [&](auto cut) { return third(cut).empty(); }));
  }
}

TEST(TermDictionary, PackedTermsMayReferToTheFirstOne) {
  // "y", then a match with what lies 6 bytes back: in the dictionary.
  ByteWriter writer(ByteOrder::kLittle);
  writer.String("banana").VInt(8).U8(2 << 4 | 2).Raw(std::string_view("\x66n", 2)).U16(8);
  // The token says: 6 bytes of start, 7 more; of these "n" is literal and "banana" copied.
  const DataFile file(writer.bytes());
  TermDictionary terms(Located(2, 6, TermPacking::kLz4Dictionary, {0}), file.Window(),
                       file.Window(), ByteOrder::kLittle);
  EXPECT_EQ(terms.At(1).value(), "banananbanana");
  TermDictionary without(Located(2, 6, TermPacking::kLz4, {0}), file.Window(), file.Window(),
                         ByteOrder::kLittle);
  EXPECT_FALSE(without.At(1));
}

// Of a sorted set with several values in a document, as before Lucene 9: documents, places of
// terms, addresses, terms.
std::string SortedSetMeta(int format) {
  ByteWriter writer;
  writer.U32(2).U8(3).U8(1);
  writer.U64(UINT64_MAX).U64(0);  // every document has values
  if (format == 80) writer.U16(0).U8(0xFF);
  writer.U8(4).U64(10).U64(2).U32(2);
  writer.U64(12).VInt(0);
  for (const uint64_t start : {0, 2, 3}) writer.U64(start).U32(0).U64(0).U8(0);
  writer.U64(0);
  writer.VInt(3).U32(format == 80 ? 0x60001 : 4).U32(0).U64(0).U32(0).U64(0).U8(0);
  writer.U32(9);
  if (format == 80) writer.U32(64);
  writer.U64(20).U64(30).U64(50).U64(0);
  writer.U32(10);
  for (int i = 0; i < 2; ++i) writer.U64(0).U32(0).U64(0).U8(0);
  return writer.Raw(std::string(32, 'i')).U32(UINT32_MAX).bytes();
}

TEST(DocValuesMeta, ReadsSortedSetsOfLucene7And8) {
  const std::vector<FieldInfo> fields = {{.name = "tags", .number = 2}};
  for (const int format : {70, 80}) {
    const std::string meta = SortedSetMeta(format);
    const auto parse = [&](std::string_view bytes) {
      return ParseDocValuesMeta(ByteReader(bytes, "f"), format, 0, fields);
    };
    const auto entries = parse(meta);
    ASSERT_TRUE(entries) << entries.error().message;
    const DocValuesEntry& entry = entries->at(2);
    EXPECT_EQ(entry.kind, DocValuesKind::kSortedSet);
    EXPECT_EQ(entry.numbers.docs.offset, -1);
    EXPECT_EQ(entry.numbers.bits, 4);
    EXPECT_EQ(entry.numbers.offset, 10);
    ASSERT_TRUE(entry.addresses);
    EXPECT_EQ(entry.addresses->numbers.PlaceOf(2)->base, 3);
    EXPECT_FALSE(entry.addresses->numbers.PlaceOf(3));
    EXPECT_EQ(entry.terms.size, 3);
    EXPECT_EQ(entry.terms.packing, format == 80 ? TermPacking::kLz4 : TermPacking::kNone);
    EXPECT_EQ(entry.terms.block_shift, format == 80 ? 6 : 4);
    EXPECT_EQ(entry.terms.offset, 20);
    EXPECT_TRUE(EveryTruncation(meta, [&](auto cut) { return !parse(cut); }));
  }
}

}  // namespace
}  // namespace muster::lucene
