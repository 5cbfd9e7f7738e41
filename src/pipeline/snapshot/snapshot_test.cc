// A snapshot as a source, checked against the real server that wrote it.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/json.h"
#include "muster/migrate.h"
#include "support/migrate.h"
#include "support/opensearch_server.h"
#include "support/shared_server.h"

namespace muster::pipeline {
namespace {

using testing::OpenSearchServer;
using testing::UniqueName;

class SnapshotSource : public ::testing::Test {
 protected:
  static constexpr int kDocuments = 7'000;
  static std::string Books() { return UniqueName("books"); }

  // One snapshot for all tests: two shards, some documents changed, some deleted.
  static void SetUpTestSuite() {
    if (!OpenSearchServer::Unavailable().empty()) return;
    OpenSearchServer& server = OpenSearchServer::Shared();
    server.Call("PUT", "/" + Books(),
                R"({"settings":{"number_of_shards":2,"number_of_replicas":0},"aliases":{")" +
                    UniqueName("library") + R"(":{}},
                    "mappings":{"dynamic":false,"properties":{"chapters":{"type":"nested",
                      "properties":{"title":{"type":"text"}}}}}})");
    std::string bulk;
    for (int i = 0; i < kDocuments; ++i) {
      bulk += R"({"index":{"_id":")" + std::to_string(i) + "\"}}\n" + Body(i) + "\n";
      if (i % 1'000 == 999) Bulk(server, bulk);
    }
    for (int i = 0; i < kDocuments; i += 10) {
      bulk += R"({"delete":{"_id":")" + std::to_string(i) + "\"}}\n";
    }
    for (int i = 1; i < kDocuments; i += 10) {
      bulk += R"({"index":{"_id":")" + std::to_string(i) + "\"}}\n" + Body(-i) + "\n";
    }
    Bulk(server, bulk);
    server.Call(
        "PUT", "/_snapshot/" + Books(),
        R"({"type":"fs","settings":{"location":")" + server.RepositoryFolder() + "/books\"}}");
    server.Call("PUT", "/_snapshot/" + Books() + "/first?wait_for_completion=true",
                R"({"indices":")" + Books() + R"(","include_global_state":true})");
  }

  void SetUp() override {
    if (const std::string why = OpenSearchServer::Unavailable(); !why.empty()) GTEST_SKIP() << why;
    auto source = OpenSource(
        "snapshot+file://" + OpenSearchServer::Shared().RepositoryFolder() + "/books#" + Books(),
        RealEnv());
    ASSERT_TRUE(source) << source.error().ToString();
    source_ = *std::move(source);
    partitions_ = source_->Partitions(Books()).value();
  }

  static void Bulk(OpenSearchServer& server, std::string& bulk) {
    server.Call("POST", "/" + Books() + "/_bulk", bulk);
    bulk.clear();
  }

  static std::string Body(int i) {
    return R"({"n":)" + std::to_string(i) + R"(.0,"chapters":[{"title":"a"},{"title":"b"}]})";
  }

  // The index's content when the snapshot was taken.
  static std::map<std::string, std::string> ServersDocuments() {
    std::map<std::string, std::string> all;
    for (int i = 0; i < kDocuments; ++i) {
      if (i % 10 != 0) all[std::to_string(i)] = Body(i % 10 == 1 ? -i : i);
    }
    return all;
  }

  static void ReadRest(Reader& reader, std::multimap<std::string, std::string>& into,
                       std::vector<std::string>* positions = nullptr) {
    while (true) {
      const auto document = reader.Next();
      ASSERT_TRUE(document) << document.error().ToString();
      if (!*document) return;
      into.emplace((*document)->id, (*document)->body);
      if (positions != nullptr) positions->emplace_back((*document)->position);
    }
  }

  static std::multimap<std::string, std::string> ReadAll(const std::string& url,
                                                         const std::string& index) {
    std::multimap<std::string, std::string> found;
    const auto source = OpenSource(url, RealEnv()).value();
    const std::vector<Partition> partitions = source->Partitions(index).value();
    for (const Partition& partition : partitions) {
      ReadRest(*source->Read(partition, "", {}).value(), found);
    }
    return found;
  }

  std::unique_ptr<Source> source_;
  std::vector<Partition> partitions_;
};

TEST_F(SnapshotSource, HasEveryDocumentOfTheIndex) {
  ASSERT_EQ(partitions_.size(), 2U);
  std::multimap<std::string, std::string> found;
  for (const Partition& partition : partitions_) {
    ReadRest(*source_->Read(partition, "", {}).value(), found);
  }
  const auto expected = ServersDocuments();
  EXPECT_TRUE(std::equal(found.begin(), found.end(), expected.begin(), expected.end()));
}

TEST_F(SnapshotSource, ReadingContinuesFromEveryPosition) {
  std::multimap<std::string, std::string> all;
  std::vector<std::string> positions;
  ReadRest(*source_->Read(partitions_[0], "", {}).value(), all, &positions);
  for (size_t i = 0; i < positions.size(); i += 97) {
    std::multimap<std::string, std::string> rest;
    ReadRest(*source_->Read(partitions_[0], positions[i], {}).value(), rest);
    ASSERT_EQ(rest.size(), all.size() - i - 1) << "from " << positions[i];
  }
  EXPECT_EQ(source_->FractionBefore(partitions_[0], partitions_[0].end), 1.0);
}

TEST_F(SnapshotSource, ShardSplitAnywhereIsReadCompletelyAndOnce) {
  std::multimap<std::string, std::string> all;
  ReadRest(*source_->Read(partitions_[0], "", {}).value(), all);
  for (const size_t before : {size_t{0}, size_t{1}, size_t{500}, size_t{1'500}}) {
    std::multimap<std::string, std::string> found;
    const auto reader = source_->Read(partitions_[0], "", {}).value();
    for (size_t i = 0; i < before; ++i) {
      const auto document = *reader->Next().value();
      found.emplace(document.id, document.body);
    }
    const auto middle = reader->Split().value();
    ASSERT_TRUE(middle);
    ReadRest(*reader, found);
    ASSERT_LT(found.size(), all.size());
    ReadRest(*source_->Read(partitions_[0], *middle, {}).value(), found);
    EXPECT_EQ(found, all);
  }
}

TEST_F(SnapshotSource, ReportsTheShapeOfTheIndex) {
  const Collection books = source_->Collections().value().at(0);
  const Json metadata = ParseJson(books.metadata, "metadata").value();
  EXPECT_EQ(metadata["mappings"]["properties"]["chapters"]["type"], "nested");
  EXPECT_TRUE(metadata["aliases"].contains(UniqueName("library")));
  const auto global = source_->GlobalMetadata();
  EXPECT_TRUE(global) << global.error().ToString();
}

TEST_F(SnapshotSource, RunIsNotContinuedWithAnotherSnapshot) {
  Partition partition = partitions_[0];
  partition.part = "another";
  const auto reader = source_->Read(partition, "", {});
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.error().code, Code::kConflict);
}

Result<Counts> Migrate(const std::string& from, const std::string& to,
                       const std::string& transforms = "") {
  const auto source = OpenSource(from, RealEnv()).value();
  const auto sink = OpenSink(to, RealEnv()).value();
  return testing::Migrate(*source, *sink, transforms);
}

// Repeated deletes, arriving after the writes that replaced them, remove nothing: the second delta
// is such a repeat.
TEST_F(SnapshotSource, RepeatedDeltaYieldsTheLaterSnapshot) {
  OpenSearchServer& server = OpenSearchServer::Shared();
  const std::string papers = UniqueName("papers");
  const std::string copied = UniqueName("copied");
  // Excludes other tests' templates, which a migration would create again.
  const auto take = [&](const std::string& name) {
    server.Call("PUT", "/_snapshot/" + papers + "/" + name + "?wait_for_completion=true",
                R"({"indices":")" + papers + R"(","include_global_state":false})");
  };
  const auto start_of = [&](const std::string& name) {
    const std::string answer = server.Call("GET", "/_snapshot/" + papers + "/" + name);
    return ParseJson(answer, name).value()["snapshots"][0]["start_time_in_millis"];
  };
  // The clock of the server ticks five times a second.
  const auto take_later_than = [&](const std::string& earlier, const std::string& name) {
    take(name);
    while (start_of(name) == start_of(earlier)) {
      server.Call("DELETE", "/_snapshot/" + papers + "/" + name);
      take(name);
    }
  };
  const auto write = [&](int from, int to, int step, int turn) {
    std::string bulk;
    for (int i = from; i < to; i += step) {
      const std::string id = "{\"_id\":\"" + std::to_string(i) + "\"}";
      bulk += turn == 0 ? "{\"delete\":" + id + "}\n"
                        : "{\"index\":" + id + "}\n{\"turn\":" + std::to_string(turn) + "}\n";
    }
    server.Call("POST", "/" + papers + "/_bulk?refresh=true", bulk);
  };
  server.Call("PUT", "/" + papers, R"({"settings":{"number_of_shards":2,"number_of_replicas":0}})");
  server.Call("PUT", "/_snapshot/" + papers,
              R"({"type":"fs","settings":{"location":")" + server.RepositoryFolder() + "/" +
                  papers + "\"}}");
  write(0, 300, 1, 1);
  take("first");
  write(0, 300, 5, 2);
  write(0, 300, 7, 0);
  write(300, 320, 1, 2);
  take_later_than("first", "second");
  const std::string repository = "snapshot+file://" + server.RepositoryFolder() + "/" + papers;
  const std::string cluster = "opensearch+http://127.0.0.1:" + std::to_string(server.port());
  const auto begun = Migrate(repository + "?snapshot=first#" + papers, cluster + "/" + copied);
  ASSERT_TRUE(begun) << begun.error().ToString();
  for (int turn = 0; turn < 2; ++turn) {
    const auto done =
        Migrate(repository + "?snapshot=second&since=first#" + papers, cluster + "/" + copied);
    ASSERT_TRUE(done) << done.error().ToString();
    EXPECT_EQ(done->failed, 0);
    server.Call("POST", "/" + copied + "/_refresh");
    const auto wanted = ReadAll(cluster + "/" + papers, papers);
    EXPECT_EQ(wanted, ReadAll(cluster + "/" + copied, copied));
    EXPECT_FALSE(wanted.empty());
  }

  // What a script made of the old version of a document goes with it.
  const std::string parts = UniqueName("parts");
  const std::string script =
      "- javascript: \"(doc, {id}) => (doc.turn === 1 ? ['a', 'b'] : ['c']).map((part) =>"
      " ({id: id + part, source: {part}}))\"";
  ASSERT_TRUE(Migrate(repository + "?snapshot=first#" + papers, cluster + "/" + parts, script));
  for (int turn = 0; turn < 2; ++turn) {
    const auto done = Migrate(repository + "?snapshot=second&since=first#" + papers,
                              cluster + "/" + parts, script);
    ASSERT_TRUE(done) << done.error().ToString();
    EXPECT_EQ(done->failed, 0);
    server.Call("POST", "/" + parts + "/_refresh");
    std::multimap<std::string, std::string> wanted;
    for (const auto& [id, body] : ReadAll(cluster + "/" + papers, papers)) {
      const bool is_old = body.find("1") != std::string::npos;
      for (const char* part : is_old ? std::vector{"a", "b"} : std::vector{"c"}) {
        wanted.emplace(id + part, R"({"part":")" + std::string(part) + "\"}");
      }
    }
    EXPECT_EQ(wanted, ReadAll(cluster + "/" + parts, parts));
  }
}

// Deletes would have lower versions than the writes of the earlier one.
TEST_F(SnapshotSource, SnapshotsOfTheSameTimeHaveNoDelta) {
  OpenSearchServer& server = OpenSearchServer::Shared();
  const std::string twins = UniqueName("twins");
  server.Call("PUT", "/" + twins, R"({"settings":{"number_of_shards":1,"number_of_replicas":0}})");
  server.Call("PUT", "/_snapshot/" + twins,
              R"({"type":"fs","settings":{"location":")" + server.RepositoryFolder() + "/" + twins +
                  "\"}}");
  const auto take = [&](const std::string& name) {
    const std::string path = "/_snapshot/" + twins + "/" + name;
    const std::string answer =
        server.Call("PUT", path + "?wait_for_completion=true", R"({"indices":")" + twins + "\"}");
    return ParseJson(answer, name).value()["snapshot"]["start_time_in_millis"];
  };
  while (take("one") != take("other")) {
    server.Call("DELETE", "/_snapshot/" + twins + "/one");
    server.Call("DELETE", "/_snapshot/" + twins + "/other");
  }
  const auto source = OpenSource("snapshot+file://" + server.RepositoryFolder() + "/" + twins +
                                     "?snapshot=other&since=one#" + twins,
                                 RealEnv());
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().code, Code::kIncompatible);
  EXPECT_NE(source.error().message.find("at the same time"), std::string::npos);
}

// The root lists snapshots in arbitrary order.
TEST_F(SnapshotSource, NewestSnapshotIsTheDefault) {
  OpenSearchServer& server = OpenSearchServer::Shared();
  const std::string notes = UniqueName("notes");
  server.Call("PUT", "/" + notes, R"({"settings":{"number_of_shards":1,"number_of_replicas":0}})");
  server.Call("PUT", "/_snapshot/" + notes,
              R"({"type":"fs","settings":{"location":")" + server.RepositoryFolder() + "/" + notes +
                  "\"}}");
  int64_t newest = 0;
  for (size_t taken = 1, compared = 0; compared < 8; ++taken) {
    server.Call("POST", "/" + notes + "/_bulk", "{\"index\":{}}\n{}\n");
    const std::string name = "/_snapshot/" + notes + "/" + std::to_string(taken);
    // Without a body it would snapshot all indices, including other tests'.
    const std::string answer =
        server.Call("PUT", name + "?wait_for_completion=true", R"({"indices":")" + notes + "\"}");
    const Json snapshot = ParseJson(answer, "answer").value()["snapshot"];
    const auto start = snapshot["start_time_in_millis"].get<int64_t>();
    if (start == newest) continue;  // within one tick of the server's clock, all are equally new
    newest = start;
    ++compared;
    const std::string repository = "snapshot+file://" + server.RepositoryFolder() + "/" + notes;
    EXPECT_EQ(ReadAll(repository + "#" + notes, notes).size(), taken);
  }
}

TEST_F(SnapshotSource, MissingPartsAreNamed) {
  const std::string repository =
      "snapshot+file://" + OpenSearchServer::Shared().RepositoryFolder() + "/books";
  const auto no_snapshot = OpenSource(repository + "?snapshot=second", RealEnv());
  ASSERT_FALSE(no_snapshot);
  EXPECT_NE(no_snapshot.error().message.find("'second'"), std::string::npos);
  const auto no_index = OpenSource(repository + "#papers", RealEnv()).value()->Collections();
  ASSERT_FALSE(no_index);
  EXPECT_NE(no_index.error().message.find("papers"), std::string::npos);
  EXPECT_FALSE(OpenSource(repository + "?snap=first", RealEnv()));
}

}  // namespace
}  // namespace muster::pipeline
