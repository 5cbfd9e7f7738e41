#include "sim/work_leases.h"

#include <algorithm>
#include <utility>

#include "muster/store.h"

namespace muster::sim {
namespace {

constexpr nanoseconds kNoticed = milliseconds(1'100);  // the end of a lease, by its holder

// A restored store may grant the same epoch to another owner.
std::string HeldBy(const std::string& owner, const std::string& key, int64_t epoch) {
  return key + " epoch " + std::to_string(epoch) + " of " + owner;
}

}  // namespace

std::string WorkLeases::Of(const pipeline::Fence& fence) const {
  return HeldBy(store::OwnerName(std::string(sim_.CurrentName()), fence.holder),
                work::ItemKey("run", fence.item), fence.epoch);
}

void WorkLeases::Granted(const std::string& owner, const std::string& key, int64_t epoch,
                         nanoseconds until) {
  // A removed and recreated item starts over with its epochs.
  const std::string held = HeldBy(owner, key, epoch);
  held_.erase(held);
  lasts_[held] = until;
}

void WorkLeases::Renewed(const store::Change& change, const store::Record& after,
                         bool is_checkpoint) {
  if (change.due.kind != store::Due::Kind::kAfter || after.owner.empty()) return;
  const std::string lease = HeldBy(after.owner, after.key, after.epoch);
  lasts_[lease] = sim_.now() + change.due.delay;
  // A hand-over also renews the lease before it creates the successor.
  const auto held = held_.find(lease);
  if (held == held_.end()) return;
  held->second.deadline = std::max(held->second.deadline, sim_.now() + change.due.delay);
  if (is_checkpoint) held->second.stop_at_checkpoint = is_stopped_ ? stops_ : 0;
}

void WorkLeases::RunChanged(bool stopped) {
  if (stopped && !is_stopped_) ++stops_;
  is_stopped_ = stopped;
}

void WorkLeases::Forget() {
  held_.clear();
  lasts_.clear();
}

void WorkLeases::Holds(const work::WorkItem& item) {
  const std::string held = Of(item.fence());
  const nanoseconds believed = item.deadline().time_since_epoch();
  HeldUntil& until = held_[held];
  until.lapsed |= until.believed.count() > 0 && sim_.now() > until.believed;
  until.believed = until.deadline = believed;
  if (const auto lasts = lasts_.find(held); lasts != lasts_.end() && believed > lasts->second)
    sim_.Violate("F", item.name() + ": its holder counts on a longer lease than it has");
}

void WorkLeases::Begins(const pipeline::Fence& fence) {
  const auto held = held_.find(Of(fence));
  if (held == held_.end() || sim_.Unwinding()) return;
  if (is_stopped_ && held->second.stop_at_checkpoint == stops_)
    sim_.Violate("Q", fence.item + ": a batch begins after a checkpoint in a run that is stopped");
  if (sim_.now() > std::max(held->second.deadline, sim_.RunsSince()) + kNoticed)
    sim_.Violate("F", fence.item + ": a batch begins after the lease has ended");
}

bool WorkLeases::WasStopped(const work::WorkItem& item, const Error* why) const {
  if (scene_.went_back || why == nullptr || why->code != Code::kCancelled ||
      why->message == "held long enough" || why->message == work::kRunIsStopped)
    return false;
  const auto held = held_.find(Of(item.fence()));
  return held != held_.end() && !held->second.lapsed && sim_.now() < held->second.believed;
}

bool WorkLeases::Sends(const store::Change& change) {
  const store::Record& record = change.record;
  const auto held = held_.find(HeldBy(record.owner, record.key, record.epoch));
  if (held == held_.end() || sim_.now() <= held->second.deadline) return true;
  // One may be in flight if time runs out between checking the clock and the call, and another
  // only if a further fault stopped its sender there.
  const int faults = sim_.faults_fired();
  if (std::exchange(held->second.faults_at_late_send, faults) == faults)
    sim_.Violate("F", record.key + ": its holder goes on writing after the lease has ended");
  return false;
}

}  // namespace muster::sim
