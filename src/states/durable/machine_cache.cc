#include "states/durable/machine_cache.h"

#include <utility>

namespace muster::states {
namespace {

constexpr size_t kMaxMachines = 1'000;

}  // namespace

std::shared_ptr<const Definition> MachineCache::FindCached(const std::string& key) {
  const MutexLock lock(mutex_);
  const auto found = machines_.find(key);
  return found == machines_.end() ? nullptr : found->second;
}

Result<std::shared_ptr<const Definition>> MachineCache::Find(const std::string& key) {
  if (auto cached = FindCached(key)) return cached;
  MUSTER_ASSIGN(const std::string text, FlowCodec(store_).LoadMachine(key));
  MUSTER_ASSIGN(auto definition, ReadDefinition(text, "definition " + key, jsonata_));
  Put(key, definition);
  return definition;
}

Result<std::shared_ptr<const Definition>> MachineCache::FindFor(const FlowRecord& record) {
  MUSTER_ASSIGN(auto definition, Find(record.machine));
  const auto& machines = definition->machines;
  const Flow& flow = record.flow;
  if (flow.machine < 0 || static_cast<size_t>(flow.machine) >= machines.size() ||
      !machines[static_cast<size_t>(flow.machine)].states.contains(flow.state)) {
    return Error{Code::kCorrupt, "the record '" + record.record.key + "' is in a state '" +
                                     flow.state + "' that its definition does not have"};
  }
  return definition;
}

void MachineCache::Put(const std::string& key, std::shared_ptr<const Definition> definition) {
  const MutexLock lock(mutex_);
  if (machines_.size() >= kMaxMachines) machines_.clear();
  machines_.insert_or_assign(key, std::move(definition));
}

}  // namespace muster::states
