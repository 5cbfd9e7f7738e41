#include "pipeline/file/csv_source.h"

#include <gtest/gtest.h>

#include "muster/migrate.h"
#include "support/temporary_folder.h"

namespace muster::pipeline {
namespace {

class CsvSourceTest : public ::testing::Test {
 protected:
  std::unique_ptr<Source> Open(const std::string& path, const std::string& query = "") {
    auto source = OpenSource("csv:" + path + query, RealEnv());
    EXPECT_TRUE(source) << source.error().ToString();
    return *std::move(source);
  }

  static std::vector<std::string> Read(Source& source, const Partition& partition) {
    auto reader = source.Read(partition, "", {});
    EXPECT_TRUE(reader) << reader.error().ToString();
    return Rest(**reader);
  }

  static std::vector<std::string> Rest(Reader& reader) {
    std::vector<std::string> all;
    for (;;) {
      const auto document = reader.Next();
      EXPECT_TRUE(document) << document.error().ToString();
      if (!document || !*document) return all;
      all.emplace_back((*document)->defect.empty() ? (*document)->body : (*document)->defect);
    }
  }

  std::vector<std::string> ReadFile(const std::string& content, const std::string& query = "") {
    const auto source = Open(folder_.Write("t.csv", content), query);
    return Read(*source, source->Partitions("t")->at(0));
  }

  testing::TemporaryFolder folder_;
};

using Texts = std::vector<std::string>;

TEST_F(CsvSourceTest, RecordsBecomeObjectsNamedByTheHeader) {
  EXPECT_EQ(ReadFile("id,name\n1,a\n2,b\n"),
            (Texts{R"({"id":"1","name":"a"})", R"({"id":"2","name":"b"})"}));
}

TEST_F(CsvSourceTest, QuotedFieldsAreStringsAndEmptyOnesNull) {
  EXPECT_EQ(ReadFile("\xEF\xBB\xBFid,\"na me\"\r\n1,\"a \"\"b\"\"\r\nc\\\"\r\n\n2,\n3,\"\"\n"),
            (Texts{R"({"id":"1","na me":"a \"b\"\r\nc\\"})", R"({"id":"2","na me":null})",
                   R"({"id":"3","na me":""})"}));
}

TEST_F(CsvSourceTest, ColumnsMayBeNamedByTheUrl) {
  EXPECT_EQ(ReadFile("1;2\n", "?columns=a,b&delimiter=%3B"), (Texts{R"({"a":"1","b":"2"})"}));
  EXPECT_EQ(ReadFile("1\t2\n", "?columns=a,b&delimiter=tab"), (Texts{R"({"a":"1","b":"2"})"}));
}

TEST_F(CsvSourceTest, BlankLineIsARecordOnlyWithOneColumn) {
  EXPECT_EQ(ReadFile("a\n1\n\n2\n"), (Texts{R"({"a":"1"})", R"({"a":null})", R"({"a":"2"})"}));
  EXPECT_EQ(ReadFile("a,b\n1,2\n\n3,4\n").size(), 2U);
}

TEST_F(CsvSourceTest, InvalidRecordIsADefectWithFileAndLine) {
  const std::string path = folder_.path() + "/t.csv";
  EXPECT_EQ(ReadFile("a,b\n1,2\n\"x\ny\",2\n1,2,3\n1\n5\" disk,2\n6\",2\n"),
            (Texts{R"({"a":"1","b":"2"})", R"({"a":"x\ny","b":"2"})",
                   path + ":5 (byte 16): 3 fields instead of 2",
                   path + ":6 (byte 22): 1 fields instead of 2",
                   path + ":7 (byte 24): a quote inside unquoted text in column 1",
                   path + ":8 (byte 34): a quote inside unquoted text in column 1"}));
}

TEST_F(CsvSourceTest, BadUtf8AndOpenQuotesAreDefects) {
  const std::string path = folder_.path() + "/t.csv";
  EXPECT_EQ(ReadFile("a,b\n\xff,2\n1,\"open\n2,3\n"),
            (Texts{path + ":2 (byte 4): invalid UTF-8 at byte 1 of the record",
                   path + ":3 (byte 8): a quote that is not closed", R"({"a":"2","b":"3"})"}));
}

TEST_F(CsvSourceTest, StrayQuoteCostsOnlyItsOwnLine) {
  std::string text = "id,name\n1,\"Ada\n";
  for (int i = 2; i < 1'000; ++i) text += std::to_string(i) + ",x\n";
  for (const std::string end : {"1000,\"Cy\"\n", "1000,Cy\"\n", "1000,Cy\n"}) {
    Texts rows = ReadFile(text + end);
    ASSERT_EQ(rows.size(), 1'000U) << end;
    EXPECT_NE(rows[0].find("t.csv:2 (byte 8): a quote that is not closed"), std::string::npos);
    const auto defects = std::count_if(rows.begin(), rows.end(),
                                       [](const std::string& row) { return row[0] != '{'; });
    EXPECT_EQ(defects, end == "1000,Cy\"\n" ? 2 : 1) << end;
    // Records are the same wherever partitions begin.
    const auto source = Open(folder_.path() + "/t.csv", "?partition_bytes=50");
    Texts all;
    const auto partitions = source->Partitions("t");
    ASSERT_GT(partitions->size(), 20U);
    for (const Partition& partition : *partitions) {
      for (std::string& body : Read(*source, partition)) all.push_back(std::move(body));
    }
    ASSERT_EQ(all.size(), rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i][0] != '{') continue;
      EXPECT_EQ(all[i], rows[i]);
    }
  }
}

TEST_F(CsvSourceTest, UnclosedQuoteBeyondTheRecordLimitIsRefused) {
  std::string text = "id,name\n1,\"Ada\n";
  for (int i = 2; i < 1'000; ++i) text += std::to_string(i) + ",x\n";
  const auto source = Open(folder_.Write("t.csv", text), "?max_document_bytes=1000");
  auto reader = source->Read(source->Partitions("t")->at(0), "", {});
  const auto read = (*reader)->Next();
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Code::kCorrupt);
  EXPECT_NE(read.error().message.find("t.csv:2 (byte 8)"), std::string::npos)
      << read.error().message;
}

TEST_F(CsvSourceTest, PartitionsNeverSplitARecord) {
  std::string text = "id,text\n";
  for (int i = 0; i < 300; ++i) {
    text += std::to_string(i) + ",\"line one\n" + std::string(i % 13, '\n') + "\"\"quoted\"\"," +
            std::string(i % 5, '"') + std::string(i % 5, '"') + "\"\n";
  }
  const std::string path = folder_.Write("t.csv", text);
  const auto whole = Open(path);
  const auto expected = Read(*whole, whole->Partitions("t")->at(0));
  ASSERT_EQ(expected.size(), 300U);
  for (const int bytes : {1, 7, 100, 1000, 5000}) {
    const auto source = Open(path, "?partition_bytes=" + std::to_string(bytes));
    const auto partitions = source->Partitions("t");
    ASSERT_GT(partitions->size(), 1U);
    Texts all;
    for (const Partition& partition : *partitions) {
      for (std::string& body : Read(*source, partition)) all.push_back(std::move(body));
    }
    EXPECT_EQ(all, expected) << bytes;
  }
}

TEST_F(CsvSourceTest, SplitReadsEveryRecordOnce) {
  std::string text = "id,text\n";
  for (int i = 0; i < 20'000; ++i) text += std::to_string(i) + ",\"a\n\"\"b\"\"\n\"\n";
  const auto source = Open(folder_.Write("t.csv", text));
  Partition partition = source->Partitions("t")->at(0);
  const auto expected = Read(*source, partition);
  auto reader = source->Read(partition, "", {});
  Texts all = {std::string((**(*reader)->Next()).body)};
  const auto split = (*reader)->Split();
  ASSERT_TRUE(split && *split);
  for (std::string& body : Rest(**reader)) all.push_back(std::move(body));
  EXPECT_LT(all.size(), 15'000U);
  EXPECT_GT(all.size(), 5'000U);
  partition.begin = **split;
  partition.bytes.reset();  // like any part that is split off
  for (std::string& body : Read(*source, partition)) all.push_back(std::move(body));
  EXPECT_EQ(all, expected);
}

TEST_F(CsvSourceTest, MetadataHasTheColumns) {
  folder_.Write("many/1.csv", "a,b\n");
  folder_.Write("many/2.csv", "b,c\n");
  const auto collections = Open(folder_.path())->Collections();
  ASSERT_EQ(collections->size(), 1U);
  EXPECT_EQ(collections->at(0).metadata,
            R"({"columns":[{"name":"a","type":"text","nullable":true},)"
            R"({"name":"b","type":"text","nullable":true},)"
            R"({"name":"c","type":"text","nullable":true}],"key":[]})");
}

TEST_F(CsvSourceTest, IdsComeFromTheirColumn) {
  const auto source = Open(folder_.Write("t.csv", "k,v\na,1\n,2\n"), "?id=k&routing=v");
  auto reader = source->Read(source->Partitions("t")->at(0), "", {});
  const auto first = **(*reader)->Next();
  EXPECT_EQ(first.id, "a");
  EXPECT_EQ(first.routing, "1");
  EXPECT_NE((**(*reader)->Next()).defect.find("no id in the column 'k'"), std::string::npos);
}

TEST_F(CsvSourceTest, BadHeadersAreErrors) {
  for (const auto& [content, message] :
       {std::pair("", "is empty"), std::pair("a,a\n1,2\n", "'a' occurs twice"),
        std::pair("a,b\r1,2\r", "a carriage return in the header"),
        std::pair("a,\n1,2\n", "column 2 has no name"), std::pair("\xff\n", "invalid UTF-8")}) {
    const auto collections = Open(folder_.Write("t.csv", content))->Collections();
    ASSERT_FALSE(collections) << content;
    EXPECT_EQ(collections.error().code, Code::kInvalid);
    EXPECT_NE(collections.error().message.find(message), std::string::npos)
        << collections.error().message;
  }
  const auto source = Open(folder_.Write("t.csv", "a\n1\n"), "?id=nope");
  EXPECT_EQ(source->Collections().error().code, Code::kInvalid);
}

}  // namespace
}  // namespace muster::pipeline
