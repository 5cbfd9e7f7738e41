#include "states/durable/driver_signals.h"

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <thread>
#include <vector>

namespace muster::states {
namespace {

using namespace std::chrono_literals;

// Nothing ever changes in it: a watch lasts until it is stopped.
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

class DriverSignalsTest : public ::testing::Test {
 protected:
  // Threads that wait until there is a signal.
  std::vector<std::jthread> Waiting(int count) {
    std::vector<std::jthread> threads;
    const uint64_t seen = signals_.count();
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([this, seen](const std::stop_token& stop) {
        while (signals_.count() == seen && !stop.stop_requested())
          signals_.Wait(store_, seen, 1h, stop);
        ++returned_;
      });
    }
    while (store_.watching == 0) std::this_thread::yield();
    return threads;
  }

  QuietStore store_;
  DriverSignals signals_{RealEnv()};
  std::atomic<int> returned_ = 0;
};

TEST_F(DriverSignalsTest, OneThreadWatchesTheStoreForAll) {
  auto threads = Waiting(8);
  signals_.SignalAll();
  threads.clear();
  EXPECT_EQ(returned_, 8);
  EXPECT_EQ(store_.most, 1);
}

TEST_F(DriverSignalsTest, ASignalBeforeAWaitEndsItAtOnce) {
  const uint64_t seen = signals_.count();
  signals_.SignalDue(1);
  signals_.Wait(store_, seen, 1h, {});
  EXPECT_EQ(store_.most, 0);
}

TEST_F(DriverSignalsTest, TheWatchingThreadIsWokenIfNoOtherWaits) {
  auto threads = Waiting(1);
  signals_.SignalDue(1);
  threads.clear();
  EXPECT_EQ(returned_, 1);
}

TEST_F(DriverSignalsTest, AStopEndsEveryWait) {
  auto threads = Waiting(3);
  for (std::jthread& thread : threads) thread.request_stop();
  threads.clear();
  EXPECT_EQ(returned_, 3);
}

TEST_F(DriverSignalsTest, AnEndedBranchIsTakenOnce) {
  signals_.AddEndedBranch("run");
  EXPECT_FALSE(signals_.TakeEndedBranch("other"));
  EXPECT_TRUE(signals_.TakeEndedBranch("run"));
  EXPECT_FALSE(signals_.TakeEndedBranch("run"));
}

}  // namespace
}  // namespace muster::states
