#include "cli/metered_events.h"

#include <gtest/gtest.h>

#include "core/json.h"
#include "support/http_server.h"

namespace muster::cli {
namespace {

using Kind = replica::ReplicaEvent::Kind;

replica::ReplicaEvent Of(Kind kind, int64_t generation) {
  return {.kind = kind, .worker = "w", .generation = generation};
}

TEST(MeteredEvents, StagesOfAWorkerAreSpansOfTheSetsTrace) {
  testing::HttpServer collector(
      [](const testing::HttpServerRequest&) { return testing::Answer(200, "{}"); });
  Metrics metrics;
  {
    net::Tracer tracer("http://127.0.0.1:" + std::to_string(collector.port()),
                       "muster replica run");
    MeteredEvents metered("orders", metrics, tracer, RealEnv());
    metered.Take(Of(Kind::kRegistered, 0));
    metered.Take(Of(Kind::kReady, 1));
    metered.Take(Of(Kind::kRunning, 1));
    replica::ReplicaEvent parked = Of(Kind::kParked, 1);
    parked.projection = "totals";
    parked.error = "no such column";
    metered.Take(parked);
    replica::ReplicaEvent reconfigured = Of(Kind::kReconfigured, 1);
    reconfigured.pauses = {{0, std::chrono::milliseconds(100)}};
    metered.Take(reconfigured);
    metered.Take(Of(Kind::kStopped, 1));
  }
  std::vector<std::string> names;
  std::vector<std::string> errors;
  for (const auto& request : collector.requests()) {
    const Json body = Json::parse(request.body);
    for (const Json& span : body["resourceSpans"][0]["scopeSpans"][0]["spans"]) {
      names.push_back(span["name"]);
      if (span.contains("status")) errors.push_back(span["status"]["message"]);
    }
  }
  EXPECT_EQ(names, (std::vector<std::string>{"registered", "barrier 1", "parked", "generation 1"}));
  EXPECT_EQ(errors, std::vector<std::string>{"no such column"});
  const std::string text = metrics.Text();
  EXPECT_NE(text.find("muster_replica_barrier_seconds_count 1"), std::string::npos) << text;
  EXPECT_NE(text.find("muster_replica_pause_seconds_count 1"), std::string::npos) << text;
  EXPECT_NE(text.find("muster_replica_events_total{kind=\"parked\"} 1"), std::string::npos) << text;
}

}  // namespace
}  // namespace muster::cli
