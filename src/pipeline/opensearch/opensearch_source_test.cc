// OpenSearch and Elasticsearch as sources, with canned responses of versions that are hard to
// install.

#include "pipeline/opensearch/opensearch_source.h"

#include <gtest/gtest.h>

#include <set>

#include "core/json.h"
#include "pipeline/flow/shards.h"
#include "pipeline/opensearch/data_streams.h"
#include "support/hasty_env.h"
#include "support/http_server.h"

namespace muster::pipeline {
namespace {

using testing::Answer;
using testing::HttpServer;
using testing::HttpServerReply;
using testing::HttpServerRequest;

// Elasticsearch 5 or 6 with one index of one shard, whose documents have no sequence numbers.
class OldServer {
 public:
  static constexpr int kDocuments = 1'234;

  std::string Url() const { return "opensearch+" + server_.Url() + "old"; }

  int broken_shards = 0;
  int hidden = 0;  // this many documents are counted but not found
  int added = 0;   // documents that are counted, since partitions were made
  int shards = 1;
  int counting = 1;     // shards that respond to a count
  bool started = true;  // whether the stats list the first shard
  std::string uuid = "first";
  bool may_see_settings = true;
  std::string version = "5.6.16";
  std::string id_field = "_uid";  // the one that can be sorted by
  bool is_frozen = false;
  bool may_refresh = true;
  std::string refresh_interval = "1s";

 private:
  HttpServerReply Reply(const HttpServerRequest& request) const {
    const std::string path = request.target.substr(0, request.target.find('?'));
    if (path == "/") return Answer(200, R"({"version":{"number":")" + version + R"("}})");
    if (path == "/old/_settings/index.uuid,index.frozen") {
      if (!may_see_settings) return Answer(403, R"({"error":{"reason":"no permission"}})");
      return Answer(200, R"({"old":{"settings":{"index":{"uuid":")" + uuid + R"(","frozen":")" +
                             (is_frozen ? "true" : "false") + R"("}}}})");
    }
    if (path == "/old/_settings/index.refresh_interval") {
      return Answer(
          200, R"({"old":{"settings":{"index.refresh_interval":")" + refresh_interval + R"("}}})");
    }
    if (request.target.ends_with("/_search?size=0")) return Answer(200, "{}");  // wakes it up
    if (path == "/old/_refresh" && !may_refresh) {
      return Answer(403, R"({"error":{"reason":"no permission"}})");
    }
    // What a cluster answers of an index that it leaves out.
    const bool includes_frozen = request.target.find("ignore_throttled=false") != std::string::npos;
    EXPECT_FALSE(includes_frozen && !is_frozen) << "only some versions know it";
    if (is_frozen && !includes_frozen && (path == "/old/_count" || path == "/old/_search")) {
      return Answer(200, R"({"count":0,"_shards":{"failed":0,"total":1,"successful":1},)"
                         R"("hits":{"hits":[]}})");
    }
    if (path == "/old" || path == "/old/_refresh") return Answer(200, R"({"old":{"mappings":{}}})");
    if (path == "/old/_count") {
      return Answer(200, R"({"count":)" + std::to_string(kDocuments + added) +
                             R"(,"_shards":{"failed":0,"total":)" + std::to_string(shards) +
                             R"(,"successful":)" + std::to_string(counting) + "}}");
    }
    if (path.starts_with("/old/_stats") && !started) return Answer(200, R"({"indices":{}})");
    if (path.starts_with("/old/_stats")) {
      return Answer(200, R"({"indices":{"old":{"shards":{"0":[{"routing":{"primary":true},)"
                         R"("docs":{"count":1234},"store":{"size_in_bytes":9}}]}}}})");
    }
    if (path == "/old/_search") {
      const Json body = ParseJson(request.body, "search").value();
      if (body["sort"][0].contains(id_field)) return Answer(200, Search(request));
      return Answer(400, R"({"error":{"type":"illegal_argument_exception",)"
                         R"("reason":"Fielddata access on the _uid field is disallowed"}})");
    }
    return Answer(404, "{}");
  }

  // Rejects what this version does not know.
  std::string Search(const HttpServerRequest& request) const {
    EXPECT_EQ(request.target.find("allow_partial"), std::string::npos);
    const Json body = ParseJson(request.body, "search").value();
    EXPECT_FALSE(body.contains("track_total_hits"));
    EXPECT_EQ(ToJsonText(body["sort"]), R"([{")" + id_field + R"(":"asc"}])");
    const std::string after = body.contains("search_after") ? body["search_after"][0] : Json("");
    std::string hits;
    int64_t left = body["size"].get<int64_t>();
    for (int i = 0; i < kDocuments - hidden && left > 0; ++i) {
      const std::string id = std::to_string(10'000 + i);
      const std::string uid = (id_field == "_uid" ? "doc#" : "") + id;
      if (uid <= after) continue;
      --left;
      hits += (hits.empty() ? "" : ",") + std::string(R"({"_type":"doc","_id":")") + id +
              R"(","_source":{"n":1.0},"sort":[")" + uid + "\"]}";
    }
    return R"({"_shards":{"failed":)" + std::to_string(broken_shards) + R"(},"hits":{"hits":[)" +
           hits + "]}}";
  }

  HttpServer server_{[this](const HttpServerRequest& request) { return Reply(request); }};
};

std::unique_ptr<Source> Open(const OldServer& server) {
  return OpenOpenSearchSource(ParseUrl(server.Url()).value(), RealEnv()).value();
}

// All documents, in two goes.
void ReadByIds(const OldServer& server) {
  const auto source = Open(server);
  const auto partitions = source->Partitions("old").value();
  ASSERT_EQ(partitions.size(), 1U);
  std::multiset<std::string> ids;
  std::string position;
  // From a position on, as after a crash.
  for (int begin = 0; begin < 2; ++begin) {
    const auto reader = source->Read(partitions[0], position, {}).value();
    while (const auto document = reader->Next().value()) {
      ids.emplace(document->id);
      EXPECT_EQ(document->body, R"({"n":1.0})");
      position = document->position;
      if (begin == 0 && ids.size() == 700) break;
    }
  }
  EXPECT_EQ(ids.size(), static_cast<size_t>(OldServer::kDocuments));
  EXPECT_EQ(std::set(ids.begin(), ids.end()).size(), ids.size());
  EXPECT_EQ(source->CountAgain(partitions).value(), OldServer::kDocuments);
}

TEST(OldElasticsearch, DocumentsWithoutSequenceNumbersAreReadByTheirIds) { ReadByIds(OldServer()); }

// Such an index was created by version 5.
TEST(OldElasticsearch, AnIndexOfVersion5IsReadByTypeAndIdInVersion6) {
  OldServer server;
  server.version = "6.8.23";
  ReadByIds(server);
}

TEST(OldElasticsearch, AnIndexOfASingleTypeIsReadByItsIdAlone) {
  for (const char* version : {"5.6.16", "6.8.23"}) {
    OldServer server;
    server.version = version;
    server.id_field = "_id";
    ReadByIds(server);
  }
}

TEST(OldElasticsearch, DifferenceToTheServersCountIsReported) {
  OldServer server;
  server.hidden = 4;
  const auto source = Open(server);
  const auto partitions = source->Partitions("old").value();
  const auto reader = source->Read(partitions[0], "", {}).value();
  int64_t read = 0;
  while (reader->Next().value()) ++read;
  const Status checked = CheckCount(*source, "old", partitions, [&] { return read; });
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, Code::kCorrupt);
  EXPECT_NE(checked.error().message.find("counts 1234 documents, but 1230"), std::string::npos)
      << checked.error().message;
}

// It is neither blamed nor taken for complete without a word.
TEST(OldElasticsearch, AnIndexThatHasGrownIsNotCompared) {
  OldServer server;
  const auto source = Open(server);
  const auto partitions = source->Partitions("old").value();
  server.added = 3;
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(CheckCount(*source, "old", partitions, [] { return OldServer::kDocuments; }));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("the index has changed since it was read"), std::string::npos) << log;
}

TEST(OldElasticsearch, PartialResultIsAnError) {
  OldServer server;
  server.broken_shards = 1;
  const auto source = Open(server);
  const auto reader = source->Read(source->Partitions("old").value()[0], "", {}).value();
  EXPECT_EQ(reader->Next().error().code, Code::kUnavailable);
}

// Its documents are in no relation to positions and counts of the first.
TEST(OldElasticsearch, RecreatedIndexIsNotReadOn) {
  OldServer server;
  const auto source = Open(server);
  const auto partitions = source->Partitions("old").value();
  const auto reader = source->Read(partitions[0], "", {}).value();
  ASSERT_TRUE(reader->Next().value());
  server.uuid = "second";
  Result<std::optional<Document>> document = std::nullopt;
  do {
    document = reader->Next();
  } while (document && *document);
  ASSERT_FALSE(document) << "the end must not pass for the end of the first";
  EXPECT_EQ(document.error().code, Code::kCorrupt);
  EXPECT_NE(document.error().message.find("index old was deleted and created again"),
            std::string::npos)
      << document.error().message;
  EXPECT_EQ(source->Read(partitions[0], "", {}).error().code, Code::kCorrupt);
  EXPECT_EQ(source->CountAgain(partitions).error().code, Code::kCorrupt);
}

TEST(OldElasticsearch, UserWhoMayNotSeeSettingsCanRead) {
  OldServer server;
  server.may_see_settings = false;
  const auto source = Open(server);
  const auto partitions = source->Partitions("old").value();
  EXPECT_EQ(partitions.at(0).mark, "");
  const auto reader = source->Read(partitions[0], "", {}).value();
  int read = 0;
  while (reader->Next().value()) ++read;
  EXPECT_EQ(read, OldServer::kDocuments);
}

TEST(OldElasticsearch, UserWhoMayNotRefreshWaitsUntilTheIndexDoes) {
  OldServer server;
  server.may_refresh = false;
  testing::HastyEnv env;
  const auto source = OpenOpenSearchSource(ParseUrl(server.Url()).value(), env).value();
  using namespace std::chrono_literals;
  for (const auto& [soon, wait] : {std::pair<const char*, std::chrono::seconds>{"", 1s},
                                   {"500ms", 0s},
                                   {"30s", 30s},
                                   {"2m", 120s}}) {
    server.refresh_interval = soon;
    const MonoTime before = env.MonoNow();
    const auto partitions = source->Partitions("old");
    ASSERT_TRUE(partitions) << soon << partitions.error().ToString();
    EXPECT_EQ(partitions->size(), 1U);
    EXPECT_GT(env.MonoNow() - before, wait) << soon;
  }
  for (const char* never : {"-1", "1h", "10m", "soon"}) {
    server.refresh_interval = never;
    const auto partitions = source->Partitions("old");
    ASSERT_FALSE(partitions) << never;
    EXPECT_EQ(partitions.error().code, Code::kPermission);
    EXPECT_NE(partitions.error().message.find("does not refresh itself"), std::string::npos);
  }
}

// Searches and counts leave it out in silence.
TEST(OldElasticsearch, FrozenIndexIsRead) {
  OldServer server;
  server.is_frozen = true;
  const auto source = Open(server);
  const auto partitions = source->Partitions("old").value();
  ASSERT_EQ(partitions.size(), 1U);
  const auto reader = source->Read(partitions[0], "", {}).value();
  int read = 0;
  while (reader->Next().value()) ++read;
  EXPECT_EQ(read, OldServer::kDocuments);
  EXPECT_EQ(source->CountAgain(partitions).value(), OldServer::kDocuments);
}

// Stats list only started shards, and a count says how many responded.
TEST(OldElasticsearch, IndexWithAMissingShardIsNotRead) {
  OldServer server;
  const auto expect = [&](const std::string& words) {
    const auto partitions = Open(server)->Partitions("old");
    ASSERT_FALSE(partitions);
    EXPECT_EQ(partitions.error().code, Code::kUnavailable);
    EXPECT_NE(partitions.error().message.find(words), std::string::npos)
        << partitions.error().message;
  };
  server.shards = 2;
  expect("1 of 2 shards answer");
  server.counting = 2;
  expect("only 1 of 2 shards were started");
  server.started = false;
  expect("no shard is started at the moment");
}

// A cluster that returns these indices, and these closed ones.
class Listing {
 public:
  Listing(std::string indices, std::string closed)
      : indices_(std::move(indices)), closed_(std::move(closed)) {}

  std::vector<Collection> Of(const std::string& pattern) {
    const Url url = ParseUrl("opensearch+" + server_.Url() + pattern).value();
    return OpenOpenSearchSource(url, RealEnv()).value()->Collections().value();
  }

  std::vector<LeftOut> Unlisted(const std::string& pattern) {
    const Url url = ParseUrl("opensearch+" + server_.Url() + pattern).value();
    return OpenOpenSearchSource(url, RealEnv()).value()->Unlisted().value();
  }

  std::string all = "{}";  // with hidden ones
  std::string streams = "{}";
  std::string templates = "{}";

  static std::string WhyNot(const Collection& collection) {
    return collection.refusal ? collection.refusal->ToString() : "";
  }

 private:
  HttpServerReply Reply(const HttpServerRequest& request) const {
    if (request.target == "/") return Answer(200, R"({"cluster_uuid":"c1"})");
    if (request.target.starts_with("/_data_stream")) return Answer(200, streams);
    if (request.target.starts_with("/_index_template")) return Answer(200, templates);
    if (request.target.starts_with("/_component_template")) return Answer(404, "{}");
    if (request.target.find("expand_wildcards=closed") != std::string::npos) {
      return Answer(200, closed_);
    }
    if (request.target.find("expand_wildcards=all") != std::string::npos) return Answer(200, all);
    return Answer(200, indices_);
  }

  const std::string indices_;
  const std::string closed_;
  HttpServer server_{[this](const HttpServerRequest& request) { return Reply(request); }};
};

TEST(OpenSearchListing, ClosedIndicesAreRefusedByName) {
  Listing cluster(R"({"a":{},"named":{"settings":{"index":{"verified_before_close":"true"}}}})",
                  R"({"a":{},"named":{},"matched":{},".system":{}})");
  const auto collections = cluster.Of("a*,named,m*");
  ASSERT_EQ(collections.size(), 3U);
  EXPECT_EQ(collections[0].name, "a");
  EXPECT_EQ(Listing::WhyNot(collections[0]), "");
  for (const size_t i : {1, 2}) {
    const std::string why = Listing::WhyNot(collections[i]);
    EXPECT_NE(why.find("index " + collections[i].name + " is closed"), std::string::npos) << why;
    EXPECT_NE(why.find("--exclude " + collections[i].name), std::string::npos) << why;
  }
}

// Their documents may have the same ids.
TEST(OpenSearchListing, IndexWithSeveralTypesIsRefused) {
  Listing cluster(
      R"({"one":{"mappings":{"_default_":{},"a":{"properties":{"x":{"type":"long"}}}}},)"
      R"("two":{"mappings":{"a":{"properties":{}},"b":{"_all":{}}}}})",
      "{}");
  const auto collections = cluster.Of("");
  ASSERT_EQ(collections.size(), 2U);
  EXPECT_EQ(Listing::WhyNot(collections[0]), "");
  const std::string why = Listing::WhyNot(collections[1]);
  EXPECT_NE(why.find("index two has documents of the types a, b"), std::string::npos) << why;
}

// Nothing else would say that fields, or all of a document, are lost.
TEST(OpenSearchListing, IndexThatKeepsLessThanItsDocumentsIsRefused) {
  Listing cluster(R"({"all":{"mappings":{"_source":{"excludes":[]},"properties":{}}},)"
                  R"("none":{"mappings":{"_source":{"enabled":false}}},)"
                  R"("some":{"mappings":{"_source":{"excludes":["vector"]}}},)"
                  R"("typed":{"mappings":{"doc":{"_source":{"includes":["a*"]}}}}})",
                  "{}");
  for (const bool pruned : {false, true}) {
    const auto collections = cluster.Of(pruned ? "?pruned_source=true" : "");
    ASSERT_EQ(collections.size(), 4U);
    EXPECT_EQ(Listing::WhyNot(collections[0]), "");
    const std::string why = Listing::WhyNot(collections[1]);
    EXPECT_NE(why.find("index none: its mapping keeps no _source"), std::string::npos) << why;
    for (const size_t i : {2, 3}) {
      const std::string pruning = Listing::WhyNot(collections[i]);
      EXPECT_EQ(pruning.find("leaves fields out of _source") == std::string::npos, pruned)
          << pruning;
    }
  }
}

TEST(OpenSearchListing, MetadataThatTheUserMayNotReadIsNamed) {
  HttpServer server([](const HttpServerRequest& request) {
    if (request.target == "/") {
      return Answer(200, R"({"version":{"number":"2.19.6","distribution":"opensearch"}})");
    }
    if (request.target == "/_template") return Answer(403, R"({"error":"no permissions"})");
    if (request.target == "/_data_stream") {
      return Answer(405, R"({"error":"Incorrect HTTP method for uri [/_data_stream]"})");
    }
    if (request.target == "/_ingest/pipeline") return Answer(200, R"({"p":{"processors":[]}})");
    return Answer(400, R"({"error":"no handler found for uri"})");
  });
  const Url url = ParseUrl("opensearch+" + server.Url()).value();
  const auto source = OpenOpenSearchSource(url, RealEnv()).value();
  const Json global = ParseJson(source->GlobalMetadata().value(), "metadata").value();
  EXPECT_EQ(global["cluster_version"], "opensearch 2.19");
  EXPECT_EQ(global["unreadable"].size(), 1U) << global;
  EXPECT_TRUE(global["unreadable"].contains("templates")) << global;
  EXPECT_TRUE(global["pipelines"].contains("p")) << global;
}

TEST(OpenSearchListing, DataStreamIsOneCollectionUnlessItsBackingIndicesAreNamed) {
  Listing cluster(
      R"({".ds-logs-1":{"data_stream":"logs"},".ds-logs-2":{"data_stream":"logs",)"
      R"("mappings":{"dynamic":"false"}},"orders":{},".ds-.own-1":{"data_stream":".own"}})",
      "{}");
  cluster.streams = R"({"data_streams":[{"name":"logs","indices":[{"index_name":".ds-logs-1"},)"
                    R"({"index_name":".ds-logs-2"}]},{"name":"gone","hidden":true,"indices":[]}]})";
  cluster.templates =
      R"({"index_templates":[{"name":"l","index_template":{"index_patterns":["logs*"],)"
      R"("data_stream":{},"composed_of":["c"]}},{"name":"o","index_template":{"index_patterns":["*"]}}]})";
  for (const char* pattern : {"", "*", "logs,o*"}) {
    const auto collections = cluster.Of(pattern);
    ASSERT_EQ(collections.size(), 2U) << pattern;
    EXPECT_EQ(collections[0].name, "orders") << "indices come first";
    EXPECT_EQ(collections[1].name, "logs");
    EXPECT_EQ(Listing::WhyNot(collections[1]), "");
    const Json metadata = ParseJson(collections[1].metadata, "metadata").value();
    EXPECT_EQ(metadata["data_stream"], "logs");
    EXPECT_EQ(metadata["mappings"]["dynamic"], "false") << "of the newest index";
    EXPECT_EQ(metadata["index_templates"].size(), 1U) << metadata;
    EXPECT_TRUE(metadata["index_templates"].contains("l")) << metadata;
  }
  Listing only(R"({".ds-logs-1":{"data_stream":"logs"},".ds-logs-2":{"data_stream":"logs"}})",
               "{}");
  const auto backing = only.Of(".ds-logs-*");
  ASSERT_EQ(backing.size(), 2U);
  EXPECT_EQ(backing[0].name, ".ds-logs-1");
  EXPECT_EQ(Listing::WhyNot(backing[0]), "");
}

TEST(OpenSearchListing, DataStreamWithAClosedIndexIsRefused) {
  Listing cluster(R"({".ds-logs-2":{"data_stream":"logs"}})", R"({".ds-logs-1":{}})");
  cluster.streams = R"({"data_streams":[{"name":"logs","indices":[{"index_name":".ds-logs-1"},)"
                    R"({"index_name":".ds-logs-2"}]}]})";
  const auto collections = cluster.Of("");
  ASSERT_EQ(collections.size(), 1U);
  const std::string why = Listing::WhyNot(collections[0]);
  EXPECT_NE(why.find(".ds-logs-1 is closed"), std::string::npos) << why;
  EXPECT_NE(why.find("part of data stream logs"), std::string::npos) << why;
  EXPECT_NE(why.find("--exclude logs"), std::string::npos) << why;
}

// A rollover between two requests, or an index that the user may not see.
TEST(OpenSearchListing, DataStreamWithAnIndexThatIsNotShownIsNotTakenForClosed) {
  Listing cluster(R"({".ds-logs-1":{"data_stream":"logs"}})", R"({".ds-logs-1":{}})");
  cluster.streams = R"({"data_streams":[{"name":"logs","indices":[{"index_name":".ds-logs-1"},)"
                    R"({"index_name":".ds-logs-2"}]}]})";
  const auto collections = cluster.Of("");
  ASSERT_EQ(collections.size(), 1U);
  const std::string why = Listing::WhyNot(collections[0]);
  EXPECT_NE(why.find(".ds-logs-2 is shown neither as open nor as closed"), std::string::npos)
      << why;
  EXPECT_NE(why.find("--exclude logs"), std::string::npos) << why;
}

TEST(DataStreams, ShardsKeepTheirNumbersWhenOlderIndicesAreGone) {
  EXPECT_EQ(FirstShardsOf({".ds-logs-000001", ".ds-logs-2024.01.01-000002"}),
            (std::vector<int>{10'000, 20'000}));
  EXPECT_EQ(FirstShardsOf({".ds-logs-000002"}), (std::vector<int>{20'000}));
  // By place, if a name says nothing or two say the same.
  EXPECT_EQ(FirstShardsOf({"added", ".ds-logs-000007"}), (std::vector<int>{10'000, 20'000}));
  EXPECT_EQ(FirstShardsOf({"other-3", ".ds-logs-000003"}), (std::vector<int>{10'000, 20'000}));
}

TEST(OpenSearchListing, AliasThatShowsSomeDocumentsIsRefused) {
  Listing cluster(
      R"({"orders":{"aliases":{"some":{"filter":{"term":{"a":1}}},"one":{"search_routing":"1"},)"
      R"("all":{"index_routing":"1"}}}})",
      "{}");
  for (const char* pattern : {"some", "one", "s*", "some,one", "x,some"}) {
    const auto collections = cluster.Of(pattern);
    ASSERT_EQ(collections.size(), 1U) << pattern;
    const std::string why = Listing::WhyNot(collections[0]);
    EXPECT_NE(why.find("shows only some documents of index orders"), std::string::npos)
        << pattern << ": " << why;
    EXPECT_NE(why.find("name the index, orders,"), std::string::npos) << why;
  }
  for (const char* pattern : {"", "*", "orders", "some,orders", "all", "all,some", "ord*,-x"}) {
    EXPECT_EQ(Listing::WhyNot(cluster.Of(pattern).at(0)), "") << pattern;
  }
}

TEST(OpenSearchListing, IndexWithADotIsSelectedByTheDotOrByItsAlias) {
  Listing cluster(R"({".kept":{"aliases":{"app":{}}}})", "{}");
  EXPECT_EQ(cluster.Of("").size(), 0U);
  EXPECT_EQ(cluster.Of("a*").size(), 0U);
  EXPECT_EQ(cluster.Of("app").size(), 1U);
  EXPECT_EQ(cluster.Of("x,.k*").size(), 1U);
}

TEST(OpenSearchListing, WhatIsNotListedHasAReason) {
  Listing cluster(R"({"a":{},".ds-logs-1":{"data_stream":"logs"},".tasks":{}})", R"({"shut":{}})");
  cluster.all = R"({"a":{"settings":{"index":{"uuid":"1"}}},".tasks":{},"shut":{},)"
                R"(".ds-logs-1":{"data_stream":"logs"},".ds-.own-1":{"data_stream":".own"},)"
                R"(".ds-own-1":{"data_stream":"own"},".ds-own-2":{"data_stream":"own"},)"
                R"(".fs-logs-1":{"data_stream":"logs"},)"
                R"("secret":{"settings":{"index":{"hidden":"true"}}}})";
  std::string all;
  for (const auto& [name, reason] : cluster.Unlisted("")) {
    all += name + ": " + reason.substr(0, reason.find(':')) + "; ";
  }
  EXPECT_EQ(all,
            ".fs-logs-1: of a data stream's failure store; .own: the name begins with a dot; "
            ".tasks: the name begins with a dot; own: a data stream that is hidden, or behind an "
            "alias; secret: hidden; ")
      << "data streams by their own names";
}

}  // namespace
}  // namespace muster::pipeline
