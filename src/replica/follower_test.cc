// One follower on an in-memory log and read model, step by step.

#include "replica/follower.h"
#include "core/virtual_env.h"

#include <gtest/gtest.h>

#include "core/log.h"
#include "events/backends.h"
#include "events/event_log_wrapper.h"
#include "replica/log_identity.h"
#include "replica/memory_read_model.h"

namespace muster::replica {
namespace {

using namespace std::chrono_literals;

const bool kQuiet = (SetLogging(Level::kOff, LogFormat::kText), true);
const Instance kInstance{"set", "totals", 1};
const std::vector<int> kSlots{0, 1};

// A log that can be exchanged for another, as by restoring a backup.
class ExchangeableLog final : public events::EventLogWrapper {
 public:
  explicit ExchangeableLog(std::unique_ptr<events::EventLog> log)
      : EventLogWrapper(*log), log_(std::move(log)) {}

  Result<std::vector<events::EventMark>> MarksAt(std::span<const int64_t> positions) override {
    auto marks = EventLogWrapper::MarksAt(positions);
    for (events::EventMark& mark : *marks) {
      if (mark.position == deleted) mark = {};
    }
    return marks;
  }
  bool KeepsEvents() const override { return keeps_events; }

  void Replace(std::unique_ptr<events::EventLog> by) {
    Exchange(*by);
    log_ = std::move(by);
  }

  bool keeps_events = true;
  int64_t deleted = 0;  // the position of an event that is gone

 private:
  std::unique_ptr<events::EventLog> log_;
};

// Its next look at the parked streams fails once, and so may a commit whose effect stays.
class UnluckyReadModel final : public MemoryReadModel {
 public:
  Result<std::vector<ParkedStream>> Parked(const Instance& instance,
                                           std::span<const int> slots) override {
    if (std::exchange(loses_parked, false)) return Error{Code::kUnavailable, "no reply in time"};
    return MemoryReadModel::Parked(instance, slots);
  }
  Status Commit(Transaction& transaction, const Instance& instance,
                const ReadModelProgress& progress) override {
    MUSTER_TRY(MemoryReadModel::Commit(transaction, instance, progress));
    if (progress.parked.empty() || !std::exchange(loses_replies, false)) return {};
    loses_parked = true;
    return Error{Code::kUnknownOutcome, "no reply in time"};
  }
  using MemoryReadModel::Commit;

  bool loses_replies = false;
  bool loses_parked = false;
};

class FollowerTest : public ::testing::Test {
 protected:
  // Records what it is given; fails for the events of `bad`.
  class Recorder final : public Processor {
   public:
    Recorder(FollowerTest& test, bool side_effects) : test_(test), side_effects_(side_effects) {}
    Status Handle(std::span<const events::Event> events, Transaction& transaction) override {
      for (const events::Event& event : events) {
        const std::string name = event.stream + std::to_string(event.version);
        if (test_.bad.contains(name)) return Error{Code::kInternal, "bad " + name};
        MUSTER_TRY(transaction.Execute("handled", {name, side_effects_ ? "loud" : "quiet"}));
      }
      return {};
    }

   private:
    FollowerTest& test_;
    const bool side_effects_;
  };

  void SetUp() override {
    follower = NewFollower();
    ASSERT_TRUE(follower->Own(kSlots, 1, false));
  }

  std::unique_ptr<Follower> NewFollower() {
    return std::make_unique<Follower>(
        *log, model, env, kInstance, /*active=*/true,
        [this](bool side_effects) { return std::make_unique<Recorder>(*this, side_effects); },
        FollowerOptions{.batch = 4, .max_attempts = 2, .retry_delay = 1ms});
  }

  // The log is restored from its first event on, and has other events since.
  void RestoreLog(int streams) {
    log->Replace(events::NewMemoryEventLog(env, 2));
    for (int i = 0; i < streams; ++i) Append("other" + std::to_string(i), 1);
  }

  void Append(const std::string& stream, int events) {
    events::StreamAppend append{stream, events::kAnyVersion, {}};
    for (int i = 0; i < events; ++i) append.events.push_back({"T"});
    ASSERT_TRUE(log->Append({&append, 1}));
  }

  void StepUntilIdle() {
    for (int steps = 0; steps < 1'000; ++steps) {
      auto outcome = follower->Step({});
      ASSERT_TRUE(outcome) << outcome.error().ToString();
      if (*outcome == Follower::Outcome::kIdle) return;
    }
    FAIL() << "it never comes to rest";
  }

  std::vector<std::string> Handled(char stream) const {
    std::vector<std::string> names;
    for (const auto& statement : model.Statements()) {
      if (statement.params[0]->front() == stream) names.push_back(*statement.params[0]);
    }
    return names;
  }

  std::vector<ParkedStream> Parked() { return *model.Parked(kInstance, kSlots); }

  VirtualEnv env;
  std::unique_ptr<ExchangeableLog> log =
      std::make_unique<ExchangeableLog>(events::NewMemoryEventLog(env, 2));
  UnluckyReadModel model;
  std::set<std::string> bad;
  std::unique_ptr<Follower> follower;
};

TEST_F(FollowerTest, AStreamThatIsStillWrittenToIsReplayedToItsEnd) {
  bad = {"s1"};
  Append("s", 3);
  StepUntilIdle();
  ASSERT_EQ(Parked().size(), 1u);
  bad.clear();
  ASSERT_EQ(*model.RequestReplay(kInstance, ""), 1);
  // In the log, but not read yet when the replay begins.
  Append("s", 9);
  env.Sleep(2s, {});
  StepUntilIdle();
  Append("s", 1);
  StepUntilIdle();
  EXPECT_TRUE(Parked().empty());
  EXPECT_EQ(Handled('s').size(), 13u);
  for (size_t i = 0; i < Handled('s').size(); ++i) {
    EXPECT_EQ(Handled('s')[i], "s" + std::to_string(i + 1));
  }
}

TEST_F(FollowerTest, ParkedStreamsAreLoadedAgainIfThatFailedAfterALostReply) {
  bad = {"s1"};
  model.loses_replies = true;
  Append("s", 3);
  bool failed = false;
  for (int steps = 0; steps < 20; ++steps) failed |= !follower->Step({});
  EXPECT_TRUE(failed);
  EXPECT_FALSE(model.loses_replies);
  EXPECT_FALSE(model.loses_parked);
  EXPECT_EQ(Handled('s'), std::vector<std::string>{});
  ASSERT_EQ(Parked().size(), 1);
  EXPECT_EQ(Parked()[0].versions, (std::vector<int64_t>{1, 2, 3}));
}

TEST_F(FollowerTest, SlotsKeptFromBeforeASwapAreReadBesideThoseTakenOverAfterIt) {
  const auto swap = [&](int from, int to) {
    auto transaction = *model.Begin();
    ASSERT_TRUE(model.Swap(*transaction, {kInstance.set, kInstance.projection, from}, to, 2));
  };
  ASSERT_TRUE(model.TakeOver({kInstance.set, kInstance.projection, 2}, 1, kSlots));
  swap(1, 2);
  ASSERT_TRUE(follower->Own({0}, 2, false));
  swap(2, 1);
  ASSERT_TRUE(follower->Own(kSlots, 3, true));
  for (int i = 0; i < 10; ++i) Append("s" + std::to_string(i) + "-", 1);
  StepUntilIdle();
  EXPECT_EQ(Handled('s').size(), 10u);
}

TEST_F(FollowerTest, ALogThatHasLostWhatAnotherWorkerHandledHaltsThisOneToo) {
  Append("s", 1);
  StepUntilIdle();
  const int handled = (*model.Slots(kInstance))[0].position != 0 ? 0 : 1;
  RestoreLog(3);
  follower = NewFollower();
  const std::vector<int> other{1 - handled};
  ASSERT_TRUE(follower->Own(other, 2, false));
  const auto outcome = follower->Step({});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Code::kIncompatible);
  EXPECT_EQ(Handled('o'), std::vector<std::string>{});
}

TEST_F(FollowerTest, ANewOwnerNoticesThatTheLogWasRestoredAndHasGrownAgain) {
  Append("s", 3);
  StepUntilIdle();
  RestoreLog(20);
  follower = NewFollower();
  ASSERT_TRUE(follower->Own(kSlots, 2, false));
  const size_t handled = model.Statements().size();
  const auto outcome = follower->Step({});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Code::kIncompatible);
  EXPECT_NE(outcome.error().message.find("position 3"), std::string::npos)
      << outcome.error().message;
  EXPECT_FALSE(follower->Flush());
  EXPECT_EQ(model.Statements().size(), handled);
}

TEST_F(FollowerTest, AnOwnerNoticesThatTheLogWasRestoredWhileItRuns) {
  Append("s", 3);
  StepUntilIdle();
  const size_t handled = model.Statements().size();
  RestoreLog(3);  // as long as before: there is nothing new to read
  const auto outcome = follower->Step({});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Code::kIncompatible);
  EXPECT_EQ(model.Statements().size(), handled);
}

// The next event of its slot would move the checkpoint past those that it would skip, and replace
// what shows that.
TEST_F(FollowerTest, NothingIsHandledOnceTheLogWasRestoredAndHasGrownPastTheCheckpoints) {
  Append("s", 3);
  StepUntilIdle();
  const auto slots = *model.Slots(kInstance);
  const size_t handled = model.Statements().size();
  RestoreLog(3);
  Append("s", 20);
  for (int steps = 0; steps < 3; ++steps) {
    const auto outcome = follower->Step({});
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, Code::kIncompatible);
  }
  EXPECT_FALSE(follower->Flush());
  EXPECT_EQ(model.Statements().size(), handled);
  EXPECT_EQ(*model.Slots(kInstance), slots);
}

// Its slot was read to the end of the log, but its checkpoint has not moved: it has lost nothing.
TEST_F(FollowerTest, EventsBeyondACheckpointAreReadAgainFromARestoredLog) {
  const int idle = 1 - events::SlotOf("s", 2);
  Append("s", 3);
  ASSERT_TRUE(follower->Own({idle}, 2, false));
  StepUntilIdle();
  RestoreLog(20);
  size_t expected = 0;
  const auto page = log->ReadAll(0, 100);
  ASSERT_TRUE(page);
  for (const events::Event& event : page->events) expected += event.slot == idle;
  ASSERT_GT(expected, 0u);
  StepUntilIdle();
  EXPECT_EQ(model.Statements().size(), expected);
  ASSERT_TRUE(follower->Flush());
  EXPECT_EQ(model.Slots(kInstance)->at(static_cast<size_t>(idle)).mark,
            log->MarksAt(std::vector<int64_t>{20})->front());
}

// Events beyond it are not handled yet: a log that loses them has lost nothing.
TEST_F(FollowerTest, AMarkLiesNoFurtherThanItsCheckpoint) {
  Append("s", 3);
  StepUntilIdle();
  bad = {"s6"};
  Append("s", 4);
  ASSERT_TRUE(follower->Step({}));  // begins with a page, and does not end it
  ASSERT_TRUE(follower->Flush());
  const auto slots = *model.Slots(kInstance);
  for (const SlotState& slot : slots) {
    EXPECT_GT(slot.position, 0) << slot.slot;
    EXPECT_GT(slot.mark.position, 0) << slot.slot;
    EXPECT_LE(slot.mark.position, slot.position) << slot.slot;
  }
}

// Its slot has had no event, but its checkpoint has moved: new events before it would be skipped.
TEST_F(FollowerTest, TheOwnerOfAnIdleSlotNoticesThatTheLogWasRestored) {
  const int idle = 1 - events::SlotOf("s", 2);
  Append("s", 3);
  StepUntilIdle();
  ASSERT_TRUE(follower->Flush());
  EXPECT_EQ(model.Slots(kInstance)->at(static_cast<size_t>(idle)).mark.position, 3);
  RestoreLog(20);
  follower = NewFollower();
  ASSERT_TRUE(follower->Own({idle}, 2, false));
  EXPECT_EQ(follower->Step({}).error().code, Code::kIncompatible);
}

TEST_F(FollowerTest, EventsThatAnotherLibraryDeletedAreNotMissed) {
  log->keeps_events = false;
  Append("s", 3);
  StepUntilIdle();
  log->deleted = 3;
  Append("t", 1);
  follower = NewFollower();
  ASSERT_TRUE(follower->Own(kSlots, 2, false));
  StepUntilIdle();
  EXPECT_EQ(Handled('t').size(), 1u);
}

TEST_F(FollowerTest, FollowerWaitsForATableThatEndsBeforeACheckpoint) {
  log->keeps_events = false;
  Append("s", 3);
  StepUntilIdle();
  // Its owner has deleted everything.
  log->Replace(events::NewMemoryEventLog(env, 2));
  env.Sleep(6s, {});
  StepUntilIdle();
  follower = NewFollower();
  ASSERT_TRUE(follower->Own(kSlots, 2, false));
  StepUntilIdle();
  const auto warning = WarnIfLogEndsEarly(*log, "p", *model.Slots(kInstance));
  ASSERT_TRUE(warning);
  EXPECT_NE(warning->find("ends at position 0"), std::string::npos) << *warning;
  // As soon as another event is where one was handled, it is not the same log.
  Append("other", 5);
  env.Sleep(6s, {});
  const auto outcome = follower->Step({});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Code::kIncompatible);
  EXPECT_NE(outcome.error().message.find("other columns"), std::string::npos)
      << outcome.error().message;
  EXPECT_EQ(*WarnIfLogEndsEarly(*log, "p", *model.Slots(kInstance)), "");
}

TEST_F(FollowerTest, AnOwnLogThatEndsBeforeACheckpointStopsItsFollower) {
  Append("s", 3);
  StepUntilIdle();
  log->Replace(events::NewMemoryEventLog(env, 2));
  follower = NewFollower();
  ASSERT_TRUE(follower->Own(kSlots, 2, false));
  EXPECT_EQ(follower->Step({}).error().code, Code::kIncompatible);
  EXPECT_EQ(*WarnIfLogEndsEarly(*log, "p", *model.Slots(kInstance)), "");
}

TEST_F(FollowerTest, OtherStreamsContinueDuringAReplay) {
  bad = {"s1"};
  Append("s", 40);
  StepUntilIdle();
  bad.clear();
  ASSERT_EQ(*model.RequestReplay(kInstance, "s"), 1);
  Append("t", 4);
  env.Sleep(2s, {});
  ASSERT_TRUE(follower->Step({}));
  EXPECT_EQ(Handled('t').size(), 4u);
  EXPECT_LT(Handled('s').size(), 40u);
  StepUntilIdle();
  EXPECT_EQ(Handled('s').size(), 40u);
  EXPECT_EQ(follower->pulse().handled, 44);
}

TEST_F(FollowerTest, AnEventThatFailsAgainEndsTheReplayWithItsReason) {
  bad = {"s2"};
  Append("s", 6);
  StepUntilIdle();
  ASSERT_EQ(Parked().front().versions.size(), 5u);
  bad = {"s4"};
  ASSERT_EQ(*model.RequestReplay(kInstance, ""), 1);
  env.Sleep(2s, {});
  StepUntilIdle();
  ASSERT_EQ(Parked().size(), 1u);
  EXPECT_EQ(Parked().front().versions, (std::vector<int64_t>{4, 5, 6}));
  EXPECT_EQ(Parked().front().error, "bad s4");
  EXPECT_FALSE(Parked().front().replay);
  EXPECT_EQ(Handled('s'), (std::vector<std::string>{"s1", "s2", "s3"}));
}

TEST_F(FollowerTest, EventThatHangsTwiceDuringAReplayStaysParked) {
  bad = {"s1"};
  Append("s", 2);
  StepUntilIdle();
  bad.clear();
  ASSERT_EQ(*model.RequestReplay(kInstance, ""), 1);
  follower->SetSuspectEvents({{1, 2}});
  env.Sleep(2s, {});
  StepUntilIdle();
  ASSERT_EQ(Parked().size(), 1u);
  EXPECT_FALSE(Parked().front().replay);
  EXPECT_NE(Parked().front().error.find("hung"), std::string::npos);
  EXPECT_TRUE(Handled('s').empty());
}

}  // namespace
}  // namespace muster::replica
