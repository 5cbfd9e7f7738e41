#include "work/worker.h"

#include <algorithm>

#include "base/log.h"
#include "base/planted_bug.h"

namespace muster {
namespace {

constexpr milliseconds kLongestRetryDelay{300'000};

void LogOutcome(const Lease& lease, ItemOutcome outcome, const std::string& owner) {
  const auto log = [&](Level level, std::string_view what) {
    Log(level, what,
        {{"worker", owner},
         {"item", lease.key()},
         {"epoch", lease.epoch()},
         {"attempt", lease.attempt()}});
  };
  switch (outcome) {
    case ItemOutcome::kCompleted:
      return log(Level::kInfo, "item completed");
    case ItemOutcome::kReleased:
      return log(Level::kInfo, "item released");
    case ItemOutcome::kFailed:
      return log(Level::kWarning, "item failed; it will be tried again");
    case ItemOutcome::kQuarantined:
      return log(Level::kError, "item quarantined");
    case ItemOutcome::kLost:
      return log(Level::kWarning, "item lost to another worker");
  }
}

class Worker {
 public:
  Worker(Store& store, Env& env, const WorkerOptions& options, const ItemHandler& handler,
         const ItemObserver& observer)
      : store_(store), env_(env), options_(options), handler_(handler), observer_(observer) {}

  Status Run(std::stop_token stop) {
    while (!stop.stop_requested()) {
      auto claimed = Lease::Claim(store_, env_, options_.kind, options_.queue, options_.owner,
                                  options_.terms, 1, stop);
      if (!claimed) {
        if (!IsTransient(claimed.error().code)) return claimed.error();
        Log(Level::kWarning, "the store does not answer; trying again",
            {{"worker", options_.owner}, {"error", claimed.error().message}});
        env_.Sleep(options_.idle_wait + env_.Jitter(options_.idle_wait), stop);
        continue;
      }
      if (!claimed->empty()) {
        MUSTER_TRY(HandleOne(claimed->front(), stop));
        continue;
      }
      auto settled = AllSettled(store_, options_.kind, options_.queue);
      if (!settled && !IsTransient(settled.error().code)) return settled.error();
      if (settled && *settled) break;
      store_.Wait(options_.kind, options_.idle_wait, stop);
    }
    return {};
  }

 private:
  // Fails only when the worker cannot go on at all.
  Status HandleOne(Lease& lease, std::stop_token stop) {
    const int max_attempts = options_.terms.max_attempts;
    if (lease.attempt() > max_attempts && !PLANTED_BUG(nothing_is_quarantined)) {
      const std::string& last = lease.state().error;
      return Tell(lease, ItemOutcome::kQuarantined,
                  lease.Quarantine("claimed " + std::to_string(max_attempts) +
                                   " times without progress; last error: " +
                                   (last.empty() ? "none, its holders disappeared" : last)));
    }
    auto handled = handler_(lease, stop);
    if (handled) {
      return Tell(lease, ItemOutcome::kCompleted, lease.Complete(*std::move(handled)));
    }
    const Error& error = handled.error();
    if (error.code == Code::kCancelled) {
      return Tell(lease, ItemOutcome::kReleased, lease.Release());
    }
    if (error.code == Code::kLeaseLost || lease.Expired())
      return Tell(lease, ItemOutcome::kLost, {});
    if (lease.attempt() >= max_attempts) {
      return Tell(lease, ItemOutcome::kQuarantined, lease.Quarantine(error.message));
    }
    return Tell(lease, ItemOutcome::kFailed,
                lease.Fail(error.message, RetryDelay(lease.attempt())));
  }

  Status Tell(const Lease& lease, ItemOutcome outcome, const Status& stored) {
    if (!stored) {
      const Code code = stored.error().code;
      if (code != Code::kLeaseLost && !IsTransient(code)) return stored;
      outcome = ItemOutcome::kLost;
    }
    LogOutcome(lease, outcome, options_.owner);
    if (observer_) observer_(lease, outcome);
    return {};
  }

  milliseconds RetryDelay(int attempt) const {
    return LeaseFor(attempt, options_.retry_delay,
                    std::max(kLongestRetryDelay, options_.retry_delay));
  }

  Store& store_;
  Env& env_;
  const WorkerOptions& options_;
  const ItemHandler& handler_;
  const ItemObserver& observer_;
};

}  // namespace

Status RunWorker(Store& store, Env& env, const WorkerOptions& options, const ItemHandler& handler,
                 const ItemObserver& observer, std::stop_token stop) {
  return Worker(store, env, options, handler, observer).Run(std::move(stop));
}

Status CreateItems(Store& store, const std::string& kind, const std::string& queue,
                   const std::vector<std::string>& keys) {
  for (size_t begin = 0; begin < keys.size(); begin += kMaxBatch) {
    const size_t end = std::min(keys.size(), begin + static_cast<size_t>(kMaxBatch));
    std::vector<Change> batch;
    for (size_t i = begin; i < end; ++i) {
      batch.push_back(Change::Put(
          Record{.kind = kind, .queue = queue, .key = keys[i], .body = ItemState{}.ToBody()},
          Due::Now()));
    }
    // One that is there already answers with a conflict, which is as good.
    MUSTER_TRY(store.Write(batch));
  }
  return {};
}

Result<bool> AllSettled(Store& store, const std::string& kind, const std::string& queue) {
  std::string after;
  for (;;) {
    MUSTER_ASSIGN(const std::vector<Record> page, store.Scan(kind, "", after, kMaxBatch));
    for (const Record& record : page) {
      if (record.queue != queue) continue;
      MUSTER_ASSIGN(const ItemState state, ItemState::FromBody(record.body));
      if (state.phase == ItemState::Phase::kOpen) return false;
    }
    if (page.size() < static_cast<size_t>(kMaxBatch)) return true;
    after = page.back().key;
  }
}

}  // namespace muster
