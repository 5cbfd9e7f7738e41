#include "net/tracer.h"

#include <gtest/gtest.h>

#include "support/http_server.h"

namespace muster::net {
namespace {

TraceSpan Task(const std::string& name) {
  return {.name = name,
          .trace = "m-1",
          .itself = name,
          .parent = "m-1",
          .start = WallTime(std::chrono::milliseconds(1'000)),
          .end = WallTime(std::chrono::milliseconds(1'500)),
          .attributes = {{"muster.rank", "2"}}};
}

TEST(Tracer, SpansAreWrittenInOtlpFormat) {
  TraceSpan failed = Task("Extract-2-B");
  failed.error = "Broken: on purpose";
  TraceSpan root = Task("run");
  root.itself = "m-1";
  root.parent = "";
  const Json request = OtlpRequest({failed, root}, "muster run");
  const Json& resource = request["resourceSpans"][0];
  EXPECT_EQ(resource["resource"]["attributes"][0]["key"], "service.name");
  EXPECT_EQ(resource["resource"]["attributes"][0]["value"]["stringValue"], "muster run");
  const Json& spans = resource["scopeSpans"][0]["spans"];
  EXPECT_EQ(spans[0]["traceId"].get<std::string>().size(), 32U);
  EXPECT_EQ(spans[0]["spanId"].get<std::string>().size(), 16U);
  EXPECT_EQ(spans[0]["traceId"], spans[1]["traceId"]);
  EXPECT_EQ(spans[0]["parentSpanId"], spans[1]["spanId"]);
  EXPECT_FALSE(spans[1].contains("parentSpanId"));
  EXPECT_EQ(spans[0]["startTimeUnixNano"], "1000000000");
  EXPECT_EQ(spans[0]["endTimeUnixNano"], "1500000000");
  EXPECT_EQ(spans[0]["attributes"][0]["value"]["stringValue"], "2");
  EXPECT_EQ(spans[0]["status"]["code"], 2);
  EXPECT_FALSE(spans[1].contains("status"));
}

TEST(Tracer, RemainingSpansAreSentAtTheEnd) {
  testing::HttpServer collector(
      [](const testing::HttpServerRequest&) { return testing::Answer(200, "{}"); });
  {
    Tracer tracer("http://127.0.0.1:" + std::to_string(collector.port()), "muster worker");
    for (int i = 0; i < 3; ++i) tracer.Add(Task("item " + std::to_string(i)));
  }
  const auto requests = collector.requests();
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].method, "POST");
  EXPECT_EQ(requests[0].target, "/v1/traces");
  EXPECT_EQ(requests[0].Header("Content-Type"), "application/json");
  const Json body = Json::parse(requests[0].body);
  EXPECT_EQ(body["resourceSpans"][0]["scopeSpans"][0]["spans"].size(), 3U);
}

TEST(Tracer, UnreachableCollectorBlocksNothing) {
  Tracer tracer("http://127.0.0.1:1", "muster run");
  for (int i = 0; i < 10'000; ++i) tracer.Add(Task("task"));
}

TEST(Tracer, WithoutACollectorNothingIsKept) {
  Tracer tracer("", "muster run");
  EXPECT_FALSE(tracer.on());
  tracer.Add(Task("task"));
}

}  // namespace
}  // namespace muster::net
