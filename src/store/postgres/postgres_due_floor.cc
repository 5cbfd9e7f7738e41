#include "store/postgres/postgres_due_floor.h"

#include "core/mutex.h"

namespace muster::store {
namespace {

constexpr std::chrono::seconds kValidFor{1};
constexpr size_t kMaxQueues = 1'000;  // beyond that all are dropped, which only costs time

}  // namespace

WallTime PostgresDueFloor::Get(const std::string& kind, const std::string& queue) {
  const MonoTime now = env_.MonoNow();
  const MutexLock lock(mutex_);
  const auto found = floors_.find({kind, queue});
  if (found == floors_.end()) return kNone;
  if (now < found->second.valid_until) return found->second.due;
  // One claim scans from the start, while the others continue as before.
  found->second.valid_until = now + kValidFor;
  return kNone;
}

void PostgresDueFloor::Set(const std::string& kind, const std::string& queue, WallTime oldest) {
  const MonoTime now = env_.MonoNow();
  const MutexLock lock(mutex_);
  if (floors_.size() >= kMaxQueues) floors_.clear();
  const auto [floor, is_new] = floors_.try_emplace({kind, queue});
  floor->second.due = oldest;
  if (is_new) floor->second.valid_until = now + kValidFor;
}

}  // namespace muster::store
