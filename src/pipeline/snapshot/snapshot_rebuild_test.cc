// Documents of indices without a whole _source, rebuilt from doc values and stored fields, compared
// with what was sent to the server. Arrays come back sorted, so the expected ones are sorted first.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "core/json.h"
#include "core/json_equal.h"
#include "muster/migrate.h"
#include "pipeline/snapshot/rebuild_plan.h"
#include "support/temporary_folder.h"

namespace muster::pipeline {
namespace {

using testing::TemporaryFolder;

using Documents = std::map<std::string, Json>;

bool IsBefore(const Json& a, const Json& b) {
  return a.is_boolean() ? a.get<bool>() < b.get<bool>() : a < b;
}

// Doc values are in ascending order; stored fields, and what _source keeps, are as they were sent.
Json Sorted(Json document, bool is_pruned) {
  const std::set<std::string> left_out = {"long", "date", "ip", "keyword"};
  for (auto& [name, value] : document.items()) {
    if (value.is_array() && name != "title" && (!is_pruned || left_out.contains(name))) {
      std::sort(value.begin(), value.end(), IsBefore);
    }
  }
  return document;
}

class SnapshotRebuild : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>();
    const std::string command =
        "tar --zstd -xf " MUSTER_SNAPSHOTS "/rebuilt.tar.zst -C " + folder_->path();
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static Result<std::unique_ptr<Source>> Open(const std::string& rest) {
    return OpenSource("snapshot+file://" + folder_->path() + "/rebuilt/repo" + rest, RealEnv());
  }

  static std::string RefusalOf(const std::string& rest, const std::string& index) {
    const auto source = Open(rest).value();
    const std::vector<Collection> collections = source->Collections().value();
    for (const Collection& one : collections) {
      if (one.name == index) return one.refusal ? one.refusal->ToString() : "";
    }
    return "not listed";
  }

  static Documents Sent(const std::string& index) {
    Documents sent;
    std::istringstream lines(folder_->Read("rebuilt/documents.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      const Json entry = Json::parse(line);
      if (entry[0] == index) sent[entry[1]] = Sorted(entry[2], index == "pruned");
    }
    return sent;
  }

  struct Found {
    std::string id;
    std::string defect;
    bool deleted = false;
    Json body;
  };

  static std::vector<Found> ReadAll(const std::string& rest, const std::string& index,
                                    const std::string& from = "") {
    std::vector<Found> found;
    const auto source = Open(rest + "#" + index).value();
    const std::vector<Partition> partitions = source->Partitions(index).value();
    for (const Partition& partition : partitions) {
      const auto reader = source->Read(partition, from, {}).value();
      while (true) {
        const auto next = reader->Next();
        EXPECT_TRUE(next) << next.error().ToString();
        if (!next || !*next) break;
        const Document& document = **next;
        found.push_back({std::string(document.id), std::string(document.defect), document.deleted,
                         ParseJson(document.body, "body").value_or(Json())});
      }
    }
    return found;
  }

  static Documents Read(const std::string& rest, const std::string& index,
                        const std::string& from = "") {
    Documents read;
    const std::vector<Found> all = ReadAll(rest, index, from);
    for (const Found& one : all) {
      EXPECT_EQ(one.defect, "") << one.id;
      EXPECT_TRUE(read.emplace(one.id, one.body).second) << one.id << " twice";
    }
    return read;
  }

  static std::unique_ptr<TemporaryFolder> folder_;
};

std::unique_ptr<TemporaryFolder> SnapshotRebuild::folder_;

TEST_F(SnapshotRebuild, EveryDocumentEqualsWhatWasSent) {
  for (const std::string index : {"bare", "pruned"}) {
    const Documents sent = Sent(index);
    const Documents read = Read("?rebuild_source=true", index);
    EXPECT_GT(sent.size(), 25U);
    EXPECT_EQ(read.size(), sent.size());
    for (const auto& [id, document] : sent) {
      const Json rebuilt = read.contains(id) ? read.at(id) : Json();
      EXPECT_TRUE(JsonEqual(rebuilt, document)) << index << " " << id << ": " << ToJsonText(rebuilt)
                                                << " is not " << ToJsonText(document);
    }
  }
}

TEST_F(SnapshotRebuild, ReadingCanStartAnywhere) {
  const Documents all = Read("?rebuild_source=true", "bare");
  for (const char* from : {"0000000000000000030", "0000000000000000060"}) {
    const Documents rest = Read("?rebuild_source=true", "bare", from);
    EXPECT_GT(rest.size(), 10U);
    EXPECT_LT(rest.size(), all.size());
    for (const auto& [id, document] : rest) EXPECT_EQ(document, all.at(id)) << id;
  }
}

TEST_F(SnapshotRebuild, ACopyForRecoveryComesFirst) {
  const Documents read = Read("?rebuild_source=true&recovery_source=true", "bare");
  // As it was sent: not in UTC.
  EXPECT_EQ(read.at("r2")["date"], "2024-02-03T23:00:02.002+02:00");
}

TEST_F(SnapshotRebuild, ADeltaHasTheFormerDocumentsAndTheNewOnes) {
  const Documents before = Read("?snapshot=first&rebuild_source=true", "bare");
  const Documents sent = Sent("bare");
  size_t deletes = 0;
  size_t writes = 0;
  const std::vector<Found> delta = ReadAll("?since=first&rebuild_source=true", "bare");
  for (const Found& one : delta) {
    EXPECT_EQ(one.defect, "") << one.id;
    EXPECT_TRUE(JsonEqual(one.body, one.deleted ? before.at(one.id) : sent.at(one.id))) << one.id;
    ++(one.deleted ? deletes : writes);
  }
  EXPECT_EQ(deletes, 8U);
  EXPECT_EQ(writes, 4U);
}

TEST_F(SnapshotRebuild, AnArrayOfObjectsIsADefect) {
  EXPECT_EQ(RefusalOf("?rebuild_source=true", "several"), "");
  const std::vector<Found> found = ReadAll("?rebuild_source=true", "several");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].defect.find("cannot be rebuilt: 'shop.city' has several values"),
            std::string::npos)
      << found[0].defect;
}

TEST_F(SnapshotRebuild, AnIndexThatCannotBeRebuiltIsRefusedWithItsFields) {
  EXPECT_EQ(RefusalOf("?rebuild_source=true", "bare"), "");
  EXPECT_EQ(RefusalOf("?rebuild_source=true", "pruned"), "");
  const std::string texts = RefusalOf("?rebuild_source=true", "texts");
  EXPECT_NE(texts.find("because of free (text without store: true)"), std::string::npos) << texts;
  const std::string loose = RefusalOf("?rebuild_source=true", "loose");
  EXPECT_NE(loose.find("the document (dynamic: false"), std::string::npos) << loose;
  for (const std::string index : {"bare", "pruned", "texts", "loose"}) {
    EXPECT_NE(RefusalOf("", index).find("rebuild_source=true"), std::string::npos) << index;
  }
}

TEST_F(SnapshotRebuild, WithoutItAndAsItIsExcludeEachOther) {
  const auto source = Open("?rebuild_source=true&pruned_source=true");
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().code, Code::kInvalid);
}

// A file of values that was damaged is an error, also if its numbers still look like some.
TEST_F(SnapshotRebuild, DamagedValuesAreAnError) {
  namespace fs = std::filesystem;
  const fs::path copy = fs::path(folder_->path()) / "damaged";
  fs::copy(fs::path(folder_->path()) / "rebuilt" / "repo", copy, fs::copy_options::recursive);
  size_t damaged = 0;
  for (const auto& entry : fs::recursive_directory_iterator(copy)) {
    if (!entry.is_regular_file()) continue;
    const std::string path = fs::relative(entry.path(), folder_->path());
    std::string bytes = folder_->Read(path);
    const size_t at = bytes.find("Lucene90DocValuesData");
    if (at == std::string::npos) continue;
    // After the header: name, version, id and suffix.
    bytes[at + 60] = static_cast<char>(bytes[at + 60] ^ 1);
    folder_->Write(path, bytes);
    ++damaged;
  }
  ASSERT_GT(damaged, 0U);
  const auto source =
      OpenSource("snapshot+file://" + copy.string() + "?rebuild_source=true#bare", RealEnv())
          .value();
  const std::vector<Partition> partitions = source->Partitions("bare").value();
  const auto reader = source->Read(partitions.front(), "", {}).value();
  const auto next = reader->Next();
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().code, Code::kCorrupt);
  EXPECT_NE(next.error().message.find("CRC-32"), std::string::npos) << next.error().message;
}

}  // namespace
}  // namespace muster::pipeline
