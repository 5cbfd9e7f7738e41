#include "pipeline/file/record_reader.h"

#include <gtest/gtest.h>

#include <cstring>

namespace muster::pipeline {
namespace {

// A text delivered in chunks of any size.
class TextStream final : public ByteStream {
 public:
  TextStream(std::string text, size_t piece) : text_(std::move(text)), piece_(piece) {}
  Result<size_t> Read(char* to, size_t size) override {
    const size_t length = std::min({size, piece_, text_.size() - at_});
    std::memcpy(to, text_.data() + at_, length);
    at_ += length;
    return length;
  }

 private:
  const std::string text_;
  const size_t piece_;
  size_t at_ = 0;
};

struct Seen {
  std::string text;
  uint64_t offset;

  bool operator==(const Seen&) const = default;
};

constexpr std::nullopt_t kLines = std::nullopt;
constexpr CsvRecords kCsv{};

std::vector<Seen> Records(const std::string& text, std::optional<CsvRecords> csv, size_t piece,
                          size_t max_bytes = 1 << 20) {
  RecordReader reader(std::make_unique<TextStream>(text, piece), 0, max_bytes, csv);
  std::vector<Seen> all;
  for (;;) {
    const auto record = reader.Next();
    if (!record || !*record) return all;
    all.push_back({std::string((*record)->text), (*record)->offset});
  }
}

TEST(RecordReader, SplitsLinesAcrossAnyChunks) {
  const std::string text = "a\nbc\r\n\nlast";
  const std::vector<Seen> expected = {{"a", 0}, {"bc", 2}, {"", 6}, {"last", 7}};
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    ASSERT_EQ(Records(text, kLines, piece), expected) << piece;
  }
}

TEST(RecordReader, LineEndWithinQuotesDoesNotEndTheRecord) {
  const std::string text = "\"a\nb\",1\nc,\"\"\"\n\"\nd\n";
  const std::vector<Seen> expected = {{"\"a\nb\",1", 0}, {"c,\"\"\"\n\"", 8}, {"d", 16}};
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    ASSERT_EQ(Records(text, kCsv, piece), expected) << piece;
  }
}

// A stray quote swallows nothing, however the bytes arrive.
TEST(RecordReader, StrayQuoteLosesNoLines) {
  const std::vector<std::pair<std::string, std::vector<Seen>>> cases = {
      {"5\" disk,1\nb,2\n6\",3\n", {{"5\" disk,1", 0}, {"b,2", 10}, {"6\",3", 14}}},
      {"\"Ada,1\nb,2\n\"Cy\",3\n", {{"\"Ada,1", 0}, {"b,2", 7}, {"\"Cy\",3", 11}}},
      {"\"Ada,1\nb,2\n", {{"\"Ada,1", 0}, {"b,2", 7}}},
      {"\"a\"b\nc\n", {{"\"a\"b", 0}, {"c", 5}}},
      {"1,\"a\r\nb\"\r\n2,c\r\n", {{"1,\"a\r\nb\"", 0}, {"2,c", 10}}},
      {"\xEF\xBB\xBF\"a\nb\",c\nd\n", {{"\xEF\xBB\xBF\"a\nb\",c", 0}, {"d", 11}}}};
  for (const auto& [text, expected] : cases) {
    for (size_t piece = text.starts_with('\xEF') ? 3 : 1; piece <= text.size(); ++piece)
      ASSERT_EQ(Records(text, kCsv, piece), expected) << text << piece;
  }
}

// Two stray quotes may enclose a field that looks valid.
TEST(RecordReader, LinesThatAllLookLikeRecordsAreNotOneRecord) {
  const CsvRecords two{.columns = 2};
  const std::string rows = "1,\"a\n2,b\n3,c\n4,d\n5,e\n6,f\"\n7,g\n";
  EXPECT_EQ(Records(rows, two, 3).size(), 7U);
  EXPECT_EQ(Records(rows, CsvRecords{.columns = 2, .trusts_quotes = true}, 3).size(), 2U);
  EXPECT_EQ(Records(rows, CsvRecords{.columns = 3}, 3).size(), 2U);
  // A text of a few lines may have a comma in each.
  EXPECT_EQ(Records("1,\"Dear Ada\nhello, you\nyours, Bo\"\n2,b\n", two, 3).size(), 2U);
  EXPECT_EQ(Records("1,2,3,4,\"a\n2,,,,b\n3,,,,c\"\n", CsvRecords{.columns = 5}, 1).size(), 3U);
}

TEST(RecordReader, TooLongMultiLineRecordIsARunaway) {
  for (size_t piece = 1; piece < 20; ++piece) {
    RecordReader reader(std::make_unique<TextStream>("\"a\nb\nc\nd\ne\nf\n\"x\n", piece), 0, 8,
                        kCsv);
    EXPECT_TRUE((**reader.Next()).runaway) << piece;
  }
  RecordReader reader(std::make_unique<TextStream>("\"abcdefghijk\"\nl\n", 3), 0, 8, kCsv);
  const auto first = **reader.Next();
  EXPECT_TRUE(first.too_long);
  EXPECT_FALSE(first.runaway);
  EXPECT_EQ((**reader.Next()).text, "l");
}

TEST(RecordReader, LongRecordsGrowTheBuffer) {
  const std::string text = std::string(3 << 20, 'x') + "\nshort\n";
  RecordReader reader(std::make_unique<TextStream>(text, 100'000), 0, 4 << 20, kLines);
  EXPECT_EQ((**reader.Next()).text.size(), size_t{3} << 20);
  EXPECT_EQ((**reader.Next()).text, "short");
}

TEST(RecordReader, TooLongRecordsAreTruncatedAndSkipped) {
  const std::string text = std::string(5 << 20, 'x') + "\nshort\n" + std::string(3 << 20, 'y');
  RecordReader reader(std::make_unique<TextStream>(text, 100'000), 0, 1 << 20, kLines);
  const auto first = **reader.Next();
  EXPECT_TRUE(first.too_long);
  EXPECT_EQ(first.text, std::string(64 << 10, 'x'));
  const auto second = **reader.Next();
  EXPECT_EQ(second.text, "short");
  EXPECT_EQ(second.offset, (5U << 20) + 1);
  EXPECT_TRUE((**reader.Next()).too_long);
  EXPECT_FALSE(*reader.Next());
}

TEST(RecordReader, ARecordMayBeTooLongAndStillFitTheBuffer) {
  RecordReader reader(std::make_unique<TextStream>("12345\n1234\n", 100), 0, 4, kLines);
  EXPECT_TRUE((**reader.Next()).too_long);
  const auto second = **reader.Next();
  EXPECT_FALSE(second.too_long);
  EXPECT_EQ(second.text, "1234");
  EXPECT_EQ(second.offset, 6U);
  EXPECT_FALSE(*reader.Next());
}

TEST(RecordReader, UnclosedQuoteIsReported) {
  RecordReader reader(std::make_unique<TextStream>("a\n\"b\nc\n", 3), 0, 1 << 20, kCsv);
  EXPECT_FALSE((**reader.Next()).open_quote);
  EXPECT_TRUE((**reader.Next()).open_quote);
}

}  // namespace
}  // namespace muster::pipeline
