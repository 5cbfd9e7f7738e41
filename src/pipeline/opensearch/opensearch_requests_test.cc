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

}  // namespace
}  // namespace muster::pipeline
