#include "replica/memory_read_model.h"

#include <algorithm>

#include "core/mutex.h"
#include "core/planted_bug.h"

namespace muster::replica {

Result<std::vector<SlotState>> MemoryReadModel::TakeOver(const Instance& instance,
                                                         int64_t generation,
                                                         std::span<const int> slots) {
  const MutexLock lock(mutex_);
  Model& model = models_[{instance.set, instance.projection, instance.version}];
  for (const int slot : slots) {
    const auto found = model.slots.find(slot);
    if (found == model.slots.end() || found->second.generation <= generation) continue;
    return Error{Code::kLeaseLost, "slot " + std::to_string(slot) + " belongs to generation " +
                                       std::to_string(found->second.generation)};
  }
  std::vector<SlotState> states;
  for (const int slot : slots) {
    SlotState& state = model.slots[slot];
    state.slot = slot;
    state.generation = generation;
    states.push_back(state);
  }
  return states;
}

Result<std::unique_ptr<Transaction>> MemoryReadModel::Begin() {
  return std::make_unique<MemoryTransaction>();
}

Status MemoryReadModel::Commit(Transaction& transaction, const Instance& instance,
                               const ReadModelProgress& progress) {
  return Apply(static_cast<MemoryTransaction&>(transaction).statements, instance, progress);
}

Status MemoryReadModel::Commit(Transaction& transaction) {
  return Apply(static_cast<MemoryTransaction&>(transaction).statements, {}, {});
}

Status MemoryReadModel::Apply(const std::vector<Statement>& statements, const Instance& instance,
                              const ReadModelProgress& progress) {
  const MutexLock lock(mutex_);
  MUSTER_TRY(Move(models_[{instance.set, instance.projection, instance.version}], progress));
  statements_.insert(statements_.end(), statements.begin(), statements.end());
  return {};
}

Status MemoryReadModel::CheckParked(const Model& model, const ReadModelProgress& progress) {
  const auto lost = [](const std::string& stream) {
    return Error{Code::kLeaseLost, "stream '" + stream + "' is not parked as it was"};
  };
  for (const ParkedEvent& event : progress.parked) {
    if (PLANTED_BUG(replayed_streams_stay_parked)) break;
    if (progress.error.empty() && !model.parked.contains(event.stream)) return lost(event.stream);
  }
  for (const auto* events : {&progress.replayed, &progress.failed}) {
    for (const ParkedEvent& event : *events) {
      const auto found = model.parked.find(event.stream);
      if (found == model.parked.end()) return lost(event.stream);
      const auto& versions = found->second.versions;
      if (std::find(versions.begin(), versions.end(), event.version) == versions.end()) {
        return lost(event.stream);
      }
    }
  }
  return {};
}

Status MemoryReadModel::Move(Model& model, const ReadModelProgress& progress) {
  for (const SlotMove& move : progress.moves) {
    const SlotState& state = model.slots[move.slot];
    const bool moved = state.position != move.from;
    const bool handed_over =
        state.effects_until != move.effects_until && !PLANTED_BUG(hand_over_is_not_compared);
    if ((state.generation != move.generation && !PLANTED_BUG(no_fence)) || moved || handed_over) {
      return Error{Code::kLeaseLost, "slot " + std::to_string(move.slot) + " is at position " +
                                         std::to_string(state.position) + " of generation " +
                                         std::to_string(state.generation)};
    }
  }
  MUSTER_TRY(CheckParked(model, progress));
  for (const SlotMove& move : progress.moves) {
    SlotState& state = model.slots[move.slot];
    state.position = move.to;
    state.handled += move.handled;
    state.digest ^= move.digest;
    state.skipped += move.skipped;
    if (move.mark.position != 0) state.mark = move.mark;
  }
  for (const ParkedEvent& event : progress.failed) {
    model.parked[event.stream].error = progress.error;
    model.parked[event.stream].replay = false;
  }
  for (const ParkedEvent& event : progress.parked) {
    ParkedStream& stream = model.parked[event.stream];
    stream.slot = event.slot;
    stream.stream = event.stream;
    if (!progress.error.empty()) {
      stream.error = progress.error;
      stream.replay = false;
    }
    if (std::find(stream.versions.begin(), stream.versions.end(), event.version) ==
        stream.versions.end()) {
      stream.versions.push_back(event.version);
      if (!event.side_effects) stream.quiet.insert(event.version);
    }
  }
  for (const ParkedEvent& event : progress.replayed) Free(model, event);
  return {};
}

void MemoryReadModel::Free(Model& model, const ParkedEvent& event) {
  ParkedStream& stream = model.parked[event.stream];
  std::erase(stream.versions, event.version);
  stream.quiet.erase(event.version);
  if (stream.versions.empty()) model.parked.erase(event.stream);
}

Status MemoryReadModel::SkipParked(const Instance& instance, const ParkedEvent& event) {
  const MutexLock lock(mutex_);
  Model& model = models_[{instance.set, instance.projection, instance.version}];
  if (!CheckParked(model, {.replayed = {event}})) {
    return Error{Code::kNotFound, "the event is not parked any more"};
  }
  const bool failed = model.parked[event.stream].versions.front() == event.version;
  Free(model, event);
  const auto rest = model.parked.find(event.stream);
  if (failed && rest != model.parked.end()) rest->second.error = SkippedError(event.version);
  ++model.slots[event.slot].skipped;
  return {};
}

Status MemoryReadModel::Swap(Transaction& transaction, const Instance& from, int to, int slots) {
  return ApplySwap(static_cast<MemoryTransaction&>(transaction).statements, from, to, slots);
}

Status MemoryReadModel::ApplySwap(const std::vector<Statement>& statements, const Instance& from,
                                  int to, int slots) {
  const MutexLock lock(mutex_);
  if (from.version == to) return SwappedIn(from);
  Model& before = models_[{from.set, from.projection, from.version}];
  Model& after = models_[{from.set, from.projection, to}];
  for (int slot = 0; slot < slots; ++slot) {
    const auto found = after.slots.find(slot);
    const auto old = before.slots.find(slot);
    if (found == after.slots.end() ||
        (old != before.slots.end() && found->second.position < old->second.position)) {
      return Error{Code::kConflict, "version " + std::to_string(to) + " is behind"};
    }
  }
  for (auto& [slot, state] : after.slots) {
    if (state.effects_until == kEffectsAlways) continue;
    before.slots[slot].slot = slot;
    before.slots[slot].effects_until = state.position;
    state.effects_until = kEffectsAlways;
  }
  statements_.insert(statements_.end(), statements.begin(), statements.end());
  return {};
}

Result<std::vector<SlotState>> MemoryReadModel::Slots(const Instance& instance) {
  const MutexLock lock(mutex_);
  std::vector<SlotState> states;
  for (const auto& [slot, state] :
       models_[{instance.set, instance.projection, instance.version}].slots) {
    states.push_back(state);
  }
  return states;
}

Result<int64_t> MemoryReadModel::HighestGeneration(const std::string& set) {
  const MutexLock lock(mutex_);
  int64_t highest = 0;
  for (const auto& [name, model] : models_) {
    if (std::get<0>(name) != set) continue;
    for (const auto& [slot, state] : model.slots) highest = std::max(highest, state.generation);
  }
  return highest;
}

Result<std::vector<ParkedStream>> MemoryReadModel::Parked(const Instance& instance,
                                                          std::span<const int> slots) {
  const MutexLock lock(mutex_);
  std::vector<ParkedStream> streams;
  for (const auto& [name, stream] :
       models_[{instance.set, instance.projection, instance.version}].parked) {
    if (std::find(slots.begin(), slots.end(), stream.slot) != slots.end()) {
      streams.push_back(stream);
    }
  }
  return streams;
}

Result<int64_t> MemoryReadModel::RequestReplay(const Instance& instance,
                                               const std::string& stream) {
  const MutexLock lock(mutex_);
  int64_t asked = 0;
  for (auto& [name, parked] :
       models_[{instance.set, instance.projection, instance.version}].parked) {
    if (!stream.empty() && name != stream) continue;
    parked.replay = true;
    ++asked;
  }
  return asked;
}

Status MemoryReadModel::Put(Transaction&, const Instance& instance,
                            std::span<const events::SlotPosition> slots, bool forget) {
  const MutexLock lock(mutex_);
  Model& model = models_[{instance.set, instance.projection, instance.version}];
  for (const events::SlotPosition& slot : slots) {
    SlotState& state = model.slots[slot.slot];
    state.slot = slot.slot;
    state.position = slot.position;
    state.mark = {};
    if (!forget) continue;
    state.handled = 0;
    state.digest = 0;
    state.skipped = 0;
    std::erase_if(model.parked, [&](const auto& p) { return p.second.slot == slot.slot; });
  }
  return {};
}

Status MemoryReadModel::Forget(Transaction&, const Instance& instance, bool unless_swapped_in) {
  const MutexLock lock(mutex_);
  for (const auto& [slot, state] :
       models_[{instance.set, instance.projection, instance.version}].slots) {
    if (unless_swapped_in && state.effects_until == kEffectsAlways) return SwappedIn(instance);
  }
  models_.erase({instance.set, instance.projection, instance.version});
  return {};
}

std::vector<MemoryReadModel::Statement> MemoryReadModel::Statements() const {
  const MutexLock lock(mutex_);
  return statements_;
}

}  // namespace muster::replica
