#include "metadata/job.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/http_server.h"
#include "support/temporary_folder.h"

namespace muster::metadata {
namespace {

using testing::Answer;
using testing::HttpServer;
using testing::HttpServerRequest;

class MetadataJob : public ::testing::Test {
 protected:
  Result<std::vector<Reported>> Run(HttpServer& server, Mode mode,
                                    std::vector<SourceObject> objects,
                                    const std::string& script = "") {
    RuleSet own = RuleSet::BuiltIn().value();
    const std::string path = folder_.path() + "/rules.js";
    std::ofstream(path) << script;
    if (!script.empty()) {
      EXPECT_TRUE(own.AddFile(path));
    }
    net::OpenSearchClient client({.base_url = "http://127.0.0.1:" + std::to_string(server.port())},
                                 RealEnv());
    Target target(client, RealEnv(), {Engine::kOpenSearch, 2, 19});
    Job job(target, own, rules_, {Engine::kElasticsearch, 7, 17}, {});
    return job.Run(
        mode, std::move(objects),
        [this](const std::string& index) {
          sampled_.push_back(index);
          return std::vector<Sample>();
        },
        [](const Reported&) {}, {});
  }

  const testing::TemporaryFolder folder_;
  std::vector<std::string> sampled_;

  const RuleSet rules_ = RuleSet::BuiltIn().value();
  const SourceObject policy_{
      {Kind::kPolicy, "mine",
       Json::parse(
           R"({"policy":{"phases":{"delete":{"min_age":"1d","actions":{"delete":{}}}}}})")}};
};

TEST_F(MetadataJob, PolicyGoesToStateManagement) {
  HttpServer server([](const HttpServerRequest& request) {
    return request.method == "PUT" ? Answer(201, "{}") : Answer(404, R"({"error":"none"})");
  });
  const auto reported = Run(server, Mode::kMigrate, {policy_});
  ASSERT_TRUE(reported) << reported.error().ToString();
  EXPECT_EQ(reported->at(0).verdict.outcome, Outcome::kChanged);
  const HttpServerRequest put = server.requests().back();
  EXPECT_EQ(put.method, "PUT");
  EXPECT_EQ(put.target, "/_plugins/_ism/policies/mine");
  EXPECT_EQ(Json::parse(put.body)["policy"]["default_state"], "delete");
}

TEST_F(MetadataJob, PolicyIsLeftOutWithoutStateManagement) {
  HttpServer server([](const HttpServerRequest&) {
    return Answer(400, R"({"error":"no handler found for uri [/_plugins/_ism]"})");
  });
  const auto reported = Run(server, Mode::kMigrate, {policy_, policy_});
  ASSERT_TRUE(reported) << reported.error().ToString();
  EXPECT_EQ(reported->at(1).verdict.outcome, Outcome::kLeftOut);
  EXPECT_EQ(server.requests().size(), 1U) << "the cluster is asked once";
}

TEST_F(MetadataJob, RefusalsDoNotStopTheOthersAndOutagesDo) {
  HttpServer server([](const HttpServerRequest& request) {
    if (request.method == "GET") return Answer(404, "{}");
    if (request.target.find("bad") != std::string::npos) {
      return Answer(400, R"({"error":{"type":"x","reason":"no"}})");
    }
    if (request.target.find("down") != std::string::npos) {
      return Answer(503, R"({"error":{"type":"x","reason":"not ready"}})");
    }
    return Answer(200, "{}");
  });
  const Json body{{"settings", Json::object()}};
  auto reported =
      Run(server, Mode::kMigrate, {{{Kind::kIndex, "bad", body}}, {{Kind::kIndex, "good", body}}});
  ASSERT_TRUE(reported) << reported.error().ToString();
  EXPECT_EQ(reported->at(0).verdict.outcome, Outcome::kRefused);
  EXPECT_EQ(reported->at(1).verdict.outcome, Outcome::kOk);
  reported =
      Run(server, Mode::kMigrate, {{{Kind::kIndex, "down", body}}, {{Kind::kIndex, "good", body}}});
  ASSERT_FALSE(reported);
  EXPECT_EQ(reported.error().code, Code::kUnavailable);
  EXPECT_TRUE(reported.error().message.starts_with("index down: ")) << reported.error().message;
}

TEST_F(MetadataJob, RenamedObjectsHaveTheirNewNamesInTheTargetOnly) {
  HttpServer server([](const HttpServerRequest& request) {
    return request.method == "GET" ? Answer(404, "{}") : Answer(200, "{}");
  });
  const Json body{{"settings", Json::object()}};
  const std::string script = "(o) => ({...o, name: 'new-' + o.name})";
  auto reported = Run(server, Mode::kMigrate, {{{Kind::kIndex, "a", body}}}, script);
  ASSERT_TRUE(reported) << reported.error().ToString();
  EXPECT_EQ(reported->at(0).name, "a");
  EXPECT_EQ(reported->at(0).verdict.name, "new-a");
  int created = 0;
  for (const HttpServerRequest& request : server.requests()) {
    EXPECT_FALSE(request.target.ends_with("/a")) << request.target;
    created += request.method == "PUT" && request.target == "/new-a";
  }
  EXPECT_EQ(created, 1);
  reported = Run(server, Mode::kEvaluate, {{{Kind::kIndex, "a", body}}}, script);
  ASSERT_TRUE(reported) << reported.error().ToString();
  EXPECT_EQ(sampled_, std::vector<std::string>{"a"});
}

TEST_F(MetadataJob, TwoObjectsCannotGetTheSameName) {
  HttpServer server([](const HttpServerRequest& request) {
    return request.method == "GET" ? Answer(404, "{}") : Answer(200, "{}");
  });
  const Json body{{"settings", Json::object()}};
  const auto reported =
      Run(server, Mode::kMigrate, {{{Kind::kIndex, "a", body}}, {{Kind::kIndex, "b", body}}},
          "(o) => ({...o, name: 'all'})");
  ASSERT_TRUE(reported) << reported.error().ToString();
  EXPECT_EQ(reported->at(0).verdict.outcome, Outcome::kChanged);
  EXPECT_EQ(reported->at(1).verdict.outcome, Outcome::kRefused);
  EXPECT_NE(reported->at(1).verdict.reason.find("a has its name already: all"), std::string::npos);
}

// Of an object that was not read there is nothing to change.
TEST_F(MetadataJob, ScriptIsNotAskedAboutWhatIsNotSelected) {
  HttpServer server([](const HttpServerRequest&) { return Answer(200, "{}"); });
  const auto reported = Run(server, Mode::kMigrate, {{{Kind::kIndex, "closed"}, "it is closed"}},
                            "(o) => { throw new Error('no settings'); }");
  ASSERT_TRUE(reported) << reported.error().ToString();
  EXPECT_EQ(reported->at(0).verdict.outcome, Outcome::kLeftOut);
  EXPECT_EQ(reported->at(0).verdict.reason, "it is closed");
}

// Or by a request of our own whose answer was lost.
TEST_F(MetadataJob, DataStreamThatIsCreatedAtTheSameTimeIsThere) {
  bool is_there = false;
  HttpServer server([&](const HttpServerRequest& request) {
    if (request.method == "PUT" && request.target == "/_data_stream/logs") {
      is_there = true;
      return Answer(400, R"({"error":{"type":"resource_already_exists_exception",)"
                         R"("reason":"data_stream [logs] already exists"}})");
    }
    if (request.method != "GET") return Answer(200, "{}");
    if (!is_there || request.target != "/_data_stream/logs") return Answer(404, "{}");
    return Answer(200, R"({"data_streams":[{"name":"logs","indices":[]}]})");
  });
  const Json body = Json::parse(R"({"data_stream":"logs","mappings":{}})");
  const auto reported = Run(server, Mode::kMigrate, {{{Kind::kDataStream, "logs", body}}});
  ASSERT_TRUE(reported) << reported.error().ToString();
  EXPECT_TRUE(is_there);
  EXPECT_EQ(reported->at(0).verdict.outcome, Outcome::kOk) << reported->at(0).verdict.reason;
}

// Its documents are written to the newest of its indices.
TEST_F(MetadataJob, DataStreamThatLosesFieldsIsDifferent) {
  std::string mappings;
  HttpServer server([&](const HttpServerRequest& request) {
    if (request.target.starts_with("/_data_stream/logs")) {
      return Answer(200, R"({"data_streams":[{"name":"logs","indices":[)"
                         R"({"index_name":".ds-logs-1"},{"index_name":".ds-logs-2"}]}]})");
    }
    if (request.target.starts_with("/.ds-logs-2")) {
      return Answer(200, R"({".ds-logs-2":{"mappings":)" + mappings + R"(,"settings":{"index":)" +
                             R"({"hidden":"true","number_of_shards":"3"}}}})");
    }
    return Answer(404, "{}");
  });
  const Json body = Json::parse(R"({"data_stream":"logs","settings":{"index":{"hidden":"true"}},)"
                                R"("mappings":{"properties":{"a":{"type":"long"}}}})");
  for (const auto& [has, outcome] :
       {std::pair{R"({"properties":{"b":{"type":"keyword"}}})", Outcome::kOk},
        std::pair{R"({"_source":{"excludes":["a"]},"properties":{"a":{"type":"long"}}})",
                  Outcome::kDifferent}}) {
    mappings = has;
    const auto reported = Run(server, Mode::kDiff, {{{Kind::kDataStream, "logs", body}}});
    ASSERT_TRUE(reported) << reported.error().ToString();
    EXPECT_EQ(reported->at(0).verdict.outcome, outcome) << reported->at(0).verdict.reason;
  }
}

}  // namespace
}  // namespace muster::metadata
