#include "pipeline/record_reader.h"

#include <gtest/gtest.h>

#include <cstring>

namespace muster {
namespace {

// A text in pieces of any size.
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

std::vector<Seen> Records(const std::string& text, RecordReader::Quotes quotes, size_t piece) {
  RecordReader reader(std::make_unique<TextStream>(text, piece), 0, 1 << 20, quotes);
  std::vector<Seen> all;
  for (;;) {
    const auto record = reader.Next();
    if (!record || !*record) return all;
    all.push_back({std::string((*record)->text), (*record)->offset});
  }
}

TEST(RecordReader, CutsLinesHoweverTheyCome) {
  const std::string text = "a\nbc\r\n\nlast";
  const std::vector<Seen> expected = {{"a", 0}, {"bc", 2}, {"", 6}, {"last", 7}};
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    ASSERT_EQ(Records(text, RecordReader::Quotes::kIgnored, piece), expected) << piece;
  }
}

TEST(RecordReader, ALineEndWithinQuotesEndsNothing) {
  const std::string text = "\"a\nb\",1\nc,\"\"\"\n\"\nd\n";
  const std::vector<Seen> expected = {{"\"a\nb\",1", 0}, {"c,\"\"\"\n\"", 8}, {"d", 16}};
  for (size_t piece = 1; piece <= text.size(); ++piece) {
    ASSERT_EQ(Records(text, RecordReader::Quotes::kCount, piece), expected) << piece;
  }
}

TEST(RecordReader, LongRecordsGrowTheBuffer) {
  const std::string text = std::string(3 << 20, 'x') + "\nshort\n";
  RecordReader reader(std::make_unique<TextStream>(text, 100'000), 0, 4 << 20,
                      RecordReader::Quotes::kIgnored);
  EXPECT_EQ((**reader.Next()).text.size(), size_t{3} << 20);
  EXPECT_EQ((**reader.Next()).text, "short");
}

TEST(RecordReader, TooLongRecordsAreCutAndPassedOver) {
  const std::string text = std::string(5 << 20, 'x') + "\nshort\n" + std::string(3 << 20, 'y');
  RecordReader reader(std::make_unique<TextStream>(text, 100'000), 0, 1 << 20,
                      RecordReader::Quotes::kIgnored);
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
  RecordReader reader(std::make_unique<TextStream>("12345\n1234\n", 100), 0, 4,
                      RecordReader::Quotes::kIgnored);
  EXPECT_TRUE((**reader.Next()).too_long);
  const auto second = **reader.Next();
  EXPECT_FALSE(second.too_long);
  EXPECT_EQ(second.text, "1234");
  EXPECT_EQ(second.offset, 6U);
  EXPECT_FALSE(*reader.Next());
}

TEST(RecordReader, AQuoteThatNeverClosesIsTold) {
  RecordReader reader(std::make_unique<TextStream>("a\n\"b\nc\n", 3), 0, 1 << 20,
                      RecordReader::Quotes::kCount);
  EXPECT_FALSE((**reader.Next()).open_quote);
  EXPECT_TRUE((**reader.Next()).open_quote);
}

}  // namespace
}  // namespace muster
