#include "sim/replica_world.h"

namespace muster::sim {

// An event may be parked only for a failure of its own: its processor throws, or workers that had
// it in flight hung or died.
void ReplicaWorld::CheckGuilt(const replica::ParkedEvent& parked) {
  const auto events = log_->Truth().ReadStream(parked.stream, parked.version - 1, 1).value();
  if (events.empty()) return Violate("Q", parked.stream + " is parked for no event");
  const auto number = std::stoll(events.front().payload);
  if (number == poison_ || in_hand_[events.front().position].size() >= 2) return;
  Violate("Q",
          parked.stream + " is parked for event " + std::to_string(number) + ", which is innocent");
}

void ReplicaWorld::CheckHandled(int version, const std::vector<events::Event>& all) {
  std::map<std::string, int64_t> expected;
  for (const events::Event& event : all) expected[event.stream] = event.version;
  const auto parked = Parked(version);
  for (const auto& [stream, versions] : expected) {
    int64_t waiting = 0;
    const int64_t handled = handled_[{version, stream}];
    const auto found = parked.find(stream);
    if (found != parked.end()) waiting = static_cast<int64_t>(found->second.versions.size());
    if (handled + waiting != versions) {
      Violate("L", stream + " has " + std::to_string(handled) + " handled and " +
                       std::to_string(waiting) + " parked of " + std::to_string(versions));
    }
    if (found != parked.end() && found->second.versions.front() != handled + 1) {
      Violate("O", stream + " is parked from another event on than the first that failed");
    }
  }
}

// Whatever versions there were, one of them has handled it with side effects, or will.
void ReplicaWorld::CheckEffects(const events::Event& event) {
  // Handling a log again repeats its side effects.
  if (ever_spoiled_ && (rebuilds_ || effects_[event.id] >= 1)) return;
  int64_t effects = effects_[event.id];
  for (const int version : Versions()) {
    const auto parked = Parked(version);
    const auto found = parked.find(event.stream);
    if (found == parked.end()) continue;
    const auto& waiting = found->second.versions;
    const bool waits = std::find(waiting.begin(), waiting.end(), event.version) != waiting.end();
    effects += waits && !found->second.quiet.contains(event.version);
  }
  if (effects != 1) {
    Violate("S", event.stream + ": event " + std::to_string(event.version) + " had side effects " +
                     std::to_string(effects) + " times");
  }
}

// The running counts must match the log.
void ReplicaWorld::CheckAudit(int version, const std::vector<events::Event>& all) {
  const auto states = model_->Truth().Slots({kSet, kProjection, version}).value();
  for (const replica::SlotState& state : states) {
    int64_t count = 0, digest = 0;
    for (const events::Event& event : all) {
      if (event.slot != state.slot || event.position > state.position) continue;
      ++count;
      digest ^= replica::DigestOf(event);
    }
    if (count != state.handled || digest != state.digest) {
      Violate("L", "slot " + std::to_string(state.slot) + " has counted " +
                       std::to_string(state.handled) + " events, the log has " +
                       std::to_string(count));
    }
  }
}

void ReplicaWorld::TakenOver(int version, int64_t generation, std::span<const int> slots) {
  for (const int slot : slots) {
    int64_t& highest = fence_[{version, slot}];
    highest = std::max(highest, generation);
  }
}

void ReplicaWorld::Committed(int version, const replica::ReadModelProgress& progress,
                             const std::vector<replica::MemoryReadModel::Statement>& statements,
                             const std::string& sender) {
  if (life_ > 0 && !IsOfThisLog(progress)) Spoil(version);
  const bool spoiled = spoiled_.contains(version);
  if (!spoiled && !progress.error.empty() && !progress.parked.empty())
    CheckGuilt(progress.parked.front());
  for (const replica::SlotMove& move : progress.moves) {
    const std::string slot = "slot " + std::to_string(move.slot);
    if (move.generation < fence_[{version, move.slot}]) {
      Violate("F", slot + ": a commit of generation " + std::to_string(move.generation) +
                       " took effect after generation " +
                       std::to_string(fence_[{version, move.slot}]) + " had taken over");
    }
    if (move.to < move.from || move.to < position_[{version, move.slot}]) {
      Violate("P", slot + ": its checkpoint went back");
    }
    if (!spoiled && log_->Truth().Hides({move.slot, move.to})) {
      Violate("L", slot + ": its checkpoint passes an event that has not committed yet");
    }
    position_[{version, move.slot}] = move.to;
    const auto [owner, fresh] = owner_.try_emplace({version, move.slot, move.generation}, sender);
    if (!fresh && owner->second != sender) {
      Violate("C", slot + " has two owners in generation " + std::to_string(move.generation) +
                       ": " + owner->second + " and " + sender);
    }
  }
  NoteParked(version, progress);
  if (!spoiled) return CheckOrder(version, statements);
  if (!statements.empty()) CheckHalt(version);
}

void ReplicaWorld::CheckOrder(int version,
                              const std::vector<replica::MemoryReadModel::Statement>& statements) {
  for (const auto& [sql, params] : statements) {
    const std::string& stream = *params[0];
    const int64_t event = std::stoll(*params[1]);
    int64_t& last = handled_[{version, stream}];
    if (event != last + 1) {
      Violate(event <= last ? "L" : "O", stream + ": event " + std::to_string(event) +
                                             " was handled after " + std::to_string(last));
    }
    last = event;
    ++committed_[version];
    if (*params[2] == "1" && ++effects_[*params[3]] > 1 && !ever_spoiled_) {
      Violate("S", stream + ": event " + std::to_string(event) + " had side effects twice");
    }
  }
}

void ReplicaWorld::NoteParked(int version, const replica::ReadModelProgress& progress) {
  for (const replica::ParkedEvent& event : progress.parked) {
    // It was unparked, and is parked again.
    if (!progress.error.empty()) replaying_.erase({version, event.stream});
    if (Parked(version).at(event.stream).error.empty()) {
      Violate("R", event.stream + " is parked without a reason");
    }
  }
  for (const replica::ParkedEvent& event : progress.failed)
    replaying_.erase({version, event.stream});
  for (const replica::ParkedEvent& event : progress.replayed) {
    if (!replaying_.contains({version, event.stream})) {
      Violate("R", event.stream + " is replayed unasked");
    }
    if (appended_ < events_) sim_->Sometimes("60 a stream is replayed while it is written to");
  }
}

void ReplicaWorld::Changed(const store::Change& change, const std::optional<store::Record>& before,
                           const std::optional<store::Record>& after) {
  if (change.record.key == replica::SetKey(kSet)) return SetChanged(change, before, after);
  if (after && change.record.key.starts_with(kSet + "/suspect/")) {
    const auto suspect = replica::Suspect::FromBody(after->body);
    if (!suspect) return Violate("P", suspect.error().message);
    for (const int64_t position : suspect->positions) in_hand_[position].insert(suspect->worker);
  }
  if (!after || before == after || !change.record.key.starts_with(replica::MemberKey(kSet, "")))
    return;
  const auto& now = states_seen_[after->body];
  if (!now) return Violate("P", now.error().message);
  const std::string id = change.record.key.substr(replica::MemberKey(kSet, "").size());
  if (before) {
    const auto& was = states_seen_[before->body];
    if (was && was->phase == replica::MemberState::Phase::kDead &&
        now->phase != replica::MemberState::Phase::kDead) {
      Violate("P", id + " was dead and is alive again");
    }
  }
  if (now->phase == replica::MemberState::Phase::kReady) ready_.emplace(id, now->generation);
  const replica::Generation* const generation = Current();
  if (generation == nullptr || generation->assignment.PartitionOf(id) < 0) return;
  const bool preparing = generation->phase == replica::Generation::Phase::kPreparing;
  if (now->phase == replica::MemberState::Phase::kDead && preparing) {
    sim_->Sometimes("38 a member dies inside the barrier");
  }
  if (now->phase == replica::MemberState::Phase::kRunning) {
    for (const std::string& other : generation->assignment.members) {
      const auto* const state = StateOf(other);
      if (state != nullptr && state->phase == replica::MemberState::Phase::kReady &&
          state->generation == generation->number) {
        sim_->Sometimes("35 a fast worker is running while a slow one is only ready");
      }
    }
  }
}

void ReplicaWorld::SetChanged(const store::Change& change,
                              const std::optional<store::Record>& before,
                              const std::optional<store::Record>& after) {
  const auto& wanted = generations_seen_[change.record.body];
  if (!wanted) return Violate("G", wanted.error().message);
  static const Result<replica::Generation> kNone = replica::Generation{};
  const auto& was = before ? generations_seen_[before->body] : kNone;
  if (before == after) {
    if (was && wanted->number <= was->number &&
        wanted->phase == replica::Generation::Phase::kPreparing) {
      sim_->Sometimes("34 two coordinators create a generation at once");
    }
    return;
  }
  const auto& now = generations_seen_[after->body];
  if (!was || !now) return Violate("G", "the set's record cannot be read");
  if (now->phase == replica::Generation::Phase::kPreparing) {
    ++generations_;
    if (now->number != was->number + 1) {
      Violate("G", "generation " + std::to_string(was->number) + " was followed by " +
                       std::to_string(now->number));
    }
    creator_ = std::string(sim_->CurrentName());
    proposed_at_ = sim_->now();
    const int64_t bound = 2 + 2 * sim_->faults_fired() + (crowd_ ? 0 : 30);
    if (generations_ > bound) {
      Violate("B", std::to_string(generations_) + " generations after " +
                       std::to_string(sim_->faults_fired()) + " faults");
    }
    return;
  }
  if (now->number != was->number || now->assignment != was->assignment) {
    Violate("G", "\"go\" changed generation " + std::to_string(was->number));
  }
  Went(*now);
}

void ReplicaWorld::Went(const replica::Generation& now) {
  if (now.assignment.owners.size() != static_cast<size_t>(log_->slots())) {
    Violate("C", "after \"go\" of generation " + std::to_string(now.number) +
                     " not every slot has an owner");
  }
  for (const std::string& id : now.assignment.members) {
    if (!ready_.contains({id, now.number})) Violate("C", "\"go\" came before " + id + " was ready");
  }
  if (slow_ > nanoseconds(0) && sim_->now() - proposed_at_ > terms_.barrier_timeout) {
    sim_->Sometimes("43 a batch is slower than the barrier");
  }
  const size_t members = now.assignment.members.size();
  if (members < static_cast<size_t>(log_->slots())) {
    sim_->Sometimes("39 fewer members than slots");
  }
  if (partitions_ != 0 && members != partitions_ && committed_[1] > 0 && committed_[1] < events_) {
    sim_->Sometimes("42 the number of partitions changes in mid-stream");
  }
  partitions_ = members;
}

// Called when a process starts: if it started before, it has crashed or was stopped.
void ReplicaWorld::NoteRestart(const std::string& name) {
  const replica::Generation* const generation = Current();
  if (!started_.insert(name).second && generation != nullptr &&
      generation->phase == replica::Generation::Phase::kPreparing) {
    size_t ready = 0;
    for (const std::string& id : generation->assignment.members) {
      const auto* const state = StateOf(id);
      ready += state != nullptr && state->ReadyFor(generation->number);
    }
    const bool all = ready == generation->assignment.members.size();
    if (all) sim_->Sometimes("33 a coordinator dies after all are ready, before go");
    if (creator_ == name && ready == 0) {
      sim_->Sometimes("31 a coordinator dies after it has created a generation");
    }
    if (creator_ == name && ready > 0) {
      sim_->Sometimes("32 a coordinator dies when part of a generation is ready");
    }
  }
}

}  // namespace muster::sim
