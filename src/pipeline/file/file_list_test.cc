#include "pipeline/file/file_list.h"

#include <gtest/gtest.h>

#include "support/temporary_folder.h"

namespace muster::pipeline {
namespace {

const std::vector<std::string_view> kEndings = {".jsonl", ".ndjson"};

std::string Described(const Result<std::vector<FileCollection>>& found, const std::string& root) {
  if (!found) return "error: " + found.error().message;
  std::string text;
  for (const FileCollection& collection : *found) {
    text += collection.name + ":";
    for (const FileEntry& file : collection.files) text += " " + file.path.substr(root.size() + 1);
    text += "\n";
  }
  return text;
}

TEST(ListFiles, AFileIsACollection) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.Write("orders.2024.jsonl.gz", "");
  EXPECT_EQ(Described(ListFiles(path, kEndings), folder.path()),
            "orders.2024: orders.2024.jsonl.gz\n");
}

TEST(ListFiles, AFileMayHaveAnyName) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.Write("orders", "");
  EXPECT_EQ(Described(ListFiles(path, kEndings), folder.path()), "orders: orders\n");
}

TEST(ListFiles, AFolderHoldsACollectionForEachFileAndFolder) {
  const testing::TemporaryFolder folder;
  for (const char* name :
       {"b.jsonl", "a.ndjson.zst", "README.md", ".hidden.jsonl", "big/2.jsonl", "big/1.jsonl",
        "big/deep/3.jsonl", "big/.muster/x.jsonl", "empty/x.txt"}) {
    folder.Write(name, "");
  }
  EXPECT_EQ(Described(ListFiles(folder.path() + "/", kEndings), folder.path()),
            "a: a.ndjson.zst\nb: b.jsonl\nbig: big/1.jsonl big/2.jsonl big/deep/3.jsonl\n");
}

TEST(ListFiles, TwoFilesOfOneNameAreRefused) {
  const testing::TemporaryFolder folder;
  folder.Write("a.jsonl", "");
  folder.Write("a.jsonl.gz", "");
  const auto found = ListFiles(folder.path(), kEndings);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::kInvalid);
  EXPECT_NE(found.error().message.find("a.jsonl.gz"), std::string::npos);
}

TEST(ListFiles, MissingPathIsNamed) {
  const testing::TemporaryFolder folder;
  EXPECT_EQ(ListFiles(folder.path() + "/none", kEndings).error().code, Code::kNotFound);
  EXPECT_EQ(ListFiles(folder.path(), kEndings).error().code, Code::kNotFound);
}

}  // namespace
}  // namespace muster::pipeline
