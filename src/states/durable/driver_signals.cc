#include "states/durable/driver_signals.h"

#include "states/durable/flow_record.h"

namespace muster::states {
namespace {

// Bounded, since parents that other processes drive are never taken here.
constexpr size_t kMaxEnded = 1'000;

}  // namespace

uint64_t DriverSignals::count() const {
  const MutexLock lock(mutex_);
  return count_;
}

void DriverSignals::Wait(store::Store& store, uint64_t seen, milliseconds timeout,
                         const std::stop_token& stop) {
  MutexLock lock(mutex_);
  if (count_ == seen && watched_) {
    ++waiting_;
    changed_.Wait(lock, timeout, stop);
    --waiting_;
  }
  if (count_ != seen || watched_ || stop.stop_requested()) return;
  watched_ = true;
  watch_ = std::stop_source();
  std::stop_source watch = watch_;
  lock.unlock();
  {
    const std::stop_callback also(stop, [&] { watch.request_stop(); });
    store.Wait(kKind, timeout, watch.get_token());
  }
  lock.lock();
  watched_ = false;
  // Another thread takes over the watch while this one works.
  changed_.NotifyOne();
}

void DriverSignals::SignalDue(size_t records) {
  if (records == 0) return;
  const MutexLock lock(mutex_);
  ++count_;
  if (records > waiting_) watch_.request_stop();
  if (records >= waiting_) {
    changed_.NotifyAll();
  } else {
    while (records-- > 0) changed_.NotifyOne();
  }
}

void DriverSignals::SignalAll() {
  const MutexLock lock(mutex_);
  ++count_;
  watch_.request_stop();
  changed_.NotifyAll();
}

void DriverSignals::AddEndedBranch(const std::string& parent) {
  const MutexLock lock(mutex_);
  if (ended_.size() >= kMaxEnded) ended_.clear();
  ended_.insert(parent);
}

bool DriverSignals::TakeEndedBranch(const std::string& parent) {
  const MutexLock lock(mutex_);
  return ended_.erase(parent) > 0;
}

}  // namespace muster::states
