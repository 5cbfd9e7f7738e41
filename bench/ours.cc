#include "ours.h"

#include <atomic>
#include <barrier>
#include <exception>
#include <thread>
#include <vector>

namespace muster::bench {
namespace {

// Connections are opened, statements planned and pages read before the clock starts.
constexpr int kWarmUpTurns = 2;

class StoreSide final : public Side {
 public:
  explicit StoreSide(store::Store& store) : store_(store) {}

  Outcome Run(const Load& load) override {
    std::atomic<int64_t> completed = 0;
    // The last worker to be ready starts the clock: a thread of its own might wake up too late.
    std::chrono::steady_clock::time_point begin;
    const auto start = [&]() noexcept { begin = std::chrono::steady_clock::now(); };
    std::barrier ready(load.workers, start);
    std::vector<std::exception_ptr> failures(static_cast<size_t>(load.workers));
    std::vector<std::jthread> workers;
    for (std::exception_ptr& failure : failures) {
      workers.emplace_back([&] {
        failure = Try([&] { Turns(kWarmUpTurns, load.batch); });
        ready.arrive_and_wait();
        if (failure) return;
        failure = Try([&] { completed += Turns(load.turns, load.batch); });
      });
    }
    for (std::jthread& worker : workers) worker.join();
    const auto end = std::chrono::steady_clock::now();
    for (const std::exception_ptr& failure : failures) {
      if (failure) std::rethrow_exception(failure);
    }
    return {completed, end - begin};
  }

 private:
  template <class Work>
  static std::exception_ptr Try(Work work) {
    try {
      work();
      return nullptr;
    } catch (...) {
      return std::current_exception();
    }
  }

  // How many records were completed.
  int64_t Turns(int turns, int batch) {
    int64_t completed = 0;
    std::vector<store::Change> changes;
    for (int turn = 0; turn < turns; ++turn) {
      changes.clear();
      for (store::Record& record : Must(store_.Claim(NewClaim(batch)))) {
        changes.push_back(store::Change::Put(std::move(record), store::Due::Never()));
      }
      for (const store::Written& written : Must(store_.Write(changes))) {
        if (!written.applied) throw std::runtime_error("a claimed record was changed by another");
        ++completed;
      }
    }
    return completed;
  }

  store::Store& store_;
};

}  // namespace

std::unique_ptr<store::Store> MustOpen(const std::string& url) {
  return Must(store::OpenStore(url, RealEnv()));
}

store::ClaimRequest NewClaim(int limit) {
  return {.kind = kKind,
          .queue = kQueue,
          .limit = limit,
          .owner = kOwner,
          .claim_id = RealEnv().NewId(),
          .lease = milliseconds(kLeaseMs)};
}

std::unique_ptr<Side> Ours(store::Store& store) { return std::make_unique<StoreSide>(store); }

}  // namespace muster::bench
