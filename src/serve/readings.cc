#include "serve/readings.h"

#include <algorithm>

#include "core/guard.h"
#include "core/mutex.h"
#include "core/secrets.h"

namespace muster::serve {
namespace {

constexpr size_t kMaxEntries = 512;
constexpr std::chrono::milliseconds kLeast(100);
constexpr std::chrono::milliseconds kMost(10'000);
constexpr int kShare = 10;

}  // namespace

std::shared_ptr<const Reading> Readings::Get(const std::string& path) {
  std::shared_ptr<Entry> entry;
  int64_t age = 0;
  {
    const MutexLock lock(mutex_);
    age = age_;
    if (entries_.size() > kMaxEntries && !entries_.contains(path)) entries_.clear();
    std::shared_ptr<Entry>& slot = entries_[path];
    if (slot == nullptr) slot = std::make_shared<Entry>();
    entry = slot;
  }
  const MutexLock lock(entry->mutex);
  const MonoTime start = env_.MonoNow();
  if (entry->reading != nullptr && start < entry->good_until && entry->age >= age) {
    return entry->reading;
  }
  // An exception over a damaged record fails this reading, not the server.
  Reading reading{GuardedThread(path, [&] { return read_(path); })};
  if (reading.data) reading.text = Redact(ToJsonText(*reading.data));
  const MonoTime end = env_.MonoNow();
  entry->good_until =
      end + std::clamp<std::chrono::nanoseconds>(kShare * (end - start), kLeast, kMost);
  entry->age = age;
  entry->reading = std::make_shared<const Reading>(std::move(reading));
  return entry->reading;
}

void Readings::Forget() {
  const MutexLock lock(mutex_);
  ++age_;
}

}  // namespace muster::serve
