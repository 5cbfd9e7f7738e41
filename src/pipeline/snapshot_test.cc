// A snapshot as a source: of a real server, whose own answers are the measure.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/json.h"
#include "muster/migrate.h"
#include "support/opensearch_server.h"

namespace muster {
namespace {

using testing::OpenSearchServer;

class SnapshotSource : public ::testing::Test {
 protected:
  static constexpr int kDocuments = 7'000;

  // One snapshot for all tests: two shards, some documents changed, some deleted.
  static void SetUpTestSuite() {
    if (!OpenSearchServer::Unavailable().empty()) return;
    OpenSearchServer& server = OpenSearchServer::Shared();
    server.Call(
        "PUT", "/books",
        R"({"settings":{"number_of_shards":2,"number_of_replicas":0},"aliases":{"library":{}},
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
        "PUT", "/_snapshot/repo",
        R"({"type":"fs","settings":{"location":")" + server.RepositoryFolder() + "/books\"}}");
    server.Call("PUT", "/_snapshot/repo/first?wait_for_completion=true",
                R"({"indices":"books","include_global_state":true})");
  }

  void SetUp() override {
    if (const std::string why = OpenSearchServer::Unavailable(); !why.empty()) GTEST_SKIP() << why;
    auto source = OpenSource(
        "snapshot+file://" + OpenSearchServer::Shared().RepositoryFolder() + "/books#books",
        RealEnv());
    ASSERT_TRUE(source) << source.error().ToString();
    source_ = *std::move(source);
    partitions_ = source_->Partitions("books").value();
  }

  static void Bulk(OpenSearchServer& server, std::string& bulk) {
    server.Call("POST", "/books/_bulk", bulk);
    bulk.clear();
  }

  static std::string Body(int i) {
    return R"({"n":)" + std::to_string(i) + R"(.0,"chapters":[{"title":"a"},{"title":"b"}]})";
  }

  // What the index held when the snapshot was taken.
  static std::map<std::string, std::string> Oracle() {
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

  std::unique_ptr<Source> source_;
  std::vector<Partition> partitions_;
};

TEST_F(SnapshotSource, HoldsEveryDocumentAsTheIndexHadIt) {
  ASSERT_EQ(partitions_.size(), 2U);
  std::multimap<std::string, std::string> found;
  for (const Partition& partition : partitions_) {
    ReadRest(*source_->Read(partition, "", {}).value(), found);
  }
  const auto oracle = Oracle();
  EXPECT_TRUE(std::equal(found.begin(), found.end(), oracle.begin(), oracle.end()));
}

TEST_F(SnapshotSource, ReadingGoesOnFromEveryPosition) {
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

TEST_F(SnapshotSource, AShardSplitAnywhereIsReadWholeAndOnce) {
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

TEST_F(SnapshotSource, TellsTheIndexsShape) {
  const Collection books = source_->Collections().value().at(0);
  const Json metadata = ParseJson(books.metadata, "metadata").value();
  EXPECT_EQ(metadata["mappings"]["properties"]["chapters"]["type"], "nested");
  EXPECT_TRUE(metadata["aliases"].contains("library"));
  EXPECT_TRUE(source_->GlobalMetadata());
}

TEST_F(SnapshotSource, AnotherSnapshotIsNotTakenForTheOneThatWorkWasBegunWith) {
  Partition partition = partitions_[0];
  partition.part = "another";
  const auto reader = source_->Read(partition, "", {});
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.error().code, Code::kConflict);
}

TEST_F(SnapshotSource, WhatIsNotThereIsToldByName) {
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
}  // namespace muster
