#include "work/circuit.h"

#include <algorithm>
#include <utility>

#include "core/backoff.h"
#include "core/descriptor.h"
#include "core/log.h"
#include "core/mutex.h"

namespace muster::work {
namespace {

constexpr milliseconds kLongestPause{30'000};
// Another slot may succeed meanwhile.
constexpr milliseconds kLook{1'000};
// A single failure is not worth reporting.
constexpr int kWorthSaying = 2;
constexpr size_t kMostRemembered = 10'000;

std::string WhatIsWaitedFor(const Error& why) {
  if (IsOutOfDescriptors(why)) return "file descriptors of this process";
  return why.party == Party::kNone ? "this worker's own means"
                                   : "the " + std::string(PartyName(why.party));
}

}  // namespace

// Clock and randomness are read before taking the lock: the simulator may switch threads there.

void Circuit::Succeeded(const std::string& item) {
  const MonoTime now = env_.MonoNow();
  const MutexLock lock(mutex_);
  ++successes_;
  // Its own successes say nothing about the others.
  if (const auto failed = failed_at_.find(item); failed != failed_at_.end()) ++failed->second;
  if (failures_ >= kWorthSaying) {
    const auto waited = std::chrono::duration_cast<std::chrono::seconds>(now - since_);
    // At the level of the warning it revokes.
    Log(Level::kWarning, "items succeed again", {{"after_s", waited.count()}});
  }
  failures_ = 0;
  waits_for_.clear();
  trying_ = false;
}

std::string Circuit::WaitsFor() {
  const MutexLock lock(mutex_);
  return waits_for_;
}

bool Circuit::Failed(const std::string& item, const Error& why) {
  const MonoTime now = env_.MonoNow();
  const uint64_t chance = env_.Random();
  const MutexLock lock(mutex_);
  const auto before = failed_at_.find(item);
  const bool others_got_through = before != failed_at_.end() && before->second < successes_;
  if (failed_at_.size() >= kMostRemembered) failed_at_.clear();
  failed_at_[item] = successes_;
  // Items already in flight when it began are not consecutive failures.
  if (failures_ > 0 && !trying_ && now < next_try_) return others_got_through;
  if (failures_++ == 0) since_ = now;
  trying_ = false;
  const std::chrono::nanoseconds jitter = Pause() / 4;
  next_try_ = now + Pause();
  if (jitter.count() > 0)
    next_try_ += std::chrono::nanoseconds(chance % static_cast<uint64_t>(jitter.count()));
  if (failures_ >= kWorthSaying) {
    // The message of a failed dead-letter file names it already.
    waits_for_ =
        why.party == Party::kDeadLetters ? why.message : WhatIsWaitedFor(why) + ": " + why.message;
    Log(Level::kWarning, "waiting for " + WhatIsWaitedFor(why),
        {{"tries", failures_},
         {"next_try_s", std::chrono::duration_cast<std::chrono::seconds>(Pause()).count()},
         {"error", why.ToString()}});
  }
  return others_got_through;
}

milliseconds Circuit::Pause() const {
  return Backoff::Pauses{.first = first_pause_, .longest = kLongestPause}.After(failures_);
}

bool Circuit::Await(const std::stop_token& stop) {
  for (;;) {
    const MonoTime now = env_.MonoNow();
    std::chrono::nanoseconds wait;
    {
      const MutexLock lock(mutex_);
      if (failures_ == 0) return true;
      wait = next_try_ - now;
      if (wait.count() <= 0) {
        // This slot tries; the others wait for its outcome.
        trying_ = true;
        next_try_ = now + Pause();
        return true;
      }
    }
    if (!env_.Sleep(std::min<std::chrono::nanoseconds>(wait, kLook), stop)) return false;
  }
}

void Circuit::Settled() {
  const MonoTime now = env_.MonoNow();
  const MutexLock lock(mutex_);
  if (std::exchange(trying_, false)) next_try_ = now;
}

}  // namespace muster::work
