// The promises of muster/events.h, checked on every log: one test per promise.

#include <gtest/gtest.h>

#include <atomic>
#include <iostream>
#include <map>
#include <thread>

#include "events/event_log_wrapper.h"
#include "muster/events.h"
#include "sql/sqlite.h"
#include "support/postgres_server.h"
#include "support/temporary_folder.h"

namespace muster::events {
namespace {

using namespace std::chrono_literals;

testing::PostgresServer& Server() { return testing::PostgresServer::Shared(); }

// A decorator must not change behaviour.
class WrappedLog final : public EventLogWrapper {
 public:
  explicit WrappedLog(std::unique_ptr<EventLog> log)
      : EventLogWrapper(*log), log_(std::move(log)) {}

 private:
  const std::unique_ptr<EventLog> log_;
};

class EventLogContract : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "postgresql" && !testing::PostgresServer::Unavailable().empty()) {
      GTEST_SKIP() << "no PostgreSQL: " << testing::PostgresServer::Unavailable();
    }
    log_ = Open(16);
  }

  static bool InMemory() { return GetParam() == "memory" || GetParam() == "wrapped"; }

  std::string Url() const {
    if (InMemory()) return "memory:";
    if (GetParam() == "sqlite") return "sqlite:" + folder_.path() + "/events.db";
    return Server().Url() + "?namespace=" + space_;
  }

  std::unique_ptr<EventLog> Open(int slots) const {
    auto log = OpenEventLog(Url(), {.slots = slots}, RealEnv());
    if (!log) throw std::runtime_error(log.error().ToString());
    if (GetParam() == "wrapped") return std::make_unique<WrappedLog>(*std::move(log));
    return *std::move(log);
  }

  int64_t Append(const std::string& stream, int64_t expected, std::vector<NewEvent> events) {
    const StreamAppend append{stream, expected, std::move(events)};
    auto versions = log_->Append({&append, 1});
    if (!versions) throw std::runtime_error(versions.error().ToString());
    return versions->front();
  }

  std::vector<Event> All() {
    std::vector<Event> all;
    for (int64_t after = 0;;) {
      auto page = log_->ReadAll(after, 100);
      if (!page) throw std::runtime_error(page.error().ToString());
      for (Event& event : page->events) all.push_back(std::move(event));
      if (page->read_to == after) return all;
      after = page->read_to;
    }
  }

  testing::TemporaryFolder folder_;
  const std::string space_ = "e" + RealEnv().NewId().substr(0, 12);
  std::unique_ptr<EventLog> log_;
};

TEST_P(EventLogContract, AppendedEventsAreReadByteForByte) {
  const std::vector<NewEvent> events{
      {.type = "Ordered", .payload = R"({"total": 1.0, "x": 1e3})", .metadata = "", .id = "a"},
      {.type = "Paid", .payload = "no JSON: \"ü\" \\", .metadata = R"({"by":"me"})", .id = "b"}};
  EXPECT_EQ(Append("order/1", 0, events), 2);
  auto read = log_->ReadStream("order/1", 0, 10);
  ASSERT_TRUE(read) << read.error().ToString();
  ASSERT_EQ(read->size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const Event& event = (*read)[i];
    EXPECT_EQ(event.stream, "order/1");
    EXPECT_EQ(event.version, static_cast<int64_t>(i) + 1);
    EXPECT_EQ(event.type, events[i].type);
    EXPECT_EQ(event.payload, events[i].payload);
    EXPECT_EQ(event.metadata, events[i].metadata);
    EXPECT_EQ(event.id, events[i].id);
    EXPECT_EQ(event.slot, SlotOf("order/1", 16));
    EXPECT_LT(std::chrono::abs(event.time - RealEnv().WallNow()), 60s);
  }
  EXPECT_LT((*read)[0].position, (*read)[1].position);
}

TEST_P(EventLogContract, EventWithoutAnIdGetsAUniqueOne) {
  Append("s", kAnyVersion, {{"T"}, {"T"}});
  const auto all = All();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].id.size(), 32u);
  EXPECT_NE(all[0].id, all[1].id);
}

TEST_P(EventLogContract, UnexpectedVersionIsAConflictAndAppendsNothing) {
  EXPECT_EQ(Append("s", 0, {{"A"}, {"B"}}), 2);
  EXPECT_EQ(Append("s", 2, {{"C"}}), 3);
  for (const int64_t wrong : {0, 1, 2, 4, 7}) {
    const StreamAppend append{"s", wrong, {{"D"}}};
    auto appended = log_->Append({&append, 1});
    ASSERT_FALSE(appended) << wrong;
    EXPECT_EQ(appended.error().code, Code::kConflict);
    EXPECT_NE(appended.error().message.find("'s' is at version 3, not at"), std::string::npos)
        << appended.error().message;
  }
  EXPECT_EQ(Append("s", kAnyVersion, {{"D"}}), 4);
  EXPECT_EQ(All().size(), 4u);
}

TEST_P(EventLogContract, BatchOverStreamsIsAllOrNothing) {
  Append("old", 0, {{"A"}});
  const std::vector<StreamAppend> good{
      {"old", 1, {{"B"}, {"C"}}}, {"new", 0, {{"D"}}}, {"any", kAnyVersion, {{"E"}, {"F"}}}};
  auto versions = log_->Append(good);
  ASSERT_TRUE(versions) << versions.error().ToString();
  EXPECT_EQ(*versions, (std::vector<int64_t>{3, 1, 2}));
  const std::vector<StreamAppend> bad{{"other", 0, {{"G"}}}, {"old", 1, {{"H"}}}};
  auto refused = log_->Append(bad);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kConflict);
  std::string types;
  for (const Event& event : All()) types += event.type;
  EXPECT_EQ(types, "ABCDEF");
}

TEST_P(EventLogContract, AppendsInTheGivenOrderAcrossStreams) {
  Append("a", 0, {{"0"}});
  const std::vector<StreamAppend> turns{{"b", 0, {{"1"}, {"2"}}},    {"a", kAnyVersion, {{"3"}}},
                                        {"b", 2, {{"4"}}},           {"a", 2, {{"5"}, {"6"}}},
                                        {"b", kAnyVersion, {{"7"}}}, {"a", 4, {{"8"}}}};
  auto versions = log_->Append(turns);
  ASSERT_TRUE(versions) << versions.error().ToString();
  EXPECT_EQ(*versions, (std::vector<int64_t>{2, 2, 3, 4, 4, 5}));
  std::string types;
  std::map<std::string, int64_t> heads;
  for (const Event& event : All()) {
    types += event.type;
    EXPECT_EQ(event.version, ++heads[event.stream]);
  }
  EXPECT_EQ(types, "012345678");
  // The second expects a version that the first did not leave, or that no stream can have.
  for (const auto& [first, second] :
       {std::pair<int64_t, int64_t>{5, 5}, {kAnyVersion, 0}, {5, 7}}) {
    const std::vector<StreamAppend> wrong{
        {"a", first, {{"x"}}}, {"c", 0, {{"x"}}}, {"a", second, {{"x"}}}};
    auto refused = log_->Append(wrong);
    ASSERT_FALSE(refused) << first << " " << second;
    EXPECT_EQ(refused.error().code, Code::kConflict);
    EXPECT_NE(refused.error().message.find("'a' is at version 6, not at"), std::string::npos)
        << refused.error().message;
  }
  EXPECT_EQ(All().size(), 9u);
}

// As many streams as events: comparing each with each would exceed the call timeout.
TEST_P(EventLogContract, AppendsToTheMaximumNumberOfStreams) {
  std::vector<StreamAppend> appends;
  for (int i = 0; i < kMaxEventBatch; ++i) {
    appends.push_back({"s" + std::to_string(i), i % 2 == 0 ? 0 : kAnyVersion, {{"T"}}});
  }
  auto versions = log_->Append(appends);
  ASSERT_TRUE(versions) << versions.error().ToString();
  EXPECT_EQ(*versions, std::vector<int64_t>(kMaxEventBatch, 1));
  auto page = log_->ReadAll(0, kMaxEventBatch);
  ASSERT_TRUE(page) << page.error().ToString();
  ASSERT_EQ(page->events.size(), static_cast<size_t>(kMaxEventBatch));
  for (size_t i = 0; i < page->events.size(); ++i) {
    ASSERT_EQ(page->events[i].stream, appends[i].stream);
  }
}

TEST_P(EventLogContract, ReadStreamReturnsPagesAfterAVersion) {
  Append("s", 0, {{"A"}, {"B"}, {"C"}, {"D"}});
  Append("t", 0, {{"X"}});
  auto page = log_->ReadStream("s", 1, 2);
  ASSERT_TRUE(page);
  ASSERT_EQ(page->size(), 2u);
  EXPECT_EQ((*page)[0].type, "B");
  EXPECT_EQ((*page)[1].type, "C");
  EXPECT_TRUE(log_->ReadStream("s", 4, 2)->empty());
  EXPECT_TRUE(log_->ReadStream("unknown", 0, 2)->empty());
}

TEST_P(EventLogContract, SlotsAreReadEachFromItsOwnPositionInGlobalOrder) {
  std::vector<StreamAppend> appends;
  for (int i = 0; i < 300; ++i) {
    appends.push_back({"stream-" + std::to_string(i), 0, {{"A"}, {"B"}}});
  }
  ASSERT_TRUE(log_->Append(appends));
  const auto all = All();
  ASSERT_EQ(all.size(), 600u);
  std::vector<SlotPosition> from{{3, 0}, {7, all[200].position}, {11, all[450].position}};
  std::vector<Event> expected;
  for (const Event& event : all) {
    for (const SlotPosition& slot : from) {
      if (event.slot == slot.slot && event.position > slot.position) expected.push_back(event);
    }
  }
  std::vector<Event> got;
  for (int pages = 0; pages < 1000; ++pages) {
    auto page = log_->Read(from, 7);
    ASSERT_TRUE(page) << page.error().ToString();
    EXPECT_LE(page->events.size(), 7u);
    for (Event& event : page->events) got.push_back(std::move(event));
    bool moved = false;
    for (SlotPosition& slot : from) {
      if (slot.position >= page->read_to) continue;
      slot.position = page->read_to;
      moved = true;
    }
    if (!moved) break;
  }
  EXPECT_EQ(got, expected);
}

// A page stays within its byte limit, except for its last event, and reading on misses none.
TEST_P(EventLogContract, ReadsAreBoundedInBytes) {
  log_ = *OpenEventLog(Url(), {.slots = 16, .read_bytes = 1000}, RealEnv());
  std::vector<StreamAppend> appends;
  for (int i = 0; i < 60; ++i) {
    // Mostly small ones, then large ones, one of them larger than a page.
    const size_t bytes = i == 40 ? 5'000 : i > 20 ? 300 : 5;
    NewEvent event{"T", std::string(bytes, 'x'), std::string(bytes, 'y')};
    appends.push_back({"s" + std::to_string(i % 7), kAnyVersion, {std::move(event)}});
  }
  ASSERT_TRUE(log_->Append(appends));
  const auto check = [&](const std::vector<Event>& events) {
    size_t before = 0;
    for (size_t i = 0; i + 1 < events.size(); ++i) {
      before += events[i].payload.size() + events[i].metadata.size();
    }
    EXPECT_LT(before, 1000u);
  };
  std::vector<Event> read;
  for (int64_t after = 0;;) {
    auto page = log_->ReadAll(after, 50);
    ASSERT_TRUE(page) << page.error().ToString();
    check(page->events);
    for (Event& event : page->events) read.push_back(std::move(event));
    if (page->read_to == after) break;
    after = page->read_to;
  }
  ASSERT_EQ(read.size(), appends.size());
  for (size_t i = 0; i < read.size(); ++i) {
    EXPECT_EQ(read[i].stream, appends[i].stream);
    EXPECT_EQ(read[i].payload, appends[i].events.front().payload);
  }

  std::vector<SlotPosition> from;
  for (int slot = 0; slot < 16; slot += 2) from.push_back({slot, 0});
  std::vector<Event> expected;
  for (const Event& event : read) {
    if (event.slot % 2 == 0) expected.push_back(event);
  }
  std::vector<Event> followed;
  for (bool moved = true; moved;) {
    auto page = log_->Read(from, 50);
    ASSERT_TRUE(page) << page.error().ToString();
    check(page->events);
    for (Event& event : page->events) followed.push_back(std::move(event));
    moved = page->read_to > from.front().position;
    for (SlotPosition& slot : from) slot.position = page->read_to;
  }
  EXPECT_EQ(followed, expected);

  int64_t version = 0;
  for (;;) {
    auto events = log_->ReadStream("s5", version, 50);
    ASSERT_TRUE(events) << events.error().ToString();
    if (events->empty()) break;
    check(*events);
    for (const Event& event : *events) EXPECT_EQ(event.version, ++version);
  }
  EXPECT_EQ(version, 8);
}

TEST_P(EventLogContract, LastIsThePositionOfTheLastEvent) {
  EXPECT_EQ(*log_->Last(), 0);
  Append("a", 0, {{"A"}, {"B"}});
  Append("b", 0, {{"A"}});
  EXPECT_EQ(*log_->Last(), All().back().position);
}

TEST_P(EventLogContract, MarksDistinguishEventsAtTheSamePosition) {
  const auto marks_at = [&](std::vector<int64_t> positions) {
    auto marks = log_->MarksAt(positions);
    if (!marks) throw std::runtime_error(marks.error().ToString());
    return *marks;
  };
  EXPECT_EQ(marks_at({0, 5}), (std::vector<EventMark>{{}, {}}));
  Append("a", 0, {{.type = "A", .id = "one"}, {.type = "B", .id = "two"}});
  Append("b", 0, {{.type = "A", .id = "three"}});
  const auto all = All();
  const int64_t last = all.back().position;
  EXPECT_EQ(marks_at({last + 100, all[1].position, all[0].position - 1}),
            (std::vector<EventMark>{MarkOf(all[2]), MarkOf(all[1]), {}}));
  Event other = all[2];
  other.id = "four";
  EXPECT_NE(MarkOf(other), MarkOf(all[2]));
  EXPECT_TRUE(log_->KeepsEvents());
}

TEST_P(EventLogContract, APageNamesTheEventThatTheLogHasWhereItEnds) {
  Append("a", 0, {{"A"}, {"B"}});
  Append("b", 0, {{"A"}});
  const auto all = All();
  EXPECT_EQ(log_->ReadAll(0, 1)->end, MarkOf(all[0]));
  EXPECT_EQ(log_->ReadAll(0, 100)->end, MarkOf(all[2]));
  const SlotPosition of_a{SlotOf("a", 16), 0};
  const SlotPosition of_none{(SlotOf("a", 16) + 1) % 16, 0};
  EXPECT_EQ(log_->Read({&of_a, 1}, 1)->end, MarkOf(all[0]));
  for (const SlotPosition& from : {of_a, of_none}) {
    const auto page = log_->Read({&from, 1}, 100);
    ASSERT_TRUE(page) << page.error().ToString();
    EXPECT_EQ(page->end, log_->MarksAt({&page->read_to, 1})->front());
    EXPECT_NE(page->end.position, 0);
  }
}

TEST_P(EventLogContract, LagCountsWhatLiesBeyondAPosition) {
  const int slot = SlotOf("s", 16);
  Append("s", 0, {{"A"}, {"B"}, {"C"}});
  const auto all = All();
  const std::vector<SlotPosition> from{
      {slot, all[0].position}, {(slot + 1) % 16, 0}, {slot, all[2].position}};
  auto lag = log_->Lag(from);
  ASSERT_TRUE(lag) << lag.error().ToString();
  ASSERT_EQ(lag->size(), 3u);
  EXPECT_EQ((*lag)[0].events, 2);
  EXPECT_EQ((*lag)[0].oldest, all[1].time);
  EXPECT_EQ((*lag)[1].events, 0);
  EXPECT_FALSE((*lag)[1].oldest);
  EXPECT_EQ((*lag)[2].events, 0);
}

// The cost is about the same however far behind a reader is.
TEST_P(EventLogContract, LargeLagIsEstimated) {
  std::vector<StreamAppend> appends;
  for (int s = 0; s < 1'000; ++s) {
    appends.push_back(
        {"s" + std::to_string(s), kAnyVersion, std::vector<NewEvent>(10, NewEvent{"T"})});
  }
  for (int times = 0; times < 2; ++times) ASSERT_TRUE(log_->Append(appends));
  std::vector<SlotPosition> from;
  for (int slot = 0; slot < 16; ++slot) from.push_back({slot, 0});
  auto lags = log_->Lag(from);
  ASSERT_TRUE(lags) << lags.error().ToString();
  int64_t behind = 0;
  bool estimated = false;
  for (const SlotLag& lag : *lags) {
    behind += lag.events;
    estimated |= lag.estimated;
    EXPECT_TRUE(lag.oldest);
  }
  EXPECT_GT(behind, 15'000);
  EXPECT_LT(behind, 25'000);
  EXPECT_EQ(estimated, !InMemory());
  // Near the end it is exact.
  const auto half = log_->ReadAll(0, kMaxEventBatch)->events.back().position;
  const auto last = log_->ReadAll(half, 9'500)->events.back().position;
  for (SlotPosition& slot : from) slot.position = last;
  lags = log_->Lag(from);
  ASSERT_TRUE(lags);
  behind = 0;
  for (const SlotLag& lag : *lags) behind += lag.events;
  EXPECT_EQ(behind, 500);
}

TEST_P(EventLogContract, AppendBeyondTheLimitsChangesNothing) {
  const StreamAppend many{"s", 0, std::vector<NewEvent>(kMaxEventBatch + 1, NewEvent{"T"})};
  EXPECT_EQ(log_->Append({&many, 1}).error().code, Code::kInvalid);
  EXPECT_EQ(log_->ReadAll(-1, 1).error().code, Code::kInvalid);
  EXPECT_EQ(log_->ReadAll(0, 0).error().code, Code::kInvalid);
  const SlotPosition outside{16, 0};
  EXPECT_EQ(log_->Read({&outside, 1}, 1).error().code, Code::kInvalid);
  EXPECT_TRUE(All().empty());
}

TEST_P(EventLogContract, ReopenedLogHasItsEventsAndSlots) {
  Append("s", 0, {{"A"}});
  log_ = Open(0);
  if (InMemory()) {  // gone with its opener, as documented
    EXPECT_TRUE(All().empty());
    return;
  }
  EXPECT_EQ(log_->slots(), 16);
  EXPECT_EQ(All().size(), 1u);
  auto other = OpenEventLog(Url(), {.slots = 32}, RealEnv());
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Code::kIncompatible);
}

TEST_P(EventLogContract, NewerTablesAreRefused) {
  if (InMemory()) return;
  if (GetParam() == "sqlite") {
    auto db =
        sql::SqliteDb::Open(folder_.path() + "/events.db", sql::SqliteDb::Mode::kExisting, 1s);
    ASSERT_TRUE(db && (*db)->Execute("UPDATE muster_event_log_schema SET version = 99"));
  } else {
    Server().Exec("INSERT INTO " + space_ + ".event_log_version VALUES (99)");
  }
  const auto log = OpenEventLog(Url(), {}, RealEnv());
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().code, Code::kIncompatible);
  EXPECT_NE(log.error().message.find("the event log"), std::string::npos) << log.error().message;
  EXPECT_NE(log.error().message.find("99"), std::string::npos) << log.error().message;
}

TEST_P(EventLogContract, UnversionedTablesAreRead) {
  if (InMemory()) return;
  Append("a", 0, {{"A"}});
  if (GetParam() == "sqlite") {
    auto db =
        sql::SqliteDb::Open(folder_.path() + "/events.db", sql::SqliteDb::Mode::kExisting, 1s);
    ASSERT_TRUE(db && (*db)->Execute("DROP TABLE muster_event_log_schema"));
  } else {
    Server().Exec("DROP TABLE " + space_ + ".event_log_version");
  }
  log_ = Open(16);
  EXPECT_EQ(All().size(), 1U);
  Append("a", 1, {{"B"}});
}

TEST_P(EventLogContract, WaitEndsWhenSomethingIsAppended) {
  std::jthread appender([&] {
    RealEnv().Sleep(30ms, {});
    Append("s", 0, {{"A"}});
  });
  const MonoTime begin = RealEnv().MonoNow();
  while (log_->ReadAll(0, 1)->events.empty()) log_->Wait(30s, {});
  EXPECT_LT(RealEnv().MonoNow() - begin, 20s);
}

// The core promise: a reader following the log while many writers append, conflict and roll back
// sees every event once, in order, and each stream's in version order.
TEST_P(EventLogContract, FollowerMissesNothingDuringConcurrentAppends) {
  constexpr int kWriters = 8;
  constexpr int kAppends = 60;
  std::atomic<int> writing = kWriters;
  std::vector<std::jthread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer] {
      for (int i = 0; i < kAppends; ++i) {
        // Few streams: most appends conflict, fail after drawing a position, and retry.
        const std::vector<StreamAppend> appends{
            {"hot-" + std::to_string(i % 3), kAnyVersion, {{"T"}, {"T"}}},
            {"own-" + std::to_string(writer), kAnyVersion, {{"T"}}}};
        for (;;) {
          auto appended = log_->Append(appends);
          if (appended) break;
          if (appended.error().code != Code::kConflict) {
            ADD_FAILURE() << appended.error().ToString();
            break;
          }
        }
      }
      --writing;
    });
  }
  std::vector<SlotPosition> from;
  for (int slot = 0; slot < 16; ++slot) from.push_back({slot, 0});
  std::vector<Event> followed;
  for (bool last = false; !last;) {
    last = writing == 0;
    for (;;) {
      auto page = log_->Read(from, 50);
      ASSERT_TRUE(page) << page.error().ToString();
      for (Event& event : page->events) followed.push_back(std::move(event));
      const bool moved = page->read_to > from.front().position;
      for (SlotPosition& slot : from) slot.position = std::max(slot.position, page->read_to);
      if (!moved) break;
    }
  }
  EXPECT_EQ(followed.size(), static_cast<size_t>(kWriters * kAppends * 3));
  EXPECT_EQ(followed, All());
  std::map<std::string, int64_t> versions;
  for (const Event& event : followed) EXPECT_EQ(event.version, ++versions[event.stream]);
}

// A deadlock: the server aborts one of them, which has appended nothing.
TEST_P(EventLogContract, AppendsToTheSameStreamsInDifferentOrdersSucceed) {
  constexpr int kWriters = 4;
  constexpr int kAppends = 5;
  const std::vector<NewEvent> many(400, NewEvent{"T"});
  std::vector<std::jthread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer] {
      std::vector<StreamAppend> appends{{"a", kAnyVersion, many}, {"b", kAnyVersion, many}};
      if (writer % 2 == 1) std::swap(appends[0], appends[1]);
      for (int i = 0; i < kAppends; ++i) {
        auto appended = log_->Append(appends);
        EXPECT_TRUE(appended) << appended.error().ToString();
      }
    });
  }
  writers.clear();
  EXPECT_EQ(All().size(), kWriters * kAppends * 2 * many.size());
}

INSTANTIATE_TEST_SUITE_P(Logs, EventLogContract,
                         ::testing::Values("memory", "wrapped", "sqlite", "postgresql"),
                         [](const auto& backend) { return backend.param; });

}  // namespace
}  // namespace muster::events
