#include "states/durable/agenda.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <thread>
#include <vector>

namespace muster::states {
namespace {

using namespace std::chrono_literals;

// Nothing ever happens in it: who watches it does so until he is called off.
class QuietStore final : public store::Store {
 public:
  Result<std::optional<store::Record>> Get(std::string_view, std::string_view) override {
    return None();
  }
  Result<std::vector<store::Record>> Scan(std::string_view, std::string_view, std::string_view,
                                          int) override {
    return None();
  }
  Result<std::vector<store::Written>> Write(std::span<const store::Change>) override {
    return None();
  }
  Result<std::vector<store::Record>> Claim(const store::ClaimRequest&) override { return None(); }
  Result<WallTime> Now() override { return None(); }
  void Wait(std::string_view, milliseconds, std::stop_token stop) override {
    most = std::max(most.load(), ++watching);
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any().wait(lock, std::move(stop), [] { return false; });
    --watching;
  }

  std::atomic<int> watching = 0;
  std::atomic<int> most = 0;

 private:
  static Error None() { return {Code::kUnavailable, "quiet"}; }
};

class AgendaTest : public ::testing::Test {
 protected:
  // As many threads that rest until there is news.
  std::vector<std::jthread> Resting(int count) {
    std::vector<std::jthread> threads;
    const uint64_t seen = agenda_.news();
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([this, seen](const std::stop_token& stop) {
        while (agenda_.news() == seen && !stop.stop_requested())
          agenda_.Wait(store_, seen, 1h, stop);
        ++rested_;
      });
    }
    while (store_.watching == 0) std::this_thread::yield();
    return threads;
  }

  QuietStore store_;
  Agenda agenda_{RealEnv()};
  std::atomic<int> rested_ = 0;
};

TEST_F(AgendaTest, OneThreadWatchesTheStoreForAll) {
  auto threads = Resting(8);
  agenda_.WakeAll();
  threads.clear();
  EXPECT_EQ(rested_, 8);
  EXPECT_EQ(store_.most, 1);
}

TEST_F(AgendaTest, WhatIsLeftBeforeOneRestsIsSeenAtOnce) {
  const uint64_t seen = agenda_.news();
  agenda_.Leave(1);
  agenda_.Wait(store_, seen, 1h, {});
  EXPECT_EQ(store_.most, 0);
}

TEST_F(AgendaTest, TheOneThatWatchesIsCalledIfNobodyElseRests) {
  auto threads = Resting(1);
  agenda_.Leave(1);
  threads.clear();
  EXPECT_EQ(rested_, 1);
}

TEST_F(AgendaTest, AStopEndsEveryRest) {
  auto threads = Resting(3);
  for (std::jthread& thread : threads) thread.request_stop();
  threads.clear();
  EXPECT_EQ(rested_, 3);
}

TEST_F(AgendaTest, AnEndIsTakenOnce) {
  agenda_.NoteEnded("run");
  EXPECT_FALSE(agenda_.TakeEnded("other"));
  EXPECT_TRUE(agenda_.TakeEnded("run"));
  EXPECT_FALSE(agenda_.TakeEnded("run"));
}

}  // namespace
}  // namespace muster::states
