// Goal: the wrapper forwards every call, including those added later to the interface with a
// default of their own. Method: the wrapped log returns nothing that is a default.

#include "events/event_log_wrapper.h"

#include <gtest/gtest.h>

namespace muster::events {
namespace {

class LoudLog final : public EventLog {
 public:
  int slots() const override { return 7; }
  Result<std::vector<int64_t>> Append(std::span<const StreamAppend> appends) override {
    return std::vector<int64_t>(appends.size(), 11);
  }
  Result<std::vector<Event>> ReadStream(std::string_view stream, int64_t after,
                                        int limit) override {
    Event event;
    event.stream = std::string(stream);
    event.position = after;
    event.version = limit;
    return std::vector{event};
  }
  Result<EventPage> ReadAll(int64_t after, int limit) override {
    return EventPage{.read_to = after + limit};
  }
  Result<EventPage> Read(std::span<const SlotPosition> from, int limit) override {
    return EventPage{.read_to = from.front().position * limit};
  }
  Result<int64_t> Last() override { return 13; }
  Result<std::vector<EventMark>> MarksAt(std::span<const int64_t> positions) override {
    return std::vector{EventMark{positions.front(), 17}};
  }
  bool KeepsEvents() const override { return false; }
  Result<std::vector<SlotLag>> Lag(std::span<const SlotPosition> from) override {
    return std::vector{SlotLag{.slot = from.front().slot, .events = 19}};
  }
  void Wait(std::chrono::milliseconds timeout, std::stop_token stop) override {
    waited = timeout;
    stopped = stop.stop_requested();
  }

  std::chrono::milliseconds waited{0};
  bool stopped = false;
};

TEST(EventLogWrapper, ForwardsEveryCall) {
  LoudLog loud;
  EventLogWrapper wrapper(loud);
  EventLog& log = wrapper;
  EXPECT_EQ(log.slots(), 7);
  EXPECT_EQ(*log.Append(std::vector<StreamAppend>(2)), (std::vector<int64_t>{11, 11}));
  const Event read = log.ReadStream("s", 3, 5)->at(0);
  EXPECT_EQ(read.stream, "s");
  EXPECT_EQ(read.position, 3);
  EXPECT_EQ(read.version, 5);
  EXPECT_EQ(log.ReadAll(3, 5)->read_to, 8);
  const SlotPosition from{.slot = 2, .position = 4};
  EXPECT_EQ(log.Read({&from, 1}, 5)->read_to, 20);
  EXPECT_EQ(*log.Last(), 13);
  const int64_t position = 9;
  EXPECT_EQ(log.MarksAt({&position, 1})->at(0), (EventMark{9, 17}));
  EXPECT_FALSE(log.KeepsEvents());
  EXPECT_EQ(log.Lag({&from, 1})->at(0).events, 19);
  std::stop_source stop;
  stop.request_stop();
  log.Wait(std::chrono::milliseconds(23), stop.get_token());
  EXPECT_EQ(loud.waited, std::chrono::milliseconds(23));
  EXPECT_TRUE(loud.stopped);
}

}  // namespace
}  // namespace muster::events
