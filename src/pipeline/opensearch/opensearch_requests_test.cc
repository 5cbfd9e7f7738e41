#include "pipeline/opensearch/opensearch_requests.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>

#include "core/interrupt.h"
#include "support/hasty_env.h"
#include "support/http_server.h"

namespace muster::pipeline {
namespace {

using namespace std::chrono_literals;
using testing::Answer;
using testing::HttpServer;
using testing::HttpServerRequest;

net::OpenSearchClient ClientOf(const HttpServer& server, Env& env) {
  return {net::OpenSearchEndpoint{.base_url = "http://127.0.0.1:" + std::to_string(server.port())},
          env};
}

// A request to which no stop token is passed, as when shards are listed.
TEST(OpenSearchRequests, AnInterruptEndsTheWaitForABusyCluster) {
  std::stop_source stop;
  const HttpServer server([&](const HttpServerRequest&) {
    stop.request_stop();
    return Answer(429, "{}", {{"Retry-After", "30"}});
  });
  net::OpenSearchClient client = ClientOf(server, RealEnv());
  const InterruptScope scope(stop.get_token());
  const MonoTime before = RealEnv().MonoNow();
  const auto answer = AskForJson(client, RealEnv(), {.path = "/"});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::kCancelled) << answer.error().ToString();
  EXPECT_LT(RealEnv().MonoNow() - before, 2s);
}

TEST(OpenSearchRequests, AWaitIsOneMinuteAtMostWhateverTheServerWants) {
  std::atomic<int> requests = 0;
  const HttpServer server([&](const HttpServerRequest&) {
    return ++requests < 3 ? Answer(429, "{}", {{"Retry-After", "86400"}}) : Answer(200, "{}");
  });
  testing::HastyEnv env;
  net::OpenSearchClient client = ClientOf(server, env);
  ASSERT_TRUE(AskForJson(client, env, {.path = "/"}));
  const auto waited = std::accumulate(env.pauses.begin(), env.pauses.end(), 0ns);
  EXPECT_GE(waited, 2min);
  EXPECT_LT(waited, 3min);
}

// Where nothing else does: `verify`, or listing before a migration.
TEST(OpenSearchRequests, AWaitThatLastsIsSaidOnceWithItsReason) {
  std::atomic<int> requests = 0;
  std::atomic<int> refused = 0;
  const HttpServer server([&](const HttpServerRequest&) {
    return ++requests <= refused ? Answer(429, R"({"error":{"type":"circuit_breaking_exception",)"
                                               R"("reason":"Data too large"}})")
                                 : Answer(200, "{}");
  });
  testing::HastyEnv env;
  net::OpenSearchClient client = ClientOf(server, env);
  for (const int tries : {2, 6}) {
    requests = 0;
    refused = tries;
    ::testing::internal::CaptureStderr();
    const auto answer = AskForJson(client, env, {.path = "/books/_count"});
    const std::string said = ::testing::internal::GetCapturedStderr();
    ASSERT_TRUE(answer) << answer.error().ToString();
    const size_t found = said.find("waiting for a search cluster");
    EXPECT_EQ(found == std::string::npos, tries < 3) << said;
    if (found == std::string::npos) continue;
    EXPECT_EQ(said.find("waiting for a search cluster", found + 1), std::string::npos) << said;
    EXPECT_NE(said.find("GET /books/_count"), std::string::npos) << said;
    EXPECT_NE(said.find("Data too large"), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace muster::pipeline
