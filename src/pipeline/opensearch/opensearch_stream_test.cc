// Data streams as sources and targets, on a real server.

#include "pipeline/opensearch/opensearch_stream.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "core/json.h"
#include "muster/migrate.h"
#include "pipeline/opensearch/opensearch_sink.h"
#include "pipeline/opensearch/opensearch_source.h"
#include "support/migrate.h"
#include "support/opensearch_server.h"
#include "support/shared_server.h"

namespace muster::pipeline {
namespace {

using testing::OpenSearchServer;

class DataStreamPipeline : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = OpenSearchServer::Unavailable(); !why.empty()) GTEST_SKIP() << why;
    server_ = &OpenSearchServer::Shared();
    name_ = testing::UniqueName("logs-" + RealEnv().NewId().substr(0, 8));
    server_->Call("PUT", "/_component_template/" + name_ + "-part",
                  R"({"template":{"mappings":{"properties":{"level":{"type":"keyword"}}}}})");
    server_->Call("PUT", "/_index_template/" + name_,
                  R"({"index_patterns":[")" + name_ +
                      R"(","other*"],"priority":500,"composed_of":[")" + name_ +
                      R"(-part"],"data_stream":{},"template":{"settings":{)" +
                      R"("number_of_replicas":0,"number_of_shards":2}}})");
    server_->Call("PUT", "/_data_stream/" + name_);
  }

  void TearDown() override {
    if (server_ == nullptr) return;
    for (const std::string& target :
         {"/_data_stream/" + name_ + "*", "/_index_template/" + name_ + "*",
          "/_component_template/" + name_ + "*"}) {
      try {
        server_->Call("DELETE", target);
      } catch (const std::runtime_error&) {
        // There is none.
      }
    }
  }

  Url UrlOf(const std::string& rest) const {
    return ParseUrl("opensearch+http://127.0.0.1:" + std::to_string(server_->port()) + rest)
        .value();
  }
  std::unique_ptr<Source> OpenSource(const std::string& name) const {
    return OpenOpenSearchSource(UrlOf("/" + name), RealEnv()).value();
  }
  std::unique_ptr<Sink> OpenSink() const {
    return OpenOpenSearchSink(UrlOf(""), RealEnv()).value();
  }

  static std::string Body(int i, const std::string& level = "info") {
    return R"({"@timestamp":"2026-01-01T00:00:)" + std::string(i % 60 < 10 ? "0" : "") +
           std::to_string(i % 60) + R"(.123456789Z","n":)" + std::to_string(i) + R"(.0,"level":")" +
           level + "\"}";
  }

  void Add(int begin, int end) const {
    std::string lines;
    for (int i = begin; i < end; ++i) {
      lines += R"({"create":{"_id":")" + std::to_string(i) + "\"}}\n" + Body(i) + "\n";
    }
    const std::string answer =
        server_->Call("POST", "/" + name_ + "/_bulk?refresh&filter_path=errors", lines);
    ASSERT_EQ(answer, R"({"errors":false})");
  }

  Batch Documents(int begin, int end, const std::string& level = "info") const {
    Batch batch;
    for (int i = begin; i < end; ++i) {
      batch.Add({.id = std::to_string(i),
                 .routing = {},
                 .body = Body(i, level),
                 .position = "1",
                 .defect = {}});
    }
    return batch;
  }

  std::vector<Refused> Write(const Batch& batch) const {
    const auto sink = OpenSink();
    const Fence fence{.run = "r", .incarnation = "i", .item = "x", .since_ms = 1'000};
    const auto refused = sink->Open(name_, fence).value()->Write(batch, {}, {});
    EXPECT_TRUE(refused) << refused.error().ToString();
    return refused ? *refused : std::vector<Refused>();
  }

  void Rollover() const { server_->Call("POST", "/" + name_ + "/_rollover"); }

  // Of the stream, or one of its indices, by its place.
  int Count(int place = -1) const {
    std::string index = name_;
    if (place >= 0) {
      const Json stream =
          ParseJson(server_->Call("GET", "/_data_stream/" + name_), "streams").value();
      index = stream["data_streams"][0]["indices"][static_cast<size_t>(place)]["index_name"];
    }
    server_->Call("POST", "/" + index + "/_refresh");
    return ParseJson(server_->Call("GET", "/" + index + "/_count"), "count").value()["count"];
  }

  OpenSearchServer* server_ = nullptr;
  std::string name_;
};

TEST_F(DataStreamPipeline, IsMigratedAsOneAndEqualAndOnlyOnce) {
  Add(0, 40);
  Rollover();
  Add(40, 75);
  const auto source = OpenSource(name_);
  const auto collections = source->Collections().value();
  ASSERT_EQ(collections.size(), 1U);
  ASSERT_FALSE(collections[0].refusal) << collections[0].refusal->ToString();
  // Under another name no template is for it: it gets one.
  const std::string copy = name_ + "-copy";
  const std::string rename = "- rename_index: {" + name_ + ": " + copy + "}";
  const auto sink = OpenSink();
  for (int run = 1; run <= 2; ++run) {
    const auto counts = testing::Migrate(*source, *sink, rename);
    ASSERT_TRUE(counts) << counts.error().ToString();
    EXPECT_EQ(counts->read, 75);
    EXPECT_EQ(counts->written, 75);
    const auto made = OpenSource(copy);
    ASSERT_EQ(made->Collections().value().at(0).name, copy);
    VerifyObserver nothing;
    const auto report =
        VerifyCollection({*source, name_}, {*made, copy}, {.checksums = true}, nothing, {});
    ASSERT_TRUE(report) << report.error().ToString();
    EXPECT_TRUE(report->Equal()) << report->differences;
    EXPECT_EQ(report->TargetDocuments(), 75);
  }
  const std::string stream = server_->Call("GET", "/_data_stream/" + copy);
  EXPECT_NE(stream.find(R"("name":")" + copy), std::string::npos) << stream;
  const std::string mapping = server_->Call("GET", "/" + copy + "/_mapping");
  EXPECT_NE(mapping.find(R"("level":{"type":"keyword"})"), std::string::npos) << mapping;
}

TEST_F(DataStreamPipeline, PartitionsAreThoseOfItsIndices) {
  Add(0, 10);
  Rollover();
  Add(10, 20);
  const auto source = OpenSource(name_);
  const auto partitions = source->Partitions(name_).value();
  std::map<std::pair<int, std::string>, int> items;
  int read = 0;
  for (const Partition& partition : partitions) {
    EXPECT_EQ(partition.collection, name_);
    EXPECT_EQ((++items[{partition.shard, partition.begin}]), 1) << partition.shard;
    const auto reader = source->Read(partition, "", {}).value();
    while (reader->Next().value()) ++read;
  }
  EXPECT_EQ(read, 20);
  EXPECT_EQ(source->CountAgain(partitions).value(), 20);
  Rollover();
  EXPECT_EQ(source->CountAgain(partitions).value(), std::nullopt) << "its documents were not read";
}

// As retention does. What was read of it is not lost.
TEST_F(DataStreamPipeline, AnIndexThatIsDeletedAfterItWasReadIsNotCountedAgain) {
  Add(0, 10);
  Rollover();
  Add(10, 20);
  const auto source = OpenSource(name_);
  const auto partitions = source->Partitions(name_).value();
  const Partition& oldest = partitions.front();
  server_->Call("DELETE", "/" + oldest.part);
  const auto counted = source->CountAgain(partitions);
  ASSERT_TRUE(counted) << counted.error().ToString();
  EXPECT_EQ(*counted, std::nullopt);
  // Another stream of the same name.
  Partition other = partitions.back();
  other.mark = "other";
  const auto recreated = source->CountAgain({oldest, other});
  ASSERT_FALSE(recreated);
  EXPECT_EQ(recreated.error().code, Code::kCorrupt) << recreated.error().ToString();
  // Before it was read, its documents are missing.
  const auto reader = source->Read(oldest, "", {});
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.error().code, Code::kNotFound);
  EXPECT_NE(reader.error().message.find("index " + oldest.part + " of data stream " + name_ +
                                        " was deleted before"),
            std::string::npos)
      << reader.error().message;
}

TEST_F(DataStreamPipeline, WhatIsWrittenAgainAfterARolloverIsThereOnce) {
  EXPECT_TRUE(Write(Documents(0, 30)).empty());
  EXPECT_EQ(Count(), 30);
  EXPECT_TRUE(Write(Documents(10, 30)).empty());
  EXPECT_EQ(Count(), 30);
  Rollover();
  EXPECT_TRUE(Write(Documents(20, 50)).empty());
  EXPECT_EQ(Count(0), 30);
  EXPECT_EQ(Count(1), 20);
  Rollover();
  EXPECT_TRUE(Write(Documents(0, 50)).empty());
  EXPECT_EQ(Count(), 50);
}

TEST_F(DataStreamPipeline, ADocumentThatDiffersIsRefusedAndNothingIsReplaced) {
  EXPECT_TRUE(Write(Documents(0, 3)).empty());
  for (const bool in_older : {false, true}) {
    if (in_older) Rollover();
    const auto refused = Write(Documents(1, 5, in_older ? "late" : "info"));
    if (!in_older) {
      EXPECT_TRUE(refused.empty());
      continue;
    }
    ASSERT_EQ(refused.size(), 4U);
    EXPECT_EQ(refused[0].index, 0U);
    EXPECT_NE(refused[0].reason.find("another document with this id"), std::string::npos);
  }
  EXPECT_EQ(Count(1), 0);
  EXPECT_EQ(Count(), 5);
  const auto refused = Write(Documents(4, 6, "late"));
  ASSERT_EQ(refused.size(), 1U) << "the other one is new";
  EXPECT_EQ(Count(1), 1);
}

// A process died between creating documents after a rollover and looking for older ones.
TEST_F(DataStreamPipeline, ALaterCopyOfACrashIsDeleted) {
  EXPECT_TRUE(Write(Documents(0, 10)).empty());
  Rollover();
  Add(5, 12);
  EXPECT_EQ(Count(), 17);
  EXPECT_TRUE(Write(Documents(0, 12)).empty());
  EXPECT_EQ(Count(0), 10);
  EXPECT_EQ(Count(1), 2);
}

TEST_F(DataStreamPipeline, IsNotWrittenToAnIndexNorFromADelta) {
  const auto sink = OpenSink();
  const std::string index = name_ + "-plain";
  server_->Call("PUT", "/" + index, R"({"settings":{"number_of_replicas":0}})");
  const auto collection = OpenSource(name_)->Collections().value().at(0);
  const auto prepared = sink->Prepare({index, collection.metadata}, true);
  ASSERT_FALSE(prepared);
  EXPECT_NE(prepared.error().message.find("which is an index"), std::string::npos);
  server_->Call("DELETE", "/" + index);

  Batch batch;
  batch.Add(
      {.id = "1", .routing = {}, .body = "{}", .position = "1", .defect = {}, .deleted = true});
  const std::string body = Body(2);
  batch.Add({.id = "2", .routing = {}, .body = body, .position = "1", .defect = {}});
  const Fence fence{.run = "r", .incarnation = "i", .item = "x"};
  const auto written = sink->Open(name_, fence).value()->Write(batch, {}, {});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::kIncompatible) << written.error().ToString();
}

}  // namespace
}  // namespace muster::pipeline
