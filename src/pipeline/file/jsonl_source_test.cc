#include "pipeline/file/jsonl_source.h"

#include <gtest/gtest.h>
#include <filesystem>
#include <fstream>

#include <set>

#include "muster/migrate.h"
#include "pipeline/file/packed_output.h"
#include "support/temporary_folder.h"

namespace muster::pipeline {
namespace {

class JsonlSourceTest : public ::testing::Test {
 protected:
  std::unique_ptr<Source> Open(const std::string& path, const std::string& query = "") {
    auto source = OpenSource("jsonl:" + path + query, RealEnv());
    EXPECT_TRUE(source) << source.error().ToString();
    return *std::move(source);
  }

  static std::unique_ptr<Reader> Read(Source& source, const Partition& partition,
                                      const std::string& position = "") {
    auto reader = source.Read(partition, position, {});
    EXPECT_TRUE(reader) << reader.error().ToString();
    return *std::move(reader);
  }

  // Bodies, or defects.
  static std::vector<std::string> Rest(Reader& reader) {
    std::vector<std::string> all;
    for (;;) {
      const auto document = reader.Next();
      EXPECT_TRUE(document) << document.error().ToString();
      if (!document || !*document) return all;
      all.emplace_back((*document)->defect.empty() ? (*document)->body : (*document)->defect);
    }
  }

  static std::string Lines(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      text +=
          "{\"n\":" + std::to_string(i) + ",\"pad\":\"" + std::string(i * 7 % 90, 'x') + "\"}\n";
    }
    return text;
  }

  testing::TemporaryFolder folder_;
};

TEST_F(JsonlSourceTest, ReturnsEveryLineUnchanged) {
  const auto source = Open(folder_.Write(
      "a.jsonl", "{\"n\":1.0}\n\n  {\"big\":123456789012345678901234567890, \"e\":1e999}\r\n{}"));
  const auto partitions = source->Partitions("a");
  ASSERT_EQ(partitions->size(), 1U);
  EXPECT_EQ(Rest(*Read(*source, partitions->at(0))),
            (std::vector<std::string>{
                "{\"n\":1.0}", "  {\"big\":123456789012345678901234567890, \"e\":1e999}", "{}"}));
}

TEST_F(JsonlSourceTest, EveryPositionCanBeReadFrom) {
  const auto source = Open(folder_.Write("a.jsonl", Lines(50)));
  const Partition partition = source->Partitions("a")->at(0);
  const auto all = Rest(*Read(*source, partition));
  const auto reader = Read(*source, partition);
  for (size_t i = 1; i <= all.size(); ++i) {
    const std::string position((*reader->Next())->position);
    EXPECT_EQ(Rest(*Read(*source, partition, position)),
              std::vector<std::string>(all.begin() + static_cast<std::ptrdiff_t>(i), all.end()));
  }
}

TEST_F(JsonlSourceTest, PartitionsByBytesReadEveryLineOnce) {
  const std::string text = Lines(200);
  const std::string path = folder_.Write("a.jsonl", text);
  const auto expected = Rest(*Read(*Open(path), Open(path)->Partitions("a")->at(0)));
  for (const size_t bytes : {1U, 2U, 10U, 57U, 100U, 1000U, 100'000U}) {
    const auto source = Open(path, "?partition_bytes=" + std::to_string(bytes));
    const auto partitions = source->Partitions("a");
    EXPECT_EQ(partitions->size(), (text.size() + bytes - 1) / bytes);
    std::vector<std::string> all;
    for (const Partition& partition : *partitions) {
      for (std::string& body : Rest(*Read(*source, partition))) all.push_back(std::move(body));
    }
    EXPECT_EQ(all, expected) << bytes;
  }
}

TEST_F(JsonlSourceTest, SplitReadsEveryLineOnce) {
  const auto source = Open(folder_.Write("a.jsonl", Lines(10'000)));
  Partition partition = source->Partitions("a")->at(0);
  const auto expected = Rest(*Read(*source, partition));
  const auto reader = Read(*source, partition);
  std::vector<std::string> all = {std::string((*reader->Next())->body)};
  const auto split = reader->Split();
  ASSERT_TRUE(split);
  ASSERT_TRUE(*split);
  for (std::string& body : Rest(*reader)) all.push_back(std::move(body));
  EXPECT_LT(all.size(), expected.size() * 2 / 3);
  EXPECT_GT(all.size(), expected.size() / 3);
  partition.begin = **split;
  partition.bytes.reset();  // like any part that is split off
  for (std::string& body : Rest(*Read(*source, partition))) all.push_back(std::move(body));
  EXPECT_EQ(all, expected);
}

TEST_F(JsonlSourceTest, SmallRangesAreNotSplit) {
  const auto source = Open(folder_.Write("a.jsonl", Lines(10)));
  EXPECT_FALSE(*Read(*source, source->Partitions("a")->at(0))->Split());
}

TEST_F(JsonlSourceTest, CompressedFilesAreOnePartition) {
  const std::string text = Lines(500);
  std::vector<std::string> expected;
  for (const auto& [ending, compression] :
       {std::pair(".jsonl", Compression::kNone), std::pair(".jsonl.gz", Compression::kGzip),
        std::pair(".jsonl.zst", Compression::kZstd)}) {
    const std::string path = folder_.At(std::string("packed") + ending);
    auto output = CreatePackedOutput(path, compression);
    ASSERT_TRUE((*output)->Append(text));
    ASSERT_TRUE((*output)->Flush());
    const auto source = Open(path, compression == Compression::kNone ? "" : "?partition_bytes=100");
    const auto partitions = source->Partitions("packed");
    ASSERT_EQ(partitions->size(), 1U);
    const auto all = Rest(*Read(*source, partitions->at(0)));
    if (expected.empty()) expected = all;
    EXPECT_EQ(all, expected);
    const auto reader = Read(*source, partitions->at(0));
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(*reader->Next());
    const std::string position((*reader->Next())->position);
    EXPECT_EQ(Rest(*Read(*source, partitions->at(0), position)),
              std::vector<std::string>(all.begin() + 101, all.end()));
    if (compression != Compression::kNone) {
      EXPECT_FALSE(*reader->Split());
      EXPECT_FALSE(source->FractionBefore(partitions->at(0), position));
    }
  }
}

TEST_F(JsonlSourceTest, TruncatedGzipReturnsItsLinesThenTheError) {
  const std::string path = folder_.At("a.jsonl.gz");
  auto output = CreatePackedOutput(path, Compression::kGzip);
  ASSERT_TRUE((*output)->Append(Lines(100'000)));
  ASSERT_TRUE((*output)->Flush());
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  const auto source = Open(path);
  const auto reader = Read(*source, source->Partitions("a")->at(0));
  int documents = 0;
  for (;;) {
    const auto document = reader->Next();
    if (!document) {
      EXPECT_EQ(document.error().code, Code::kCorrupt);
      EXPECT_NE(document.error().message.find(path), std::string::npos);
      break;
    }
    ASSERT_TRUE(*document);
    ++documents;
  }
  EXPECT_GT(documents, 1000);
}

TEST_F(JsonlSourceTest, ShrunkFileIsReported) {
  const std::string path = folder_.Write("a.jsonl", Lines(5'000));
  const auto source = Open(path);
  const Partition partition = source->Partitions("a")->at(0);
  const auto reader = Read(*source, partition);
  std::string position;
  for (int i = 0; i < 10; ++i) position = reader->Next().value().value().position;
  std::filesystem::resize_file(path, 300);
  Result<std::optional<Document>> last = reader->Next();
  while (last && *last) last = reader->Next();
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error().code, Code::kCorrupt);
  EXPECT_EQ(source->Read(partition, "", {}).error().code, Code::kCorrupt);
  EXPECT_EQ(source->Read(partition, position, {}).error().code, Code::kCorrupt);
  EXPECT_NE(source->Read(partition, "", {}).error().message.find("has 300 bytes"),
            std::string::npos);
  std::ofstream(path, std::ios::app) << Lines(6'000);
  const auto replaced = source->Read(partition, position, {});
  ASSERT_FALSE(replaced) << "it is long enough again, but a different file";
  EXPECT_EQ(replaced.error().code, Code::kCorrupt);
  EXPECT_NE(replaced.error().message.find("its beginning differs"), std::string::npos);
}

TEST_F(JsonlSourceTest, GrowingFileIsReadToItsEnd) {
  for (const int lines : {0, 3, 5'000}) {
    const std::string path = folder_.Write("a.jsonl", Lines(lines));
    const auto source = Open(path);
    const Partition partition = source->Partitions("a")->at(0);
    std::ofstream(path, std::ios::app) << Lines(10);
    EXPECT_TRUE(source->Read(partition, "", {})) << lines;
  }
}

TEST_F(JsonlSourceTest, InvalidLineIsADefectWithFileAndLine) {
  const std::string path = folder_.Write(
      "a.jsonl", "{\"a\":1}\n{\"a\":\n[1]\n{\"s\":\"\xff\"}\n{\"a\":1}{\"b\":2}\n{\"z\":0}\n");
  const auto source = Open(path);
  EXPECT_EQ(Rest(*Read(*source, source->Partitions("a")->at(0))),
            (std::vector<std::string>{
                "{\"a\":1}", path + ":2 (byte 8): invalid JSON: the text ends too early at byte 6",
                path + ":3 (byte 14): invalid JSON: no JSON object at byte 1",
                path + ":4 (byte 18): invalid UTF-8 at byte 7",
                path + ":5 (byte 28): invalid JSON: something follows the object at byte 8",
                "{\"z\":0}"}));
}

TEST_F(JsonlSourceTest, InTheMiddleOfAFileADefectNamesTheByte) {
  const std::string path = folder_.Write("a.jsonl", "{\"a\":1}\n{\"a\":2}\noops\n");
  const auto source = Open(path);
  EXPECT_EQ(Rest(*Read(*source, source->Partitions("a")->at(0), "0000000000000008")).back(),
            path + " at byte 16: invalid JSON: no JSON object at byte 1");
}

TEST_F(JsonlSourceTest, ALineBeyondTheLimitIsADefect) {
  const std::string path = folder_.Write(
      "a.jsonl", "{\"a\":1}\n{\"s\":\"" + std::string(3 << 20, 'x') + "\"}\n{\"b\":2}\n");
  const auto source = Open(path, "?max_document_bytes=1000");
  EXPECT_EQ(Rest(*Read(*source, source->Partitions("a")->at(0))),
            (std::vector<std::string>{
                "{\"a\":1}", path + ":2 (byte 8): the line is longer than max_document_bytes",
                "{\"b\":2}"}));
}

TEST_F(JsonlSourceTest, IdsAndRoutingsAreFoundInTheirFields) {
  const std::string path = folder_.Write(
      "a.jsonl",
      "{\"k\":{\"id\":\"a\\u00e4\"},\"r\":7}\n{\"k\":{\"id\":12345678901234567890123}}\n"
      "{\"k\":{\"id\":null}}\n{\"k\":5}\n");
  const auto source = Open(path, "?id=k.id&routing=r");
  const auto reader = Read(*source, source->Partitions("a")->at(0));
  auto document = **reader->Next();
  EXPECT_EQ(document.id, "aä");
  EXPECT_EQ(document.routing, "7");
  document = **reader->Next();
  EXPECT_EQ(document.id, "12345678901234567890123");
  EXPECT_EQ(document.routing, "");
  EXPECT_NE((**reader->Next()).defect.find("no id in the field 'k.id'"), std::string::npos);
  EXPECT_NE((**reader->Next()).defect.find("no id in the field 'k.id'"), std::string::npos);
}

TEST_F(JsonlSourceTest, ReportsTheProgressOfAPosition) {
  const auto source = Open(folder_.Write("a.jsonl", Lines(1000)));
  const Partition partition = source->Partitions("a")->at(0);
  EXPECT_EQ(*source->FractionBefore(partition, ""), 0);
  char middle[32];
  std::snprintf(middle, sizeof middle, "%016lld", static_cast<long long>(*partition.bytes / 2));
  EXPECT_NEAR(*source->FractionBefore(partition, middle), 0.5, 0.01);
}

TEST_F(JsonlSourceTest, UnknownParametersAndSchemesAreRefused) {
  EXPECT_EQ(OpenSource("jsonl:a?idd=x", RealEnv()).error().code, Code::kInvalid);
  EXPECT_EQ(OpenSource("jsonl:a?partition_bytes=0", RealEnv()).error().code, Code::kInvalid);
  EXPECT_EQ(OpenSource("jsonl:", RealEnv()).error().code, Code::kInvalid);
  const auto unknown = OpenSource("parquet:a", RealEnv());
  EXPECT_EQ(unknown.error().code, Code::kInvalid);
  EXPECT_NE(unknown.error().hint.find("jsonl:FILE-OR-FOLDER"), std::string::npos);
}

TEST_F(JsonlSourceTest, MissingFileIsNamedOnListing) {
  const auto source = OpenSource("jsonl:/no/such/file.jsonl", RealEnv());
  ASSERT_TRUE(source);
  EXPECT_EQ((*source)->Collections().error().code, Code::kNotFound);
}

}  // namespace
}  // namespace muster::pipeline
