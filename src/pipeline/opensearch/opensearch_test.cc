// OpenSearch as source and sink, on a real server.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/json.h"
#include "muster/migrate.h"
#include "net/opensearch.h"
#include "pipeline/flow/memory_source.h"
#include "pipeline/flow/shards.h"
#include "pipeline/opensearch/opensearch_sink.h"
#include "pipeline/opensearch/opensearch_source.h"
#include "support/migrate.h"
#include "support/opensearch_server.h"
#include "support/shared_server.h"
#include "support/temporary_folder.h"

namespace muster::pipeline {
namespace {

using testing::OpenSearchServer;

class OpenSearchPipeline : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = OpenSearchServer::Unavailable(); !why.empty()) GTEST_SKIP() << why;
    server_ = &OpenSearchServer::Shared();
    std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::transform(name.begin(), name.end(), name.begin(), ::tolower);
    index_ = testing::UniqueName(name);
  }

  std::unique_ptr<Source> OpenSource(const std::string& rest) {
    auto source = OpenOpenSearchSource(UrlOf(rest), RealEnv());
    EXPECT_TRUE(source) << source.error().ToString();
    return *std::move(source);
  }

  std::unique_ptr<Sink> OpenSink(const std::string& rest) {
    auto sink = OpenOpenSearchSink(UrlOf(rest), RealEnv());
    EXPECT_TRUE(sink) << sink.error().ToString();
    return *std::move(sink);
  }

  Url UrlOf(const std::string& rest) {
    return ParseUrl("opensearch+http://127.0.0.1:" + std::to_string(server_->port()) + rest)
        .value();
  }

  // Writes documents 0 to count - 1 to an index of `shards` shards.
  void Fill(const std::string& index, int shards, int count) {
    server_->Call(
        "PUT", "/" + index,
        R"({"mappings":{"dynamic":false},"settings":{"number_of_replicas":0,"number_of_shards":)" +
            std::to_string(shards) + "}}");
    const auto sink = OpenSink("");
    const auto writer = sink->Open(index, {.run = "r", .incarnation = "i", .item = "x"}).value();
    Batch batch;
    for (int i = 0; i < count; ++i) {
      batch.Add(
          {.id = std::to_string(i), .routing = {}, .body = Body(i), .position = "", .defect = {}});
    }
    const auto refused = writer->Write(batch, {}, {});
    ASSERT_TRUE(refused) << refused.error().ToString();
    ASSERT_TRUE(refused->empty()) << (*refused)[0].reason;
  }

  // Numbers that a parse tree would change.
  static std::string Body(int i) {
    return R"({"n":)" + std::to_string(i) + R"(.0,"big":123456789012345678901234567890,"t":"ü"})";
  }

  struct Found {
    std::map<std::string, std::string> bodies;
    std::vector<std::string> positions;
    int read = 0;
  };

  static Found ReadAll(Source& source, const Partition& partition, const std::string& position) {
    Found found;
    const auto reader = source.Read(partition, position, {}).value();
    while (true) {
      const auto document = reader->Next();
      EXPECT_TRUE(document) << document.error().ToString();
      if (!document || !*document) return found;
      ++found.read;
      found.bodies[std::string((*document)->id)] = (*document)->body;
      found.positions.emplace_back((*document)->position);
    }
  }

  OpenSearchServer* server_ = nullptr;
  std::string index_;
};

// Items are named by collection, shard and first position.
TEST_F(OpenSearchPipeline, ShardsThatWereNeverWrittenToHaveOneItemEach) {
  Fill(index_, 5, 1);
  const auto source = OpenSource("/" + index_);
  const auto partitions = source->Partitions(index_).value();
  EXPECT_EQ(partitions.size(), 6U);
  std::set<std::pair<int, std::string>> items;
  int read = 0;
  for (const Partition& partition : partitions) {
    EXPECT_TRUE(items.emplace(partition.shard, partition.begin).second) << partition.shard;
    read += ReadAll(*source, partition, "").read;
  }
  EXPECT_EQ(read, 1);
  EXPECT_EQ(source->CountAgain(partitions).value(), 1);
}

TEST_F(OpenSearchPipeline, WrittenDocumentsAreReadByteForByte) {
  Fill(index_, 3, 2'500);
  const auto source = OpenSource("/" + index_ + "?page_bytes=20000");
  const auto collections = source->Collections().value();
  ASSERT_EQ(collections.size(), 1U);
  EXPECT_EQ(collections[0].name, index_);
  const auto partitions = source->Partitions(index_).value();
  ASSERT_EQ(partitions.size(), 6U);
  std::map<std::string, std::string> all;
  int read = 0;
  for (const Partition& partition : partitions) {
    const Found found = ReadAll(*source, partition, "");
    EXPECT_EQ(found.read, partition.documents);
    read += found.read;
    all.insert(found.bodies.begin(), found.bodies.end());
  }
  EXPECT_EQ(read, 2'500);
  ASSERT_EQ(all.size(), 2'500U);
  for (int i = 0; i < 2'500; ++i) ASSERT_EQ(all[std::to_string(i)], Body(i));
}

TEST_F(OpenSearchPipeline, DocumentsChangedDuringTheReadAreRead) {
  Fill(index_, 1, 3'000);
  const auto source = OpenSource("/" + index_ + "?page_bytes=20000");
  const auto partitions = source->Partitions(index_).value();
  ASSERT_EQ(partitions.size(), 2U);
  ASSERT_TRUE(partitions[1].follows);
  std::map<std::string, std::string> found;
  const auto read = [&](Reader& reader, int every, const std::string& change) {
    for (int n = 0;; ++n) {
      const auto document = reader.Next();
      ASSERT_TRUE(document) << document.error().ToString();
      if (!*document) return;
      found[std::string((*document)->id)] = (*document)->body;
      // A document not read yet gets a number after all others.
      if (n % every == 0) {
        server_->Call("PUT", "/" + index_ + "/_doc/" + std::to_string(2'999 - n / every),
                      R"({"changed":")" + change + "\"}");
        server_->Call("POST", "/" + index_ + "/_refresh");
      }
    }
  };
  read(*source->Read(partitions[0], "", {}).value(), 40, "first");
  EXPECT_LT(found.size(), 3'000U);
  read(*source->Read(partitions[1], "", {}).value(), 10, "second");
  EXPECT_EQ(found.size(), 3'000U);
  // The expected count is no longer known.
  EXPECT_FALSE(source->CountAgain(partitions).value());
}

TEST_F(OpenSearchPipeline, RecreatedIndexIsNotTakenForTheFirst) {
  Fill(index_, 1, 3'000);
  const auto source = OpenSource("/" + index_ + "?page_bytes=20000");
  const auto partitions = source->Partitions(index_).value();
  const auto reader = source->Read(partitions.at(0), "", {}).value();
  ASSERT_TRUE(reader->Next().value());
  server_->Call("DELETE", "/" + index_);
  Fill(index_, 1, 2'000);
  Result<std::optional<Document>> document = std::nullopt;
  do {
    document = reader->Next();
  } while (document && *document);
  ASSERT_FALSE(document);
  EXPECT_EQ(document.error().code, Code::kCorrupt) << document.error().ToString();
  EXPECT_EQ(source->Read(partitions.at(1), "", {}).error().code, Code::kCorrupt);
  EXPECT_EQ(source->CountAgain(partitions).error().code, Code::kCorrupt);
}

TEST_F(OpenSearchPipeline, RowOfAChangedDocumentIsReplaced) {
  Fill(index_, 1, 100);
  const auto source = OpenSource("/" + index_);
  const testing::TemporaryFolder folder;
  const std::string url = "sqlite:" + folder.path() + "/rows.db?documents=true#t";
  const auto sink = pipeline::OpenSink(url, RealEnv()).value();
  ASSERT_TRUE(sink->Prepare(source->Collections().value().at(0), false));
  const auto copy = [&](const Partition& partition) {
    Fence fence;
    fence.item = partition.follows ? "second" : "first";
    fence.rank = partition.follows ? kFirstFollowerRank : 1;
    Batch batch;
    const auto reader = source->Read(partition, "", {}).value();
    while (const auto document = reader->Next().value()) batch.Add(*document);
    const auto refused = sink->Open(index_, fence).value()->Write(batch, {}, {});
    ASSERT_TRUE(refused) << refused.error().ToString();
    EXPECT_TRUE(refused->empty()) << refused->front().reason;
  };
  const auto partitions = source->Partitions(index_).value();
  copy(partitions.at(0));
  server_->Call("PUT", "/" + index_ + "/_doc/7", R"({"changed":true})");
  server_->Call("PUT", "/" + index_ + "/_doc/new", R"({"added":true})");
  copy(partitions.at(1));
  const auto rows = pipeline::OpenSource(url, RealEnv()).value();
  const Found found = ReadAll(*rows, rows->Partitions("t").value().at(0), "");
  EXPECT_EQ(found.read, 101);
  EXPECT_EQ(found.bodies.at("7"), R"({"changed":true})");
  EXPECT_EQ(found.bodies.at("8"), Body(8));
}

TEST_F(OpenSearchPipeline, ServersCountMatchesTheDocumentsRead) {
  server_->Call("PUT", "/" + index_, R"({"mappings":{"properties":{"n":{"type":"nested"}}}})");
  for (int i = 0; i < 5; ++i) {
    server_->Call("PUT", "/" + index_ + "/_doc/" + std::to_string(i), R"({"n":[{"a":1},{"a":2}]})");
  }
  const auto source = OpenSource("/" + index_);
  const auto partitions = source->Partitions(index_).value();
  int64_t documents = 0;
  for (const Partition& partition : partitions) documents += partition.documents.value_or(0);
  EXPECT_EQ(documents, 5) << "nested documents do not count";
  EXPECT_EQ(source->CountAgain(partitions).value(), 5);
  EXPECT_TRUE(CheckCount(*source, index_, partitions, [] { return 5; }));
  EXPECT_EQ(CheckCount(*source, index_, partitions, [] { return 0; }).error().code, Code::kCorrupt);
  server_->Call("DELETE", "/" + index_ + "/_doc/1?refresh=true");
  EXPECT_FALSE(source->CountAgain(partitions).value());
}

TEST_F(OpenSearchPipeline, MusterStoresAreNotCopied) {
  server_->Call(
      "PUT", "/" + index_,
      std::string(R"({"mappings":{"_meta":{")") + net::kOpenSearchStoreMark + R"(":1}}})");
  const auto collections = OpenSource("")->Collections().value();
  for (const Collection& one : collections) {
    EXPECT_NE(one.name, index_);
  }
}

TEST_F(OpenSearchPipeline, IndexWithoutDocumentsIsEmpty) {
  server_->Call("PUT", "/" + index_, R"({"settings":{"number_of_replicas":0}})");
  const auto source = OpenSource("/" + index_);
  const auto partitions = source->Partitions(index_);
  ASSERT_TRUE(partitions) << partitions.error().ToString();
  for (const Partition& partition : *partitions) {
    EXPECT_EQ(ReadAll(*source, partition, "").read, 0);
  }
}

TEST_F(OpenSearchPipeline, ReadingContinuesFromEveryPosition) {
  Fill(index_, 1, 300);
  const auto source = OpenSource("/" + index_ + "?page_bytes=2000");
  const Partition partition = source->Partitions(index_).value().at(0);
  const Found whole = ReadAll(*source, partition, "");
  ASSERT_EQ(whole.read, 300);
  for (size_t i = 0; i < whole.positions.size(); i += 13) {
    const Found rest = ReadAll(*source, partition, whole.positions[i]);
    EXPECT_EQ(rest.read, static_cast<int>(whole.read - i - 1));
  }
}

TEST_F(OpenSearchPipeline, SplitShardIsReadCompletelyAndOnce) {
  Fill(index_, 1, 6'000);
  const auto source = OpenSource("/" + index_);
  Partition partition = source->Partitions(index_).value().at(0);
  const auto reader = source->Read(partition, "", {}).value();
  std::multiset<std::string> ids;
  for (int i = 0; i < 10; ++i) ids.emplace((*reader->Next().value()).id);
  const auto middle = reader->Split();
  ASSERT_TRUE(middle && *middle);
  while (true) {
    const auto document = reader->Next().value();
    if (!document) break;
    ids.emplace(document->id);
  }
  const size_t first = ids.size();
  EXPECT_GT(first, 1'000U);
  EXPECT_LT(first, 5'000U);
  for (const auto& [id, body] : ReadAll(*source, partition, **middle).bodies) ids.emplace(id);
  EXPECT_EQ(ids.size(), 6'000U);
  EXPECT_EQ(std::set(ids.begin(), ids.end()).size(), 6'000U);
}

TEST_F(OpenSearchPipeline, DeletedAndChangedDocumentsAreReadInTheirCurrentState) {
  Fill(index_, 1, 1'000);
  std::string bulk;
  for (int i = 100; i < 900; ++i) bulk += R"({"delete":{"_id":")" + std::to_string(i) + "\"}}\n";
  bulk += R"({"index":{"_id":"7","routing":"elsewhere"}})"
          "\n{\"changed\":true}\n";
  server_->Call("POST", "/" + index_ + "/_bulk", bulk);
  const auto source = OpenSource("/" + index_);
  const Found found = ReadAll(*source, source->Partitions(index_).value().at(0), "");
  EXPECT_EQ(found.read, 200);
  EXPECT_EQ(found.bodies.at("7"), R"({"changed":true})");
}

// The pipeline does not exist, so whatever goes through it is refused.
TEST_F(OpenSearchPipeline, DocumentsGoThroughAnIngestPipelineOnlyIfTheSinkNamesIt) {
  server_->Call("PUT", "/" + index_, R"({"settings": {"default_pipeline": "missing"}})");
  const auto write = [&](const std::string& parameters) -> size_t {
    const auto sink = OpenSink("/" + index_ + parameters);
    Document document;
    document.id = "1";
    document.body = "{}";
    Batch batch;
    batch.Add(document);
    const auto writer = sink->Open(index_, Fence()).value();
    const auto refused = writer->Write(batch, {}, {});
    EXPECT_TRUE(refused) << refused.error().ToString();
    return refused ? refused->size() : 0;
  };
  EXPECT_EQ(write(""), 0U);
  EXPECT_EQ(write("?pipeline=default"), 1U);
  EXPECT_EQ(write("?pipeline=another"), 1U);
}

TEST_F(OpenSearchPipeline, MergedCollectionsWithTheSameIdsAreNoticed) {
  const auto migrate = [&](int first_of_b) -> Result<Counts> {
    MemorySource source{30};
    for (int i = 0; i < 50; ++i) {
      source.Add("a", {.id = std::to_string(i), .body = "{}"});
      source.Add("b", {.id = std::to_string(first_of_b + i), .body = "{}"});
    }
    const auto sink = OpenSink("/" + index_ + "-" + std::to_string(first_of_b));
    const auto plan = ParseTransforms("", "").value();
    testing::NoDeadLetters letters;
    Throttle throttle(RealEnv());
    Pipeline pipeline{RealEnv(), source, *plan, *sink, letters, throttle, {.merge = true}};
    work::MigrationObserver nothing;
    return work::MigrateAll(pipeline, {}, nothing, {});
  };
  const auto apart = migrate(50);
  EXPECT_TRUE(apart) << apart.error().ToString();
  const auto mixed = migrate(40);
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().code, Code::kCorrupt);
  EXPECT_NE(mixed.error().message.find("has 90 documents, but 100 were written"), std::string::npos)
      << mixed.error().message;
}

TEST_F(OpenSearchPipeline, AnAliasAndItsIndexAreOneTarget) {
  server_->Call("PUT", "/" + index_, R"({"aliases":{")" + index_ + R"(-alias":{}}})");
  MemorySource source{30};
  source.Add(index_, {.id = "1", .body = "{}"});
  source.Add(index_ + "-alias", {.id = "1", .body = "{}"});
  const auto sink = OpenSink("");
  const auto plan = ParseTransforms("", "").value();
  testing::NoDeadLetters letters;
  Throttle throttle(RealEnv());
  Pipeline pipeline{RealEnv(), source, *plan, *sink, letters, throttle};
  work::MigrationObserver nothing;
  const auto refused = work::MigrateAll(pipeline, {}, nothing, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kConflict);
  EXPECT_NE(refused.error().message.find("another name of the same table or index"),
            std::string::npos)
      << refused.error().message;
}

TEST_F(OpenSearchPipeline, MappingsSettingsAliasesAndTemplatesAreCarriedOver) {
  const std::string alias = index_ + "-alias";
  server_->Call("PUT", "/" + index_, R"({
    "settings": {"number_of_shards": 2, "number_of_replicas": 0,
                 "analysis": {"analyzer": {"mine": {"type": "custom", "tokenizer": "standard"}}}},
    "mappings": {"properties": {"name": {"type": "text", "analyzer": "mine"}}},
    "aliases": {")" + alias + R"(": {}}})");
  const std::string templ = index_ + "-template";
  server_->Call("PUT", "/_index_template/" + templ,
                R"({"index_patterns": [")" + index_ + R"(-never-*"], "template": {}})");
  const auto source = OpenSource("/" + index_);
  Collection collection = source->Collections().value().at(0);
  collection.name = index_ + "-copy";
  // As if it came from another cluster.
  Json metadata = ParseJson(collection.metadata, "metadata").value();
  metadata["cluster_uuid"] = "another";
  collection.metadata = ToJsonText(metadata);
  const auto sink = OpenSink("");

  const auto wish = sink->Prepare(collection, true);
  ASSERT_TRUE(wish) << wish.error().ToString();
  ASSERT_EQ(wish->size(), 1U);
  EXPECT_NE((*wish)[0].change.find("create index " + collection.name), std::string::npos);
  EXPECT_THROW(server_->Call("GET", "/" + collection.name), std::runtime_error);

  ASSERT_TRUE(sink->Prepare(collection, false));
  const Json copy = ParseJson(server_->Call("GET", "/" + collection.name), "copy").value();
  const Json& made = copy[collection.name];
  EXPECT_EQ(made["mappings"]["properties"]["name"]["analyzer"], "mine");
  EXPECT_EQ(made["settings"]["index"]["number_of_shards"], "2");
  EXPECT_TRUE(made["aliases"].contains(alias));
  EXPECT_TRUE(sink->Prepare(collection, false).value().empty())
      << "existing objects are left alone";

  // Ignores other tests' templates, which may be disappearing right now.
  const Json all = ParseJson(source->GlobalMetadata().value(), "global").value();
  ASSERT_TRUE(all["index_templates"].contains(templ)) << all;
  const std::string global =
      ToJsonText({{"index_templates", {{templ, all["index_templates"][templ]}}}});
  EXPECT_TRUE(sink->PrepareGlobal(global, true).value().empty());
  server_->Call("DELETE", "/_index_template/" + templ);
  EXPECT_EQ(sink->PrepareGlobal(global, false).value().size(), 1U);
  server_->Call("GET", "/_index_template/" + templ);
}

// With a second index, writes by the alias would fail.
TEST_F(OpenSearchPipeline, CopyOnTheSameClusterDoesNotGetTheAliases) {
  const std::string alias = index_ + "-alias";
  server_->Call("PUT", "/" + index_, R"({"aliases": {")" + alias + R"(": {}}})");
  Collection collection = OpenSource("/" + alias)->Collections().value().at(0);
  EXPECT_EQ(collection.name, index_);
  collection.name = index_ + "-copy";
  const auto made = OpenSink("")->Prepare(collection, false).value();
  ASSERT_EQ(made.size(), 1U);
  EXPECT_NE(made[0].change.find("not its aliases (" + alias + ")"), std::string::npos)
      << made[0].change;
  const Json behind = ParseJson(server_->Call("GET", "/_alias/" + alias), "alias").value();
  EXPECT_EQ(behind.size(), 1U) << behind;
  server_->Call("PUT", "/" + alias + "/_doc/1", R"({"a":1})");
}

TEST_F(OpenSearchPipeline, ClosedIndexAndDataStreamAreListedWithTheReason) {
  server_->Call("PUT", "/" + index_, "{}");
  server_->Call("POST", "/" + index_ + "/_close");
  for (const std::string& pattern : {index_, index_ + "*"}) {
    const auto collections = OpenSource("/" + pattern)->Collections().value();
    ASSERT_EQ(collections.size(), 1U) << pattern;
    EXPECT_EQ(collections[0].name, index_);
    ASSERT_TRUE(collections[0].refusal) << pattern;
    EXPECT_NE(collections[0].refusal->message.find("is closed"), std::string::npos);
  }
  const std::string stream = index_ + "-stream";
  server_->Call("PUT", "/_index_template/" + index_,
                R"({"index_patterns":[")" + stream + R"("],"data_stream":{}})");
  server_->Call("PUT", "/_data_stream/" + stream);
  const auto streams = OpenSource("/" + stream)->Collections().value();
  ASSERT_EQ(streams.size(), 1U);
  EXPECT_EQ(streams[0].name, stream);
  EXPECT_FALSE(streams[0].refusal);
  const auto backing = OpenSource("/.ds-" + stream + "-*")->Collections().value();
  ASSERT_EQ(backing.size(), 1U);
  EXPECT_FALSE(backing[0].refusal);
  server_->Call("DELETE", "/_data_stream/" + stream);
}

TEST_F(OpenSearchPipeline, ADocumentThatDoesNotFitTheMappingIsRefusedAlone) {
  server_->Call("PUT", "/" + index_, R"({"mappings":{"properties":{"n":{"type":"integer"}}}})");
  const auto sink = OpenSink("");
  const auto writer = sink->Open(index_, {.run = "r", .incarnation = "i", .item = "x"}).value();
  Batch batch;
  for (const char* body : {R"({"n":1})", R"({"n":"one"})", R"({"n":3})"}) {
    batch.Add({.id = body, .routing = {}, .body = body, .position = "", .defect = {}});
  }
  const auto refused = writer->Write(batch, {}, {});
  ASSERT_TRUE(refused) << refused.error().ToString();
  ASSERT_EQ(refused->size(), 1U);
  EXPECT_EQ((*refused)[0].index, 1U);
  EXPECT_NE((*refused)[0].reason.find("failed to parse field [n]"), std::string::npos);
}

TEST_F(OpenSearchPipeline, AnIndexIsNotItsOwnTarget) {
  Fill(index_, 1, 10);
  const std::string alias = index_ + "-alias";
  server_->Call(
      "POST", "/_aliases",
      R"({"actions":[{"add":{"index":")" + index_ + R"(","alias":")" + alias + R"("}}]})");
  for (const auto& [from, to] : {std::pair{index_, index_}, std::pair{index_, alias},
                                 std::pair{alias, index_}, std::pair{alias, std::string()}}) {
    const auto source = OpenSource("/" + from);
    Url url = UrlOf("/" + to);
    url.host = "localhost";
    const auto sink = OpenOpenSearchSink(url, RealEnv()).value();
    const auto migrated = testing::Migrate(*source, *sink);
    ASSERT_FALSE(migrated) << from << " to " << to;
    EXPECT_EQ(migrated.error().code, Code::kInvalid);
    EXPECT_NE(migrated.error().message.find("is read from"), std::string::npos);
  }
}

TEST_F(OpenSearchPipeline, TargetsThatCannotBeWrittenToAreRefused) {
  const auto refusal = [&](const std::string& name) {
    const auto prepared = OpenSink("")->Prepare({name, "{}"}, false);
    return prepared ? "" : prepared.error().ToString();
  };
  const auto expect = [](const std::string& text, const std::string& words) {
    EXPECT_NE(text.find(words), std::string::npos) << text;
  };
  const std::string small = R"({"settings":{"number_of_replicas":0}})";
  const std::string alias = index_ + "-alias";
  const std::string second = index_ + "-2";
  const auto add_to_alias = [&](const std::string& index, const std::string& more) {
    server_->Call("POST", "/_aliases",
                  R"({"actions":[{"add":{"index":")" + index + R"(","alias":")" + alias + '"' +
                      more + "}}]}");
  };
  server_->Call("PUT", "/" + index_, small);
  server_->Call("PUT", "/" + second, small);
  add_to_alias(index_, "");
  EXPECT_EQ(refusal(alias), "");
  add_to_alias(second, "");
  expect(refusal(alias), "no write index");
  add_to_alias(second, R"(,"is_write_index":true)");
  EXPECT_EQ(refusal(alias), "");
  EXPECT_EQ(OpenSource("/" + alias)->TargetOf("any").value(), second);
  EXPECT_EQ(OpenSource("")->TargetOf(alias).value(), second);
  EXPECT_FALSE(OpenSource("")->TargetOf(index_ + "-none").value());

  server_->Call("POST", "/" + second + "/_close");
  expect(refusal(second), "open it first");
  expect(refusal(alias), "open it first");
  server_->Call("POST", "/" + second + "/_open");
  EXPECT_EQ(refusal(second), "");

  const std::string stream = index_ + "-stream";
  server_->Call("PUT", "/_index_template/" + stream,
                R"({"index_patterns":[")" + stream +
                    R"("],"data_stream":{},"template":{"settings":{"number_of_replicas":0}}})");
  server_->Call("PUT", "/_data_stream/" + stream);
  EXPECT_EQ(refusal(stream), "");
  expect(refusal(OpenSource("/.ds-" + stream + "-*")->Collections().value().at(0).name),
         "is part of data stream");
  server_->Call("DELETE", "/_data_stream/" + stream);
  server_->Call("DELETE", "/_index_template/" + stream);
}

TEST_F(OpenSearchPipeline, DocumentsWaitForAClosedIndex) {
  server_->Call("PUT", "/" + index_, R"({"settings":{"number_of_replicas":0}})");
  server_->Call("POST", "/" + index_ + "/_close");
  const auto sink = OpenSink("");
  const auto writer = sink->Open(index_, {.run = "r", .incarnation = "i", .item = "x"}).value();
  Batch batch;
  batch.Add({.id = "1", .routing = {}, .body = "{}", .position = "", .defect = {}});
  const auto closed =
      writer->Write(batch, {}, {.deadline = RealEnv().MonoNow() + std::chrono::seconds(3)});
  ASSERT_FALSE(closed) << closed->size() << " refused";
  EXPECT_EQ(closed.error().code, Code::kReadOnly) << closed.error().ToString();
  server_->Call("POST", "/" + index_ + "/_open");
  const auto open = writer->Write(batch, {}, {});
  ASSERT_TRUE(open) << open.error().ToString();
  EXPECT_TRUE(open->empty());
}

TEST_F(OpenSearchPipeline, AMissingIndexIsNamed) {
  const auto source = OpenSource("/no-such-index");
  const auto collections = source->Collections();
  ASSERT_FALSE(collections);
  EXPECT_EQ(collections.error().code, Code::kNotFound);
  EXPECT_NE(collections.error().message.find("no-such-index"), std::string::npos);
}

// Scripts change ids, routing and mappings, drop and multiply documents; a second run makes the
// same.
TEST_F(OpenSearchPipeline, AScriptDecidesWhatBecomesOfDocumentsAndMappings) {
  Fill(index_, 2, 90);
  const std::string target = index_ + "-made";
  const std::string transforms = "- rename_index: {" + index_ + ": " + target + "}\n" + R"(
- javascript: |
    ({
      transform(doc, {id, collection}) {
        if (doc.n % 3 === 0) return undefined;
        if (doc.n % 3 === 1) return [{id: `${collection}/${id}`, routing: 'eu', source: doc}];
        return ['a', 'b'].map((part) => ({id: id + part, source: {...doc, part}}));
      },
      metadata: (metadata) => ({
        ...metadata,
        mappings: {dynamic: false, properties: {part: {type: 'keyword'}}},
      }),
    })
)";
  const auto plan = ParseTransforms(transforms, "t").value();
  const auto sink = OpenSink("");
  for (int run = 1; run <= 2; ++run) {
    const auto source = OpenSource("/" + index_);
    const auto counts = testing::Migrate(*source, *sink, transforms);
    ASSERT_TRUE(counts) << counts.error().ToString();
    EXPECT_EQ(counts->read, 90);
    EXPECT_EQ(counts->added, 30);
    EXPECT_EQ(counts->written, 90);
    EXPECT_EQ(counts->skipped, 30);
    const auto made = OpenSource("/" + target);
    const VerifyOptions options{.checksums = true, .transforms = plan.get()};
    VerifyObserver nothing;
    const auto report = VerifyCollection({*source, index_}, {*made, target}, options, nothing, {});
    ASSERT_TRUE(report) << report.error().ToString();
    EXPECT_TRUE(report->Equal()) << report->differences;
    EXPECT_EQ(report->TargetDocuments(), 90);
  }
  const std::string found = server_->Call("GET", "/" + target + "/_doc/2b");
  EXPECT_NE(found.find(R"("big":123456789012345678901234567890)"), std::string::npos) << found;
  const std::string mapping = server_->Call("GET", "/" + target + "/_mapping");
  EXPECT_NE(mapping.find(R"("part":{"type":"keyword"})"), std::string::npos) << mapping;
}

}  // namespace
}  // namespace muster::pipeline
