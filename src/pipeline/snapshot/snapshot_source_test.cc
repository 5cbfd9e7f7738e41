// Snapshots written by real servers, from tests/data/snapshots, checked against what was indexed.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "core/json.h"
#include "core/sha256.h"
#include "lucene/repository.h"
#include "lucene/shard_reader.h"
#include "muster/migrate.h"
#include "pipeline/flow/memory_sink.h"
#include "pipeline/flow/shards.h"
#include "pipeline/snapshot/snapshot_parts.h"
#include "support/migrate.h"
#include "support/temporary_folder.h"

namespace muster::pipeline {
namespace {

using testing::Migrate;
using testing::TemporaryFolder;

struct Seen {
  std::string id;
  std::string routing;
  std::string body;
  bool deleted = false;
  int64_t version = 0;
  auto operator<=>(const Seen&) const = default;
};

using Lines = std::multiset<std::string>;

// Counts the bytes fetched from each blob.
class WatchedBlobs final : public lucene::Blobs {
 public:
  WatchedBlobs(std::unique_ptr<lucene::Blobs> blobs, std::map<std::string, uint64_t>& fetched)
      : blobs_(std::move(blobs)), fetched_(fetched) {}

  const std::string& name() const override { return blobs_->name(); }
  uint64_t read_ahead() const override { return blobs_->read_ahead(); }
  Result<std::vector<std::string>> ListRoot() const override { return blobs_->ListRoot(); }
  Result<uint64_t> Size(const std::string& path) const override { return blobs_->Size(path); }
  Status ReadInto(const std::string& path, uint64_t offset, uint64_t length,
                  std::string& into) const override {
    fetched_[path] += length;
    return blobs_->ReadInto(path, offset, length, into);
  }

 private:
  const std::unique_ptr<lucene::Blobs> blobs_;
  std::map<std::string, uint64_t>& fetched_;
};

class SnapshotFixture : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>();
    for (const char* name : {"changes", "hashed"}) {
      const std::string command = std::string("tar --zstd -xf " MUSTER_SNAPSHOTS "/") + name +
                                  ".tar.zst -C " + folder_->path();
      ASSERT_EQ(std::system(command.c_str()), 0) << command;
    }
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static std::string Url(const std::string& name, const std::string& rest) {
    return "snapshot+file://" + folder_->path() + "/" + name + "/repo" + rest;
  }

  static std::unique_ptr<Source> Open(const std::string& name, const std::string& rest) {
    auto source = OpenSource(Url(name, rest), RealEnv());
    if (!source) throw std::runtime_error(source.error().ToString());
    return *std::move(source);
  }

  static std::vector<Partition> PartitionsOf(Source& source, const std::string& index) {
    return source.Partitions(index).value();
  }

  static std::vector<Seen> Read(Source& source, const Partition& partition,
                                const std::string& from = "",
                                std::vector<std::string>* positions = nullptr) {
    std::vector<Seen> all;
    const auto reader = source.Read(partition, from, {}).value();
    while (true) {
      const auto next = reader->Next();
      if (!next) throw std::runtime_error(next.error().ToString());
      if (!*next) return all;
      const Document& document = **next;
      all.push_back({std::string(document.id), std::string(document.routing),
                     std::string(document.body), document.deleted, document.version});
      if (positions != nullptr) positions->emplace_back(document.position);
    }
  }

  // "SHARD id routing sha256", the fixture's expectation for an index in a snapshot.
  static Lines Expected(const std::string& name, const std::string& snapshot,
                        const std::string& index) {
    Lines lines;
    std::istringstream file(folder_->Read(name + "/expected.tsv"));
    for (std::string line; std::getline(file, line);) {
      std::vector<std::string> columns;
      std::istringstream cells(line);
      for (std::string cell; std::getline(cells, cell, '\t');) columns.push_back(cell);
      if (columns[0] != snapshot || columns[1] != index) continue;
      lines.insert(columns[2] + " " + columns[4] + " " + columns[5] + " " + columns[7]);
    }
    return lines;
  }

  static std::string LineOf(int shard, const Seen& seen) {
    std::string line = std::to_string(shard) + " ";
    AppendJsonString(line, seen.id);
    line += " ";
    if (seen.routing.empty()) {
      line += "null";
    } else {
      AppendJsonString(line, seen.routing);
    }
    return line + " " + (seen.body.empty() ? "-" : Sha256Hex(seen.body));
  }

  // Id to hash across shards: what a target should contain.
  static std::map<std::string, std::string> Contents(const std::string& snapshot,
                                                     const std::string& index) {
    std::map<std::string, std::string> contents;
    const auto source = Open("changes", "?snapshot=" + snapshot + "#" + index);
    for (const Partition& partition : PartitionsOf(*source, index)) {
      for (const Seen& seen : Read(*source, partition)) contents[seen.id] = seen.body;
    }
    return contents;
  }

  static std::map<std::string, std::string> ContentsOf(const MemorySink& sink,
                                                       const std::string& index) {
    std::map<std::string, std::string> contents;
    for (const MemorySink::Entry& entry : sink.Documents(index)) {
      EXPECT_TRUE(contents.emplace(entry.id, entry.body).second) << entry.id << " is there twice";
    }
    return contents;
  }

  static inline std::unique_ptr<TemporaryFolder> folder_;
};

TEST_F(SnapshotFixture, EveryDocumentIsUnchanged) {
  for (const auto& [name, snapshot, index] : {std::tuple{"changes", "first", "plain"},
                                              {"changes", "first", "routed"},
                                              {"changes", "first", "deflate"},
                                              {"changes", "second", "plain"},
                                              {"changes", "second", "routed"},
                                              {"changes", "second", "deflate"},
                                              {"hashed", "only", "hidden"},
                                              {"hashed", "only", "seen"}}) {
    const auto source = Open(name, std::string("?snapshot=") + snapshot + "#" + index);
    Lines found;
    for (const Partition& partition : PartitionsOf(*source, index)) {
      for (const Seen& seen : Read(*source, partition)) found.insert(LineOf(partition.shard, seen));
    }
    const Lines expected = Expected(name, snapshot, index);
    EXPECT_FALSE(expected.empty());
    EXPECT_EQ(found, expected) << snapshot << " " << index;
  }
}

TEST(LeftOutOfASnapshot, AStoreIsRecognizedByItsMappingAlsoIfItIsNamed) {
  const Json store = Json::parse(R"([{"_doc":{"_meta":{"muster_schema":1}}}])");
  const Json other = Json::parse(R"([{"_doc":{"_meta":{"owner":"shop"}}}])");
  const auto why = [](const std::string& name, const Json& mappings, bool named) {
    lucene::SnapshotIndex index;
    index.name = name;
    index.mappings = mappings;
    return WhyLeftOut(index, named);
  };
  for (const bool named : {false, true}) {
    EXPECT_EQ(why("team_records-000001", store, named), "a Muster store");
    EXPECT_EQ(why("books", other, named), "");
  }
  EXPECT_NE(why(".books", other, false), "");
  EXPECT_EQ(why(".books", other, true), "");
}

TEST_F(SnapshotFixture, AnIndexThatKeepsNoSourceIsRefusedByName) {
  for (const auto& [parameters, is_refused] :
       {std::pair{"", true}, {"?recovery_source=true", false}, {"?pruned_source=true", true}}) {
    const auto collections = Open("hashed", parameters)->Collections().value();
    for (const Collection& one : collections) {
      EXPECT_EQ(one.refusal.has_value(), is_refused && one.name == "hidden") << one.name;
      if (!one.refusal) continue;
      const std::string why = one.refusal->ToString();
      EXPECT_NE(why.find("index hidden: its mapping keeps no _source"), std::string::npos) << why;
      EXPECT_NE(why.find("--exclude hidden"), std::string::npos) << why;
    }
  }
}

TEST_F(SnapshotFixture, OnlyFilesAndRangesWithDocumentsAreFetched) {
  std::map<std::string, uint64_t> fetched;
  auto folder = lucene::OpenFolder(folder_->path() + "/changes/repo").value();
  const auto repository =
      lucene::Repository::Open(std::make_unique<WatchedBlobs>(std::move(folder), fetched)).value();
  const auto snapshot = repository.ReadSnapshot("second").value();
  const auto index = repository.ReadIndex(snapshot, "plain").value();
  const auto directory = repository.ReadShard(snapshot, index, 0).value();
  fetched.clear();
  auto reader = lucene::ShardReader::Open(directory).value();
  lucene::Document document;
  while (reader.Next(document).value()) {
  }
  EXPECT_GT(reader.counts().documents, 0U);
  const std::set<std::string> read_whole = {".si",  ".cfe", ".fnm", ".fdt", ".fdx",
                                            ".fdm", ".liv", ".dvd", ".dvm"};
  size_t compound_files = 0;
  for (const auto& [name, file] : directory.files()) {
    uint64_t bytes = 0;
    for (const auto& [path, length] : fetched) {
      if (path.find(file.blob) != std::string::npos) bytes += length;
    }
    const std::string kind = std::filesystem::path(name).extension();
    if (kind == ".cfs") {
      ++compound_files;
      EXPECT_LT(bytes, file.length) << name;
    } else if (!read_whole.contains(kind) && !name.starts_with("segments_")) {
      EXPECT_EQ(bytes, 0U) << name;
    }
  }
  EXPECT_GT(compound_files, 0U);
}

TEST_F(SnapshotFixture, HashedFoldersMayHaveAPrefixKnownOnlyToTheRepository) {
  namespace fs = std::filesystem;
  const fs::path repository = fs::path(folder_->path()) / "prefixed" / "repo";
  fs::create_directories(repository.parent_path());
  fs::copy(fs::path(folder_->path()) / "hashed" / "repo", repository, fs::copy_options::recursive);
  const std::vector<fs::directory_entry> entries(fs::directory_iterator(repository), {});
  for (const fs::directory_entry& entry : entries) {
    const std::string name = entry.path().filename();
    if (!entry.is_directory() || name == "indices" || name == "snapshot_shard_paths") continue;
    fs::rename(entry.path(), repository / ("mine" + name));
  }
  for (const auto& entry : fs::directory_iterator(repository / "snapshot_shard_paths")) {
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    Json list = ParseJson(text.str(), "paths").value();
    for (Json& path : list["paths"]) path = "mine" + path.get<std::string>();
    std::ofstream(entry.path()) << list.dump();
  }
  const auto source = Open("prefixed", "#seen");
  Lines found;
  for (const Partition& partition : PartitionsOf(*source, "seen")) {
    for (const Seen& seen : Read(*source, partition)) found.insert(LineOf(partition.shard, seen));
  }
  EXPECT_EQ(found, Expected("hashed", "only", "seen"));
}

// From each position on exactly the rest is read, and a split there gives exactly two parts.
TEST_F(SnapshotFixture, ReadingContinuesAndSplitsAtEveryPosition) {
  for (const auto& [rest, index] : {std::pair{"?snapshot=second#plain", "plain"},
                                    {"?snapshot=second#deflate", "deflate"},
                                    {"?snapshot=second&since=first#plain", "plain"},
                                    {"?snapshot=second&since=first#routed", "routed"}}) {
    const auto source = Open("changes", rest);
    for (const Partition& partition : PartitionsOf(*source, index)) {
      std::vector<std::string> after;
      const std::vector<Seen> all = Read(*source, partition, "", &after);
      const uint64_t end = std::stoull(partition.end);
      size_t read = 0;
      for (uint64_t number = 0; number <= end; ++number) {
        std::string position = std::to_string(number);
        position.insert(0, partition.end.size() - position.size(), '0');
        while (read < after.size() && after[read] <= position) ++read;
        const std::vector<Seen> wanted(all.begin() + static_cast<std::ptrdiff_t>(read), all.end());
        ASSERT_EQ(Read(*source, partition, position), wanted) << rest << " from " << position;
        Partition first = partition;
        first.end = position;
        ASSERT_EQ(Read(*source, first).size(), read) << rest << " up to " << position;
      }
    }
  }
}

TEST_F(SnapshotFixture, DeltaYieldsTheLaterSnapshot) {
  for (const char* index : {"plain", "routed", "deflate"}) {
    MemorySink sink;
    const auto first = Open("changes", std::string("?snapshot=first#") + index);
    ASSERT_TRUE(Migrate(*first, sink));
    EXPECT_EQ(ContentsOf(sink, index), Contents("first", index));
    const auto delta = Open("changes", std::string("?snapshot=second&since=first#") + index);
    const auto counts = Migrate(*delta, sink);
    ASSERT_TRUE(counts) << counts.error().ToString();
    EXPECT_GT(counts->written, 0);
    EXPECT_EQ(ContentsOf(sink, index), Contents("second", index)) << index;
  }
}

TEST_F(SnapshotFixture, DeltaReadsOnlyChangesAndDeletesFirst) {
  const auto source = Open("changes", "?snapshot=second&since=first#plain");
  EXPECT_TRUE(source->HasDeletes());
  const std::map<std::string, std::string> before = Contents("first", "plain");
  const std::map<std::string, std::string> now = Contents("second", "plain");
  const auto partitions = source->Partitions("plain").value();
  EXPECT_EQ(partitions.size(), 2U);
  size_t deletes = 0;
  size_t writes = 0;
  for (const Partition& partition : partitions) {
    const std::vector<Seen> changes = Read(*source, partition);
    EXPECT_TRUE(std::is_sorted(changes.begin(), changes.end(), [](const Seen& a, const Seen& b) {
      return a.deleted && !b.deleted;
    }));
    for (const Seen& seen : changes) {
      const auto& side = seen.deleted ? before : now;
      ASSERT_TRUE(side.contains(seen.id)) << seen.id;
      EXPECT_EQ(side.at(seen.id), seen.body);
      ++(seen.deleted ? deletes : writes);
      EXPECT_EQ(seen.version % 2, seen.deleted ? 0 : 1);
    }
    EXPECT_FALSE(source->Read(partition, "", {}).value()->Split().value());
  }
  // 12 were changed, 11 deleted, 10 are new.
  EXPECT_EQ(deletes, 23U);
  EXPECT_EQ(writes, 22U);
}

TEST_F(SnapshotFixture, DeltaWithRoutingIsOnePartition) {
  const auto source = Open("changes", "?snapshot=second&since=first#routed");
  EXPECT_EQ(source->Partitions("routed").value().size(), 1U);
}

TEST_F(SnapshotFixture, DeltaDeletesDocumentsThatATransformDrops) {
  MemorySink sink;
  constexpr const char* kOnlyFirstTurn = "- filter: {field: turn, equals: 1}\n";
  ASSERT_TRUE(Migrate(*Open("changes", "?snapshot=first#plain"), sink, kOnlyFirstTurn));
  ASSERT_TRUE(
      Migrate(*Open("changes", "?snapshot=second&since=first#plain"), sink, kOnlyFirstTurn));
  for (const auto& [id, body] : ContentsOf(sink, "plain")) {
    EXPECT_NE(body.find("\"turn\":1"), std::string::npos) << id << " " << body;
  }
}

TEST_F(SnapshotFixture, DeltaCanBeWrittenToTablesWithIds) {
  const TemporaryFolder folder;
  for (const char* how : {"?documents=true", ""}) {
    const std::string url = "sqlite:" + folder.At(*how == '?' ? "documents.db" : "fields.db") + how;
    const auto sink = OpenSink(url, RealEnv()).value();
    ASSERT_TRUE(Migrate(*Open("changes", "?snapshot=first#plain"), *sink));
    const auto done = Migrate(*Open("changes", "?snapshot=second&since=first#plain"), *sink);
    ASSERT_TRUE(done) << done.error().ToString();
    const auto target = OpenSource(url, RealEnv()).value();
    size_t rows = 0;
    std::map<std::string, std::string> documents;
    for (const Partition& partition : PartitionsOf(*target, "plain")) {
      for (const Seen& seen : Read(*target, partition)) {
        ++rows;
        documents[seen.id] = seen.body;
      }
    }
    const std::map<std::string, std::string> expected = Contents("second", "plain");
    EXPECT_EQ(rows, expected.size());
    // Columns contain no whole documents to compare.
    if (*how == '?') {
      EXPECT_EQ(documents, expected);
    }
  }
}

TEST_F(SnapshotFixture, SinksThatCannotDeleteRefuseADeltaBeforeAnythingIsWritten) {
  const TemporaryFolder folder;
  const auto sink = OpenSink("jsonl:" + folder.path() + "/out/", RealEnv()).value();
  const auto done = Migrate(*Open("changes", "?snapshot=second&since=first#plain"), *sink);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kIncompatible);
  EXPECT_FALSE(folder.Has("out/plain.jsonl"));
}

TEST_F(SnapshotFixture, DeltaRequiresAnEarlierSnapshot) {
  const auto backward = OpenSource(Url("changes", "?snapshot=first&since=second"), RealEnv());
  ASSERT_FALSE(backward);
  EXPECT_EQ(backward.error().code, Code::kInvalid);
  EXPECT_FALSE(OpenSource(Url("changes", "?snapshot=second&since=second"), RealEnv()));
  EXPECT_FALSE(OpenSource(Url("changes", "?snapshot=second&since=zeroth"), RealEnv()));
}

TEST_F(SnapshotFixture, UnreadableIndexFailsOnlyItsOwnMigration) {
  const TemporaryFolder copy;
  std::filesystem::copy(
      folder_->path() + "/changes/repo", copy.path(),
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::overwrite_existing);
  const auto open = [&] {
    return OpenSource("snapshot+file://" + copy.path() + "?snapshot=second", RealEnv()).value();
  };
  const size_t all = open()->Collections()->size();
  ASSERT_GT(all, 1u);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(copy.path())) {
    if (!entry.path().filename().string().starts_with("meta-") ||
        entry.path().parent_path() == copy.path())
      continue;
    std::filesystem::resize_file(entry.path(), 20);
    break;
  }
  const auto source = open();
  const auto collections = source->Collections();
  ASSERT_TRUE(collections) << collections.error().ToString();
  ASSERT_EQ(collections->size(), all);
  std::set<std::string> damaged;
  for (const Collection& one : *collections) {
    if (one.refusal) damaged.insert(one.name);
  }
  ASSERT_EQ(damaged.size(), 1u);
  const auto others =
      SelectCollections(*source, [&](const std::string& name) { return !damaged.contains(name); });
  ASSERT_TRUE(others) << others.error().ToString();
  EXPECT_EQ(others->size(), all - 1);
  const auto selected = SelectCollections(*source, {});
  ASSERT_FALSE(selected);
  EXPECT_EQ(selected.error().code, Code::kCorrupt);
}

TEST_F(SnapshotFixture, ReportsTheIndexAndItsTemplates) {
  const auto source = Open("changes", "?snapshot=second#plain");
  const Json metadata = ParseJson(source->Collections()->at(0).metadata, "metadata").value();
  EXPECT_EQ(metadata["mappings"]["properties"]["parts"]["type"], "nested");
  EXPECT_TRUE(metadata["aliases"].contains("plain-alias"));
  const Json global = ParseJson(source->GlobalMetadata().value(), "metadata").value();
  EXPECT_TRUE(global["index_templates"].contains("changes-template")) << global;
}

}  // namespace
}  // namespace muster::pipeline
