// How a follower splits the log into batches: bounded in time and bytes, stoppable, and small
// around a failing event.

#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "core/guard.h"
#include "core/log.h"
#include "core/virtual_env.h"
#include "replica/follower.h"
#include "replica/memory_read_model.h"

namespace muster::replica {
namespace {

using namespace std::chrono_literals;

const bool kQuiet = (SetLogging(Level::kOff, LogFormat::kText), true);
const Instance kInstance{"set", "p", 1};

// Notes which transactions end when idle, and which wait for each other.
class LockingReadModel final : public MemoryReadModel {
 public:
  Result<std::unique_ptr<Transaction>> Begin() override {
    limited = serialized = false;
    return MemoryReadModel::Begin();
  }
  void LimitIdle(Transaction&, milliseconds) override { limited = true; }
  Status Serialize(Transaction&, const Instance&) override {
    serialized = true;
    return {};
  }
  bool IsDeadlock(const Error& error) const override { return error.message == "deadlock"; }

  bool limited = false;  // the last one begun
  bool serialized = false;
};

class FollowerBatches : public ::testing::Test {
 protected:
  using HandleOne = std::function<Status(const events::Event&)>;

  // Handles events one by one, and reports how far it got.
  class Dispatch final : public Processor {
   public:
    Dispatch(FollowerBatches& test, bool in_parts) : test_(test), in_parts_(in_parts) {}
    Status Handle(std::span<const events::Event> events, Transaction& transaction) override {
      test_.batches_.push_back(events.size());
      for (const events::Event& event : events) MUSTER_TRY(One(event, transaction));
      return {};
    }
    Result<size_t> HandleSome(std::span<const events::Event> events, Transaction& transaction,
                              Turn& turn) override {
      if (!in_parts_) return Processor::HandleSome(events, transaction, turn);
      for (size_t i = 0; i < events.size(); ++i) {
        const Status handled = One(events[i], transaction);
        if (!handled && i == 0) return handled.error();
        if (!handled) return i;
        if (turn.Over()) return i + 1;
      }
      return events.size();
    }

   private:
    Status One(const events::Event& event, Transaction& transaction) {
      ++test_.calls_[event.position];
      if (test_.handle_) MUSTER_TRY(test_.handle_(event));
      return transaction.Execute("handled", {std::to_string(event.position)});
    }
    FollowerBatches& test_;
    const bool in_parts_;
  };

  void SetUp() override {
    auto log = events::OpenEventLog("memory:", {.slots = 4}, env_);
    ASSERT_TRUE(log);
    log_ = *std::move(log);
  }

  void Append(int count, const std::string& payload = "{}") {
    for (int i = 0; i < count; ++i) {
      const events::StreamAppend one{
          "stream-" + std::to_string(i % 10), events::kAnyVersion, {{"Happened", payload}}};
      ASSERT_TRUE(log_->Append({&one, 1}));
    }
  }

  std::unique_ptr<Follower> Follow(bool in_parts = false) {
    const auto build = [this, in_parts](bool) -> Result<std::unique_ptr<Processor>> {
      return std::make_unique<Dispatch>(*this, in_parts);
    };
    auto follower =
        std::make_unique<Follower>(*log_, model_, env_, kInstance, true, build, FollowerOptions{});
    EXPECT_TRUE(follower->Own({0, 1, 2, 3}, 1, false));
    return follower;
  }

  void AppendTo(const std::string& stream, int count, const std::string& payload = "{}") {
    const events::StreamAppend append{stream, events::kAnyVersion,
                                      std::vector<events::NewEvent>(count, {"Happened", payload})};
    ASSERT_TRUE(log_->Append({&append, 1}));
  }

  // A stream all of whose events wait for a replay, which is requested.
  void AppendForReplay(Follower& follower, int count, const std::string& payload = "{}") {
    AppendTo("parked", count, payload);
    handle_ = [](const events::Event&) -> Status { return Error{Code::kInternal, "bad"}; };
    RunOut(follower);
    ASSERT_EQ(ParkedStreams(), 1u);
    handle_ = {};
    calls_.clear();
    batches_.clear();
    ASSERT_EQ(*model_.RequestReplay(kInstance, ""), 1);
    env_.Sleep(2s, {});
  }

  void ExpectHandledOnceInOrder(int count) const {
    const auto statements = model_.Statements();
    ASSERT_EQ(std::ssize(statements), count);
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(*statements[static_cast<size_t>(i)].params[0], std::to_string(i + 1));
    }
  }

  // Until nothing is left, through all failures.
  void RunOut(Follower& follower) {
    for (int steps = 0; steps < 10'000; ++steps) {
      const auto outcome = follower.Step({});
      if (outcome && *outcome == Follower::Outcome::kIdle) return;
      if (!outcome) env_.Sleep(100ms, {});
    }
    FAIL() << "it never ends";
  }

  size_t ParkedStreams() { return model_.Parked(kInstance, std::vector{0, 1, 2, 3})->size(); }
  size_t Handled() const { return model_.Statements().size(); }

  VirtualEnv env_;
  std::unique_ptr<events::EventLog> log_;
  LockingReadModel model_;
  HandleOne handle_;
  std::map<int64_t, int> calls_;  // by position
  std::vector<size_t> batches_;
};

TEST_F(FollowerBatches, TakeAboutASecondWithASlowProcessor) {
  Append(1'000);
  milliseconds cost = 25ms;
  handle_ = [&](const events::Event&) -> Status {
    env_.Sleep(cost, {});
    return {};
  };
  const auto follower = Follow();
  milliseconds longest{0};
  while (Handled() < 1'000) {
    // Once its speed is known.
    const MonoTime began = env_.MonoNow();
    ASSERT_TRUE(follower->Step({}));
    longest = std::max(longest, std::chrono::ceil<milliseconds>(env_.MonoNow() - began));
  }
  EXPECT_LE(longest, 1'100ms);
  EXPECT_LE(batches_.size(), 60u);
}

TEST_F(FollowerBatches, AreLargeWithAFastProcessor) {
  Append(10'000);
  const auto follower = Follow();
  RunOut(*follower);
  EXPECT_EQ(Handled(), 10'000u);
  EXPECT_EQ(*std::max_element(batches_.begin(), batches_.end()), 1'000u);
  EXPECT_LE(batches_.size(), 20u);
}

TEST_F(FollowerBatches, EndEarlyOnAStopAndKeepHandledEvents) {
  Append(30);
  std::stop_source stop;
  handle_ = [&](const events::Event& event) -> Status {
    if (event.position == 7) stop.request_stop();
    return {};
  };
  const auto follower = Follow(true);
  ASSERT_TRUE(follower->Step(stop.get_token()));
  EXPECT_EQ(Handled(), 7u);
  RunOut(*follower);
  EXPECT_EQ(Handled(), 30u);
  for (const auto& [position, calls] : calls_) EXPECT_EQ(calls, 1) << position;
}

TEST_F(FollowerBatches, KeepEventsHandledBeforeABadOne) {
  Append(1'000);
  handle_ = [](const events::Event& event) -> Status {
    if (event.position == 944) return Error{Code::kInternal, "bad"};
    return {};
  };
  const auto follower = Follow(true);
  RunOut(*follower);
  EXPECT_EQ(ParkedStreams(), 1u);
  calls_.erase(944);
  // Later events of its stream wait.
  const size_t handled = Handled();
  EXPECT_EQ(handled, 1'000u - 6u);
  int calls = 0;
  for (const auto& [position, count] : calls_) calls += count;
  EXPECT_EQ(calls, static_cast<int>(handled));
}

TEST_F(FollowerBatches, WithABadEventAreRetriedAFewTimes) {
  Append(1'000);
  handle_ = [](const events::Event& event) -> Status {
    if (event.position == 944) return Error{Code::kInternal, "bad"};
    return {};
  };
  const auto follower = Follow();
  RunOut(*follower);
  EXPECT_EQ(ParkedStreams(), 1u);
  int calls = 0;
  for (const auto& [position, count] : calls_) calls += count;
  EXPECT_LE(calls, 2'000);
}

TEST_F(FollowerBatches, AreRetriedAsLongAsTheDatabaseFails) {
  Append(100);
  int failures = 60;
  handle_ = [&](const events::Event& event) -> Status {
    if (event.position != 50 || failures-- <= 0) return {};
    const Code codes[] = {Code::kUnavailable, Code::kUnknownOutcome, Code::kReadOnly, Code::kFull};
    return Error{codes[failures % 4], "canceling statement due to statement timeout"};
  };
  const auto follower = Follow();
  RunOut(*follower);
  EXPECT_LE(failures, 0);
  EXPECT_EQ(ParkedStreams(), 0u);
  EXPECT_EQ(Handled(), 100u);
}

TEST_F(FollowerBatches, SurviveAnyException) {
  Append(100);
  int lacks = 3;
  handle_ = [&](const events::Event& event) -> Status {
    if (event.position == 20) throw 42;
    if (event.position == 33 && lacks-- > 0) throw std::bad_alloc();
    return {};
  };
  const auto follower = Follow();
  RunOut(*follower);
  EXPECT_EQ(ParkedStreams(), 1u);
  EXPECT_EQ(Handled(), 100u - 9u);
}

TEST_F(FollowerBatches, AreLimitedInBytes) {
  Append(60, std::string(1024 * 1024, 'x'));
  handle_ = [](const events::Event&) { return Status(); };
  const auto follower = Follow();
  RunOut(*follower);
  EXPECT_EQ(Handled(), 60u);
  EXPECT_LE(*std::max_element(batches_.begin(), batches_.end()), 9u);
}

TEST_F(FollowerBatches, OfAReplayTakeNoLongerThanOthersAndKeepWhatIsHandled) {
  const auto follower = Follow(true);
  AppendForReplay(*follower, 1'000);
  handle_ = [&](const events::Event&) -> Status {
    env_.Sleep(150ms, {});
    return {};
  };
  milliseconds longest{0};
  for (int steps = 0; ParkedStreams() > 0; ++steps) {
    ASSERT_LT(steps, 1'000);
    const MonoTime began = env_.MonoNow();
    ASSERT_TRUE(follower->Step({}));
    longest = std::max(longest, std::chrono::ceil<milliseconds>(env_.MonoNow() - began));
  }
  EXPECT_LE(longest, 1'200ms);
  ExpectHandledOnceInOrder(1'000);
  for (const auto& [position, calls] : calls_) EXPECT_EQ(calls, 1) << position;
}

TEST_F(FollowerBatches, OfAReplayAreLimitedInBytes) {
  const auto follower = Follow();
  AppendForReplay(*follower, 40, std::string(1024 * 1024, 'x'));
  RunOut(*follower);
  ExpectHandledOnceInOrder(40);
  EXPECT_LE(*std::max_element(batches_.begin(), batches_.end()), 9u);
}

TEST_F(FollowerBatches, OfALargeReplayAreLimitedInEvents) {
  const auto follower = Follow();
  AppendForReplay(*follower, 5'000);
  RunOut(*follower);
  ExpectHandledOnceInOrder(5'000);
  EXPECT_EQ(*std::max_element(batches_.begin(), batches_.end()), 32u);
}

TEST_F(FollowerBatches, OfAReplayIncludeWhatIsAppendedMeanwhile) {
  const auto follower = Follow(true);
  AppendForReplay(*follower, 200);
  handle_ = [&](const events::Event&) -> Status {
    env_.Sleep(100ms, {});
    return {};
  };
  for (int steps = 0; steps < 100; ++steps) {
    AppendTo("parked", 3);
    ASSERT_TRUE(follower->Step({}));
  }
  RunOut(*follower);
  EXPECT_EQ(ParkedStreams(), 0u);
  ExpectHandledOnceInOrder(500);
}

TEST_F(FollowerBatches, OfAReplayWaitForLocksLikeOthers) {
  const auto follower = Follow();
  AppendForReplay(*follower, 100);
  int failures = 60;
  bool limited = true;
  handle_ = [&](const events::Event& event) -> Status {
    limited = limited && model_.limited;
    if (event.position != 50 || failures-- <= 0) return {};
    const Code codes[] = {Code::kUnavailable, Code::kUnknownOutcome, Code::kReadOnly, Code::kFull};
    return Error{codes[failures % 4], failures == 7 ? "deadlock" : "lock timeout"};
  };
  RunOut(*follower);
  EXPECT_LE(failures, 0);
  EXPECT_TRUE(limited);
  EXPECT_TRUE(follower->IsSerial());
  EXPECT_TRUE(model_.serialized);
  EXPECT_EQ(ParkedStreams(), 0u);
  ExpectHandledOnceInOrder(100);
}

TEST_F(FollowerBatches, OfAReplayWithABadEventAreRetriedAFewTimes) {
  const auto follower = Follow();
  AppendForReplay(*follower, 100);
  handle_ = [&](const events::Event& event) -> Status {
    if (event.position == 20 && calls_[20] < 4) return Error{Code::kInternal, "bad for a moment"};
    if (event.position == 70) return Error{Code::kInternal, "bad"};
    return {};
  };
  RunOut(*follower);
  ExpectHandledOnceInOrder(69);
  const auto parked = *model_.Parked(kInstance, std::vector{0, 1, 2, 3});
  ASSERT_EQ(parked.size(), 1u);
  EXPECT_EQ(parked[0].versions.front(), 70);
  EXPECT_EQ(parked[0].versions.size(), 31u);
  EXPECT_EQ(parked[0].error, "bad");
  EXPECT_FALSE(parked[0].replay);
}

TEST_F(FollowerBatches, OfAReplayThatKillTheirProcessStayParkedAtTheCulprit) {
  AppendForReplay(*Follow(), 100);
  handle_ = [](const events::Event& event) -> Status {
    if (event.position == 20) throw ProcessEnd{};
    return {};
  };
  std::map<int64_t, int> hangs;
  int deaths = 0;
  for (bool died = true; died;) {
    died = false;
    std::vector<int64_t> in_flight;
    const auto follower = Follow();
    follower->SetSuspectEvents(hangs);
    follower->note_in_flight = [&](const std::vector<int64_t>& positions) -> Status {
      in_flight = positions;
      return {};
    };
    try {
      RunOut(*follower);
    } catch (const ProcessEnd&) {
      died = true;
      ASSERT_LE(++deaths, 3);
      // As a worker counts: only against an event that was alone.
      for (const int64_t position : in_flight) hangs[position] += in_flight.size() == 1;
    }
  }
  EXPECT_EQ(deaths, 3);
  ExpectHandledOnceInOrder(19);
  const auto parked = *model_.Parked(kInstance, std::vector{0, 1, 2, 3});
  ASSERT_EQ(parked.size(), 1u);
  EXPECT_EQ(parked[0].versions.front(), 20);
  EXPECT_NE(parked[0].error.find("died or hung"), std::string::npos) << parked[0].error;
}

}  // namespace
}  // namespace muster::replica
