// What templates of a cluster add to the indices that are created there.

#include "metadata/created_index.h"

#include <gtest/gtest.h>

#include <atomic>

#include "metadata/job.h"
#include "support/http_server.h"

namespace muster::metadata {
namespace {

using testing::Answer;
using testing::HttpServer;
using testing::HttpServerReply;
using testing::HttpServerRequest;

// A cluster whose index `books` is what `created` says once it was asked for.
class Cluster {
 public:
  std::string created = R"({"settings":{"index":{"number_of_shards":"1","uuid":"u"}}})";
  std::string simulated = "{}";
  std::string templates = "{}";
  std::vector<std::string> writes() const { return writes_; }

  Result<CreatedIndex> Create(const char* body) {
    net::OpenSearchClient client({.base_url = "http://127.0.0.1:" + std::to_string(server_.port())},
                                 RealEnv());
    Target target(client, RealEnv(), {Engine::kOpenSearch, 2, 19});
    return CreateIndex(target, rules_, "books", Json::parse(body));
  }

  void MakeExist() { is_there_ = true; }

  Result<std::vector<Reported>> Run(Mode mode, const char* body) {
    net::OpenSearchClient client({.base_url = "http://127.0.0.1:" + std::to_string(server_.port())},
                                 RealEnv());
    Target target(client, RealEnv(), {Engine::kOpenSearch, 2, 19});
    Job job(target, rules_, rules_, {Engine::kOpenSearch, 2, 19}, {});
    return job.Run(
        mode, {{{Kind::kIndex, "books", Json::parse(body)}}},
        [](const std::string&) { return std::vector<Sample>(); }, [](const Reported&) {}, {});
  }

 private:
  HttpServerReply Serve(const HttpServerRequest& request) {
    if (request.target == "/_index_template/_simulate_index/books") return Answer(200, simulated);
    if (request.target == "/_template") return Answer(200, templates);
    if (request.method != "GET") writes_.push_back(request.method + " " + request.target);
    if (request.method == "PUT") is_there_ = true;
    if (request.method == "GET" && !is_there_) return Answer(404, R"({"error":"none"})");
    return Answer(200, R"({"books":)" + created + "}");
  }

  const RuleSet rules_ = RuleSet::BuiltIn().value();
  std::vector<std::string> writes_;
  std::atomic<bool> is_there_ = false;
  HttpServer server_{[this](const HttpServerRequest& request) { return Serve(request); }};
};

constexpr const char* kPlain = R"({"settings":{"index.number_of_shards":"1"},"mappings":{}})";

TEST(CreatedIndex, IsWhatWasAskedFor) {
  Cluster cluster;
  const auto created = cluster.Create(kPlain);
  ASSERT_TRUE(created) << created.error().ToString();
  EXPECT_TRUE(created->added.empty()) << Joined(created->added);
  EXPECT_EQ(cluster.writes(), std::vector<std::string>{"PUT /books"});
}

TEST(CreatedIndex, IsDeletedAgainIfTemplatesWouldChangeDocuments) {
  for (const auto& [created, what] : {
           std::pair{R"({"mappings":{"_source":{"excludes":["secret"]}}})",
                     R"(mappings _source.excludes: ["secret"])"},
           std::pair{R"({"mappings":{"_source":{"enabled":false}}})", "_source.enabled: false"},
           std::pair{R"({"mappings":{"dynamic":"strict"}})", "mappings dynamic: strict"},
           std::pair{R"({"mappings":{"properties":{"a":{"dynamic":"false"}}}})",
                     "mappings properties.a.dynamic: false"},
           std::pair{R"({"mappings":{"_routing":{"required":true}}})", "_routing.required: true"},
           std::pair{R"({"settings":{"index":{"final_pipeline":"cut"}}})",
                     "settings index.final_pipeline: cut"},
           std::pair{R"({"settings":{"index":{"default_pipeline":"cut"}}})",
                     "settings index.default_pipeline: cut"},
           std::pair{R"({"aliases":{"all":{"is_write_index":true}}})",
                     "aliases all.is_write_index: true"},
       }) {
    Cluster cluster;
    cluster.created = created;
    const auto made = cluster.Create(kPlain);
    ASSERT_FALSE(made) << created;
    EXPECT_EQ(made.error().code, Code::kInvalid);
    EXPECT_NE(made.error().message.find(what), std::string::npos) << made.error().message;
    EXPECT_NE(made.error().hint.find("/_index_template"), std::string::npos);
    EXPECT_EQ(cluster.writes(), (std::vector<std::string>{"PUT /books", "DELETE /books"}));
  }
}

TEST(CreatedIndex, OtherAdditionsAreReported) {
  Cluster cluster;
  cluster.created =
      R"({"settings":{"index":{"refresh_interval":"30s"}},"aliases":{"all":{}},
          "mappings":{"dynamic":"true","properties":{"dynamic":{"type":"long"}}}})";
  const auto created = cluster.Create(kPlain);
  ASSERT_TRUE(created) << created.error().ToString();
  EXPECT_EQ(created->added, (std::vector<std::string>{"aliases all: there",
                                                      "mappings properties.dynamic.type: long",
                                                      "settings index.refresh_interval: 30s"}));
}

TEST(CreatedIndex, MayHaveWhatTheSourcesIndexHas) {
  Cluster cluster;
  cluster.created = R"({"mappings":{"dynamic":"strict","_source":{"excludes":["a"]}},
      "settings":{"index":{"default_pipeline":"p"}},"aliases":{"w":{"is_write_index":true}}})";
  EXPECT_TRUE(cluster.Create(R"({"mappings":{"dynamic":"strict","_source":{"excludes":"a"}},
      "settings":{"index.default_pipeline":"p"},"aliases":{"w":{"is_write_index":true}}})"));
}

TEST(CreatedIndex, IsNotCreatedIfTemplatesSayBeforehandWhatTheyAdd) {
  Cluster newer;
  newer.simulated = R"({"template":{"settings":{"index":{"final_pipeline":"cut"}}}})";
  EXPECT_FALSE(newer.Create(kPlain));
  EXPECT_TRUE(newer.writes().empty());

  Cluster older;
  older.templates = R"({"one":{"order":1,"index_patterns":["b*"],"mappings":{"dynamic":"false"}},
      "two":{"order":2,"index_patterns":["x*"],"mappings":{"_source":{"enabled":false}}}})";
  const auto created = older.Create(kPlain);
  ASSERT_FALSE(created);
  EXPECT_NE(created.error().message.find("mappings dynamic: false"), std::string::npos);
  EXPECT_EQ(created.error().message.find("_source"), std::string::npos);
  // What a request says counts.
  older.created = R"({"mappings":{"dynamic":"strict"}})";
  EXPECT_TRUE(older.Create(R"({"mappings":{"dynamic":"strict"}})"));

  const auto evaluated = newer.Run(Mode::kEvaluate, kPlain);
  ASSERT_TRUE(evaluated) << evaluated.error().ToString();
  EXPECT_EQ(evaluated->at(0).verdict.outcome, Outcome::kRefused);
  EXPECT_TRUE(newer.writes().empty());
}

TEST(CreatedIndex, OneThatExistsIsDifferentIfItChangesDocuments) {
  Cluster cluster;
  cluster.MakeExist();
  cluster.created = R"({"mappings":{"properties":{"by_documents":{"type":"long"}}}})";
  EXPECT_EQ(cluster.Run(Mode::kMigrate, kPlain)->at(0).verdict.outcome, Outcome::kOk);
  cluster.created = R"({"mappings":{"_source":{"excludes":["secret"]}}})";
  const auto reported = cluster.Run(Mode::kMigrate, kPlain);
  EXPECT_EQ(reported->at(0).verdict.outcome, Outcome::kDifferent);
  EXPECT_EQ(reported->at(0).verdict.reason, R"(mappings _source.excludes: ["secret"])");
  EXPECT_TRUE(cluster.writes().empty());
}

}  // namespace
}  // namespace muster::metadata
