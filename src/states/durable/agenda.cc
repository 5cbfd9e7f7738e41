#include "states/durable/agenda.h"

#include "states/durable/flow_record.h"

namespace muster::states {
namespace {

// Parents that are driven by other processes never take what was noted for them.
constexpr size_t kMostNoted = 1'000;

}  // namespace

uint64_t Agenda::news() const {
  const std::lock_guard lock(mutex_);
  return news_;
}

void Agenda::Wait(store::Store& store, uint64_t seen, milliseconds timeout,
                  const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  if (news_ == seen && watched_) {
    ++resting_;
    changed_.Wait(lock, timeout, stop);
    --resting_;
  }
  if (news_ != seen || watched_ || stop.stop_requested()) return;
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
  // Another one watches while this one works.
  changed_.NotifyOne();
}

void Agenda::Leave(size_t count) {
  if (count == 0) return;
  const std::lock_guard lock(mutex_);
  ++news_;
  if (count > resting_) watch_.request_stop();
  if (count >= resting_) {
    changed_.NotifyAll();
  } else {
    while (count-- > 0) changed_.NotifyOne();
  }
}

void Agenda::WakeAll() {
  const std::lock_guard lock(mutex_);
  ++news_;
  watch_.request_stop();
  changed_.NotifyAll();
}

void Agenda::NoteEnded(const std::string& parent) {
  const std::lock_guard lock(mutex_);
  if (ended_.size() >= kMostNoted) ended_.clear();
  ended_.insert(parent);
}

bool Agenda::TakeEnded(const std::string& parent) {
  const std::lock_guard lock(mutex_);
  return ended_.erase(parent) > 0;
}

}  // namespace muster::states
