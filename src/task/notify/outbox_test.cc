#include "task/notify/outbox.h"

#include <gtest/gtest.h>

#include "core/virtual_env.h"
#include "store/backends.h"
#include "store/unlucky_store.h"
#include "support/skewed_env.h"

namespace muster::task {
namespace {

using namespace std::chrono_literals;

class OutboxTest : public ::testing::Test {
 protected:
  using Luck = store::UnluckyStore::Luck;

  void SetUp() override { ASSERT_TRUE(outbox_.Add("m", News("m/1"))); }
  static Notification News(const std::string& dedupe) {
    Notification news;
    news.target = "sns";
    news.subject = "it failed";
    news.dedupe = dedupe;
    return news;
  }
  std::optional<store::Lease> Take() { return outbox_.Take("m", {}).value(); }
  Letter Stored() { return outbox_.List("m").value().at(0); }

  VirtualEnv env_;
  std::unique_ptr<store::Store> truth_ = store::NewMemoryStore(env_);
  store::UnluckyStore store_{*truth_};
  Outbox outbox_{store_, env_};
};

TEST_F(OutboxTest, LetterIsTakenOnceAndDelivered) {
  auto taken = Take();
  ASSERT_TRUE(taken);
  EXPECT_FALSE(Take());
  ASSERT_TRUE(outbox_.Settle(*taken, {}, true));
  EXPECT_TRUE(Stored().delivered);
  env_.Pass(24h);
  EXPECT_FALSE(Take());
}

TEST_F(OutboxTest, LetterIsTakenThoughTheClockWasSetBack) {
  testing::SkewedEnv clock;
  const auto store = store::NewMemoryStore(clock);
  Outbox outbox(*store, clock);
  const auto take = [&] {
    clock.SetBack(1h);
    return outbox.Take("m", {}).value();
  };
  ASSERT_TRUE(outbox.Add("m", News("m/1")));
  auto untried = take();
  ASSERT_TRUE(untried) << "added";
  ASSERT_TRUE(outbox.Settle(*untried, Error{Code::kCancelled, "stopped"}, false));
  ASSERT_TRUE(take()) << "not tried";
  ASSERT_TRUE(outbox.TakeBack("m"));
  EXPECT_TRUE(take()) << "of a process that is gone";
}

TEST_F(OutboxTest, LetterWhoseClaimWasNotAnsweredIsTakenAtOnce) {
  store_.next = {Luck::kLostReply};
  const auto taken = Take();
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->attempt(), 1);
  EXPECT_EQ(taken->epoch(), 1);
}

TEST_F(OutboxTest, DeliveryWhoseRecordWasNotAnsweredIsRecordedOnce) {
  auto taken = Take();
  store_.next = {Luck::kLostReply};
  ASSERT_TRUE(outbox_.Settle(*taken, {}, true));
  EXPECT_TRUE(Stored().delivered);
}

TEST_F(OutboxTest, FailedDeliveryIsTriedLaterEachTime) {
  auto taken = Take();
  ASSERT_TRUE(outbox_.Settle(*taken, Error{Code::kUnavailable, "no answer"}, true));
  EXPECT_EQ(Stored().error, "no answer");
  EXPECT_FALSE(Take());
  env_.Pass(2s);
  taken = Take();
  ASSERT_TRUE(taken);
  ASSERT_TRUE(outbox_.Settle(*taken, Error{Code::kUnavailable, "no answer"}, true));
  env_.Pass(2s);
  EXPECT_FALSE(Take());
  env_.Pass(2s);
  EXPECT_TRUE(Take());
}

TEST_F(OutboxTest, DeliveryThatOutlastsItsLeaseCountsUnlessAnotherHasBegun) {
  auto slow = Take();
  env_.Pass(2min);
  ASSERT_TRUE(outbox_.Settle(*slow, {}, true));
  EXPECT_TRUE(Stored().delivered);

  ASSERT_TRUE(outbox_.Add("n", News("n/1")));
  auto slower = outbox_.Take("n", {}).value();
  env_.Pass(2min);
  ASSERT_TRUE(outbox_.Take("n", {}).value());
  EXPECT_EQ(outbox_.Settle(*slower, {}, true).error().code, Code::kLeaseLost);
}

TEST_F(OutboxTest, UnavailableStoreIsNotAwaitedForLong) {
  auto taken = Take();
  store_.down = true;
  const MonoTime before = env_.MonoNow();
  EXPECT_FALSE(outbox_.Settle(*taken, {}, true));
  EXPECT_LE(env_.MonoNow() - before, 5s);
}

TEST_F(OutboxTest, LetterOfAnOlderVersionIsDelivered) {
  const store::Record old{
      .kind = "notification",
      .queue = "n",
      .key = "n/1",
      .body = R"({"target":"sns","subject":"s","message":{"a":1},"dedupe":"d","topic":"t",)"
              R"("references":0,"error":"no answer"})"};
  ASSERT_TRUE(truth_->Write({{store::Change::Put(old, store::Due::AtOnce())}}));
  auto taken = outbox_.Take("n", {}).value();
  ASSERT_TRUE(taken);
  const Letter letter = Outbox::Read(taken->record()).value();
  EXPECT_EQ(letter.news.topic, "t");
  EXPECT_EQ(letter.news.message, (Json{{"a", 1}}));
  EXPECT_EQ(letter.error, "no answer");
  ASSERT_TRUE(outbox_.Settle(*taken, {}, true));
  EXPECT_TRUE(outbox_.List("n").value().at(0).delivered);
  EXPECT_NE(truth_->Get("notification", "n/1").value()->body.find("\"v\":1"), std::string::npos);
}

TEST_F(OutboxTest, LetterOfANewerVersionIsLeftToIt) {
  const store::Record newer{
      .kind = "notification", .queue = "n", .key = "n/1", .body = R"({"v":2,"to":["sns"]})"};
  ASSERT_TRUE(truth_->Write({{store::Change::Put(newer, store::Due::AtOnce())}}));
  EXPECT_NE(outbox_.List("n").value().at(0).error.find("newer version of muster: in format 2"),
            std::string::npos);
  auto taken = outbox_.Take("n", {}).value();
  ASSERT_TRUE(taken);
  const auto letter = Outbox::Read(taken->record());
  ASSERT_FALSE(letter);
  ASSERT_TRUE(outbox_.Return(*taken, letter.error()));
  EXPECT_EQ(truth_->Get("notification", "n/1").value()->body, newer.body);
  EXPECT_FALSE(outbox_.Take("n", {}).value());
  env_.Pass(5min);
  EXPECT_TRUE(outbox_.Take("n", {}).value());
}

}  // namespace
}  // namespace muster::task
