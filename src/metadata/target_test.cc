#include "metadata/target.h"

#include <gtest/gtest.h>

#include <atomic>

#include "support/http_server.h"

namespace muster::metadata {
namespace {

using testing::Answer;
using testing::HttpServer;
using testing::HttpServerRequest;

net::OpenSearchEndpoint EndpointOf(const HttpServer& server) {
  return {.base_url = "http://127.0.0.1:" + std::to_string(server.port())};
}

const ClusterVersion kVersion{Engine::kOpenSearch, 2, 19};

TEST(MetadataTarget, SettingsThatTheClusterDoesNotKnowAreFoundInItsRefusal) {
  EXPECT_EQ(
      UnknownSettings("unknown setting [index.a] please check; 2: unknown setting [index.b.c] "
                      "did you mean [index.x]?"),
      (std::vector<std::string>{"index.a", "index.b.c"}));
  EXPECT_EQ(UnknownSettings("private index setting [index.p] can not be set explicitly"),
            std::vector<std::string>{"index.p"});
  EXPECT_TRUE(UnknownSettings("unknown setting [index").empty());
}

// A refusal about a setting that was not sent would otherwise be answered forever.
TEST(MetadataTarget, DropsOnlyWhatItSent) {
  HttpServer server([](const HttpServerRequest& request) {
    if (request.body.find("index.a") != std::string::npos) {
      return Answer(
          400,
          R"({"error":{"type":"illegal_argument_exception","reason":"unknown setting [index.a]"}})");
    }
    return Answer(
        400,
        R"({"error":{"type":"illegal_argument_exception","reason":"unknown setting [index.z]"}})");
  });
  net::OpenSearchClient client(EndpointOf(server), RealEnv());
  Target target(client, RealEnv(), kVersion);
  const auto made = target.Create(Kind::kIndex, "books",
                                  Json{{"settings", Json{{"index.a", "1"}, {"index.b", "2"}}}});
  ASSERT_FALSE(made);
  EXPECT_TRUE(IsRefusal(made.error()));
  EXPECT_NE(made.error().message.find("index.z"), std::string::npos);
  EXPECT_EQ(server.requests().size(), 2U);
}

TEST(MetadataTarget, TemporaryIndexIsAlwaysDeleted) {
  for (const int status : {200, 400, 500}) {
    HttpServer server([&](const HttpServerRequest& request) {
      if (request.method == "DELETE") return Answer(200, "{}");
      return Answer(request.target.find("_bulk") != std::string::npos ? status : 200,
                    R"({"items":[]})");
    });
    net::OpenSearchClient client(EndpointOf(server), RealEnv());
    Target target(client, RealEnv(), kVersion);
    const Json body{{"aliases", Json{{"live", Json::object()}}}};
    const auto tried = target.Try(Kind::kIndex, body, {{.body = R"({"a":1})"}});
    EXPECT_EQ(tried.has_value(), status == 200);
    const auto requests = server.requests();
    ASSERT_EQ(requests.size(), 3U);
    EXPECT_EQ(requests[0].body.find("\"live\""), std::string::npos) << "the alias is in use";
    EXPECT_TRUE(requests[0].target.starts_with("/muster-evaluate-"));
    EXPECT_EQ(requests[2].method, "DELETE");
    EXPECT_EQ(requests[2].target, requests[0].target);
  }
}

// A mapping may demand routing, and what a document without an id and routing gets then is no
// refusal.
TEST(MetadataTarget, DocumentsAreTriedWithTheirIdsAndRouting) {
  HttpServer server([](const HttpServerRequest&) { return Answer(200, R"({"items":[]})"); });
  net::OpenSearchClient client(EndpointOf(server), RealEnv());
  Target target(client, RealEnv(), kVersion);
  ASSERT_TRUE(target.Try(Kind::kIndex, Json::object(),
                         {{.id = "1", .routing = "a\"b", .body = "{\n}"}, {.body = "{}"}}));
  EXPECT_EQ(server.requests().at(1).body,
            "{\"index\":{\"_id\":\"1\",\"routing\":\"a\\\"b\"}}\n{ }\n{\"index\":{}}\n{}\n");
}

// A creation without an answer may take effect after its first deletion.
TEST(MetadataTarget, IndexThatAppearsLaterIsDeleted) {
  std::atomic<int> deletions = 0;
  HttpServer server([&](const HttpServerRequest& request) {
    if (request.method != "DELETE") return testing::CloseWithoutAnswer();
    return ++deletions < 3 ? Answer(404, "{}") : Answer(200, "{}");
  });
  net::OpenSearchClient client(EndpointOf(server), RealEnv());
  Target target(client, RealEnv(), kVersion);
  EXPECT_FALSE(target.Try(Kind::kIndex, Json::object(), {}));
  EXPECT_EQ(deletions, 3);
}

TEST(MetadataTarget, ClusterWithoutAPluginDoesNotKnowItsObjects) {
  HttpServer server([](const HttpServerRequest& request) {
    if (request.target.starts_with("/_plugins")) {
      return Answer(400, R"({"error":"no handler found for uri [/_plugins] and method [GET]"})");
    }
    return Answer(404, "{}");
  });
  net::OpenSearchClient client(EndpointOf(server), RealEnv());
  Target target(client, RealEnv(), kVersion);
  EXPECT_FALSE(target.Knows(Kind::kPolicy).value());
  EXPECT_TRUE(target.Knows(Kind::kIndexTemplate).value());
}

TEST(MetadataTarget, ClusterWithoutAVersionCountsAsCurrent) {
  for (const auto& [status, body] : {std::pair{404, "{}"}, std::pair{200, "{}"}}) {
    HttpServer server([&](const HttpServerRequest&) { return Answer(status, body); });
    net::OpenSearchClient client(EndpointOf(server), RealEnv());
    EXPECT_EQ(VersionOf(client).value().engine, Engine::kOpenSearch);
  }
}

}  // namespace
}  // namespace muster::metadata
