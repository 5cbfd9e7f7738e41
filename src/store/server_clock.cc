#include "store/server_clock.h"

#include <algorithm>

#include "core/mutex.h"

namespace muster::store {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr std::chrono::seconds kStaleAfter{60};

// Maximum clock drift in ppm; NTP slews by up to 500.
constexpr int64_t kDriftPpm = 500;

constexpr WallTime kEpoch{};

}  // namespace

ServerClock::Times ServerClock::Reading::At(const Due& due) const {
  if (due.kind == Due::Kind::kAtOnce) return {DueAtOnce(now), DueAtOnce(now)};
  return After(due.delay);
}

ServerClock::Times ServerClock::Reading::After(milliseconds delay) const {
  const WallTime due = now + delay;
  return {due, due + error};
}

void ServerClock::Observe(MonoTime asked, MonoTime answered, WallTime shown, milliseconds tick) {
  const nanoseconds time = shown - kEpoch;
  const Bounds seen{time - answered.time_since_epoch(), time + tick - asked.time_since_epoch()};
  if (seen.most - seen.least > 2 * kMaxError) return;  // the response was too slow to be useful
  const MutexLock lock(mutex_);
  if (bounds_) {
    const Bounds known = At(answered);
    const Bounds both{std::max(known.least, seen.least), std::min(known.most, seen.most)};
    if (both.least <= both.most) {
      bounds_ = both;
      at_ = std::max(at_, answered);
      return;
    }
    const bool was_set = both.least - both.most > kJump;
    // Wide enough for both the known and the new time.
    disagreement_ =
        was_set ? nanoseconds(0) : std::max(known.most - seen.most, seen.least - known.least);
    if (was_set) last_.reset();
  }
  bounds_ = seen;
  at_ = answered;
}

bool ServerClock::IsStale(MonoTime now) const {
  const MutexLock lock(mutex_);
  return !bounds_ || now - at_ > kStaleAfter;
}

Result<ServerClock::Reading> ServerClock::Read(MonoTime now) {
  const MutexLock lock(mutex_);
  if (!bounds_) {
    return Error{Code::kUnavailable,
                 "the store has not reported its time within " +
                     std::to_string(2 * kMaxError.count()) + " ms",
                 "check its load and the network, or use a store that is closer"};
  }
  const Bounds bounds = At(now);
  const nanoseconds since = now.time_since_epoch();
  const auto least = kEpoch + std::chrono::floor<milliseconds>(since + bounds.least);
  const auto most = kEpoch + std::chrono::ceil<milliseconds>(since + bounds.most);
  WallTime shown = least + (most - least) / 2;
  if (last_ && *last_ > shown && *last_ <= most) shown = *last_;
  const Reading reading{shown, std::max(most - shown, shown - least)};
  if (reading.error > kMaxError) {
    return Error{
        Code::kUnavailable,
        "the store's time is only known to " + std::to_string(reading.error.count()) +
            " ms, and leases need it to " + std::to_string(kMaxError.count()) + " ms",
        "it answers too slowly, or the clocks of its nodes differ: check its load, the network and "
        "NTP, or use a store that is closer"};
  }
  last_ = shown;
  return reading;
}

ServerClock::Bounds ServerClock::At(MonoTime now) const {
  const nanoseconds age = std::max(now - at_, nanoseconds(0));
  const nanoseconds drift = age / 1'000'000 * kDriftPpm + disagreement_;
  return {bounds_->least - drift, bounds_->most + drift};
}

}  // namespace muster::store
