#include "work/suspect_gate.h"

#include <algorithm>

#include "core/planted_bug.h"

namespace muster::work {
namespace {

// A start ends without a notice when its time is up.
constexpr milliseconds kLook{1'000};

}  // namespace

// The clock is read before taking the lock: the simulator may switch threads there.

bool SuspectGate::Pass::Enter(const std::stop_token& stop) {
  for (;;) {
    const MonoTime now = gate_.env_.MonoNow();
    MutexLock lock(gate_.mutex_);
    if (stop.stop_requested()) return false;
    if (!gate_.Reserved(now)) {
      gate_.starting_[this] = {.until = now + gate_.longest_};
      return true;
    }
    gate_.changed_.Wait(lock, kLook, stop);
  }
}

bool SuspectGate::Pass::BeAlone(MonoTime until, const std::stop_token& stop) {
  if (PLANTED_BUG(suspects_start_together)) return true;
  {
    const MutexLock lock(gate_.mutex_);
    gate_.starting_.erase(this);
    ++gate_.suspects_waiting_;
    gate_.changed_.NotifyAll();
  }
  for (;;) {
    const MonoTime now = gate_.env_.MonoNow();
    MutexLock lock(gate_.mutex_);
    const bool free = !gate_.Busy(this, now);
    if (!free && now < until && !stop.stop_requested()) {
      gate_.changed_.Wait(lock, std::min<std::chrono::nanoseconds>(until - now, kLook), stop);
      continue;
    }
    --gate_.suspects_waiting_;
    if (free) gate_.starting_[this] = {.until = now + gate_.longest_, .alone = true};
    gate_.changed_.NotifyAll();
    return free;
  }
}

void SuspectGate::Pass::Leave() { gate_.Leave(this); }

void SuspectGate::Leave(const Pass* pass) {
  const MutexLock lock(mutex_);
  if (starting_.erase(pass) > 0) changed_.NotifyAll();
}

bool SuspectGate::Busy(const Pass* self, MonoTime now) const {
  return std::any_of(starting_.begin(), starting_.end(), [&](const auto& entry) {
    return entry.first != self && now < entry.second.until;
  });
}

bool SuspectGate::Reserved(MonoTime now) const {
  return suspects_waiting_ > 0 ||
         std::any_of(starting_.begin(), starting_.end(), [&](const auto& entry) {
           return entry.second.alone && now < entry.second.until;
         });
}

}  // namespace muster::work
