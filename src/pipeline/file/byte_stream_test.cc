#include "pipeline/file/byte_stream.h"

#include <gtest/gtest.h>

#include "pipeline/file/packed_output.h"
#include "support/temporary_folder.h"

namespace muster::pipeline {
namespace {

Result<std::string> ReadAll(const std::string& path, Compression compression, uint64_t offset) {
  MUSTER_ASSIGN(auto stream, OpenByteStream(path, compression, offset));
  std::string all;
  char buffer[1000];
  for (;;) {
    MUSTER_ASSIGN(const size_t got, stream->Read(buffer, sizeof buffer));
    if (got == 0) return all;
    all.append(buffer, got);
  }
}

std::string Numbers() {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i * 7919 % 100'003) + "\n";
  return text;
}

class ByteStreamTest : public ::testing::TestWithParam<Compression> {
 protected:
  // Two flushes make two members or frames.
  std::string Packed(const std::string& text) {
    const std::string path = folder_.At("file");
    auto output = CreatePackedOutput(path, GetParam());
    EXPECT_TRUE((*output)->Append(text.substr(0, text.size() / 2)));
    EXPECT_TRUE((*output)->Flush());
    EXPECT_TRUE((*output)->Append(text.substr(text.size() / 2)));
    EXPECT_TRUE((*output)->Flush());
    return path;
  }

  testing::TemporaryFolder folder_;
};

INSTANTIATE_TEST_SUITE_P(, ByteStreamTest,
                         ::testing::Values(Compression::kNone, Compression::kGzip,
                                           Compression::kZstd));

TEST_P(ByteStreamTest, ReadsBackWhatWasWritten) {
  const std::string text = Numbers();
  const std::string path = Packed(text);
  EXPECT_EQ(*ReadAll(path, GetParam(), 0), text);
  EXPECT_EQ(*ReadAll(path, GetParam(), 123'456), text.substr(123'456));
  EXPECT_EQ(*ReadAll(path, GetParam(), text.size() + 10), "");
}

TEST_P(ByteStreamTest, EmptyFileIsValid) {
  const std::string path = folder_.At("empty");
  auto output = CreatePackedOutput(path, GetParam());
  ASSERT_TRUE((*output)->Flush());
  const auto text = ReadAll(path, GetParam(), 0);
  ASSERT_TRUE(text) << text.error().ToString();
  EXPECT_EQ(*text, "");
}

TEST_P(ByteStreamTest, FlushedPrefixIsACompleteFile) {
  const std::string path = folder_.At("file");
  auto output = CreatePackedOutput(path, GetParam());
  ASSERT_TRUE((*output)->Append("first\n"));
  const auto bytes = (*output)->Flush();
  ASSERT_TRUE((*output)->Append(Numbers()));
  ASSERT_TRUE((*output)->Flush());
  std::filesystem::resize_file(path, *bytes);
  EXPECT_EQ(*ReadAll(path, GetParam(), 0), "first\n");
}

TEST_P(ByteStreamTest, TruncatedFileIsReportedWithFileAndByte) {
  if (GetParam() == Compression::kNone)
    return SUCCEED() << "truncation of a plain file cannot be detected";
  const std::string path = Packed(Numbers());
  const auto size = std::filesystem::file_size(path);
  std::filesystem::resize_file(path, size - 5);
  const auto text = ReadAll(path, GetParam(), 0);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, Code::kCorrupt);
  EXPECT_NE(text.error().message.find(path), std::string::npos);
  EXPECT_NE(text.error().message.find("ends too early at byte " + std::to_string(size - 5)),
            std::string::npos)
      << text.error().message;
}

TEST_P(ByteStreamTest, DamagedFileIsReported) {
  if (GetParam() == Compression::kNone) return SUCCEED() << "a plain file has no checks";
  const std::string path = folder_.Write("broken", "this is no packed data at all");
  const auto text = ReadAll(path, GetParam(), 0);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, Code::kCorrupt);
}

TEST(OpenByteStream, AMissingFileIsNamed) {
  const auto stream = OpenByteStream("/no/such/file", Compression::kNone, 0);
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().code, Code::kNotFound);
  EXPECT_NE(stream.error().message.find("/no/such/file"), std::string::npos);
}

}  // namespace
}  // namespace muster::pipeline
