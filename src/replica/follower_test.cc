// One follower on an in-memory log and read model, step by step.

#include "replica/follower.h"
#include "core/virtual_env.h"

#include <gtest/gtest.h>

#include "core/log.h"
#include "events/backends.h"
#include "replica/memory_read_model.h"

namespace muster::replica {
namespace {

using namespace std::chrono_literals;

const bool kQuiet = (SetLogging(Level::kOff, LogFormat::kText), true);
const Instance kInstance{"set", "totals", 1};
const std::vector<int> kSlots{0, 1};

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
    follower = std::make_unique<Follower>(
        *log, model, env, kInstance, /*active=*/true,
        [this](bool side_effects) { return std::make_unique<Recorder>(*this, side_effects); },
        FollowerOptions{.batch = 4, .max_attempts = 2, .retry_delay = 1ms});
    ASSERT_TRUE(follower->Own(kSlots, 1, false));
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
  std::unique_ptr<events::EventLog> log = events::NewMemoryEventLog(env, 2);
  MemoryReadModel model;
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

TEST_F(FollowerTest, OtherStreamsGoOnWhileOneIsReplayed) {
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

TEST_F(FollowerTest, AnEventThatHungTwiceSinceItWasAskedForStaysParked) {
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
