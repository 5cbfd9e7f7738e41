#include "events/event_json.h"

#include <gtest/gtest.h>

namespace muster::events {
namespace {

TEST(EventToJson, KeepsAPayloadThatIsJsonByteForByte) {
  const Event event{.position = 7,
                    .stream = "order-\"1\"",
                    .version = 2,
                    .slot = 3,
                    .id = "x",
                    .type = "Paid",
                    .payload = R"({"total": 1.0, "big": 123456789012345678901234567890})",
                    .metadata = "not\nJSON",
                    .time = WallTime(std::chrono::milliseconds(5))};
  EXPECT_EQ(EventToJson(event),
            R"({"position":7,"stream":"order-\"1\"","version":2,"type":"Paid","id":"x",)"
            R"("time_ms":5,"payload":{"total": 1.0, "big": 123456789012345678901234567890},)"
            R"("metadata_text":"not\nJSON"})");
}

TEST(AppendFromJson, KeepsPayloadsVerbatim) {
  auto append = AppendFromJson(
      R"({"stream":"s","type":"T","payload": {"a": 1.0, "b": 1e3} ,"expected":4,"id":"i"})", "in");
  ASSERT_TRUE(append) << append.error().ToString();
  EXPECT_EQ(append->stream, "s");
  EXPECT_EQ(append->expected, 4);
  EXPECT_EQ(append->events[0].payload, R"({"a": 1.0, "b": 1e3})");
  EXPECT_EQ(append->events[0].metadata, "{}");
  EXPECT_EQ(append->events[0].id, "i");
}

TEST(EventToJson, NumbersBeyondADoubleAreJson) {
  Event event;
  event.payload = R"({"n":1e400})";
  EXPECT_NE(EventToJson(event).find(R"("payload":{"n":1e400})"), std::string::npos);
}

TEST(AppendFromJson, AcceptsOutputOfEventToJson) {
  for (const std::string payload :
       {R"({"a": 1.0})", "not\nJSON", "", "\"text\"", "[ 1e3 ]", "null", R"({"n": 1e400})",
        "123456789012345678901234567890", "7", R"({"a":1,"a":2})"}) {
    const Event event{.position = 7,
                      .stream = "s\n",
                      .version = 3,
                      .slot = 1,
                      .id = "i",
                      .type = "T",
                      .payload = payload,
                      .metadata = payload,
                      .time = WallTime(std::chrono::milliseconds(5))};
    auto append = AppendFromJson(EventToJson(event), "in");
    ASSERT_TRUE(append) << append.error().ToString();
    EXPECT_EQ(append->stream, event.stream);
    EXPECT_EQ(append->expected, 2);
    ASSERT_EQ(append->events.size(), 1u);
    EXPECT_EQ(append->events[0].id, event.id);
    EXPECT_EQ(append->events[0].type, event.type);
    EXPECT_EQ(append->events[0].payload, payload);
    EXPECT_EQ(append->events[0].metadata, payload);
  }
}

TEST(AppendFromJson, ErrorsHaveReasonAndPosition) {
  for (const char* line :
       {"[]", "{}", R"({"stream":"s"})", R"({"stream":"","type":"T"})",
        R"({"stream":"s","type":"T","more":1})", R"({"stream")",
        R"({"stream":"s","type":"T","expected":"x"})", R"({"stream":"s","type":"T","version":0})",
        R"({"stream":"s","type":"T","version":3,"expected":3})",
        R"({"stream":"s","type":"T","id":5})", R"({"stream":"s","type":"T","payload_text":1})",
        R"({"stream":"s","type":"T","payload":1,"payload_text":"1"})",
        R"({"stream":"s","type":"T","p\u0061yload":1})", R"({"stream":"s","type":"T","payload":})",
        R"({"stream":"s","type":"T","payload":[1e400,]})",
        R"({"stream":"s","type":"T","payload":1,"payload":2})"}) {
    auto append = AppendFromJson(line, "events.ndjson:3");
    ASSERT_FALSE(append) << line;
    EXPECT_EQ(append.error().code, Code::kInvalid);
    EXPECT_TRUE(append.error().message.starts_with("events.ndjson:3")) << append.error().message;
  }
}

}  // namespace
}  // namespace muster::events
