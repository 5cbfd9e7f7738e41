// What a worker does while its generation runs: starts and pauses followers, detects hangs, and
// records events in flight.

#include <algorithm>

#include "core/planted_bug.h"
#include "muster/store.h"
#include "replica/worker.h"

namespace muster::replica {
namespace {

constexpr milliseconds kRemembered{24 * 3'600'000};  // retention of suspect events

}  // namespace

Status Worker::LookForHangs() {
  const int64_t now = env_.MonoNow().time_since_epoch().count();
  for (const auto& [name, running] : running_) {
    const int64_t busy = running.follower->pulse().busy_since_ns;
    if (busy == 0 || now - busy <= std::chrono::nanoseconds(options_.handle_timeout).count()) {
      continue;
    }
    return NoteHang(running);
  }
  return {};
}

// Projections with serialized batches: if workers of one deadlock, all of them must know.
std::vector<std::string> Worker::Serialized(const SetView& view) {
  std::set<std::string> names = view.Serialized();
  for (const auto& [name, running] : running_) {
    if (running.follower->IsSerial()) names.insert(name.first);
  }
  for (const auto& [name, running] : running_) {
    if (names.contains(name.first)) running.follower->Serialize();
  }
  return {names.begin(), names.end()};
}

// Starts, pauses and watches the followers of a running generation.
Status Worker::ManageFollowers(const SetView& view) {
  MUSTER_TRY(LookForHangs());
  if (!go_) return {};
  std::vector<std::string> stopped;
  for (auto& [name, running] : running_) {
    const DesiredState desired = DesiredOf(view, name.first);
    const bool held =
        std::find(desired.held.begin(), desired.held.end(), name.second) != desired.held.end();
    const bool paused = desired.paused && !PLANTED_BUG(paused_projection_goes_on);
    const bool wanted = !paused && !held;
    const bool asked_back = running.asked_back && !PLANTED_BUG(asked_back_is_forgotten);
    if (!wanted || asked_back) Stop(running, milliseconds(0));
    if (!wanted && !running.given) stopped.push_back(StoppedName(name.first, name.second));
    if (wanted && !running.given) {
      running.follower->SetSuspectEvents(view.SuspectEvents(name.first, name.second));
      runner_.Start(*running.follower);
      running.given = true;
    }
    if (auto failure = runner_.Failure(*running.follower)) {
      if (failure->code == Code::kLeaseLost) {
        // Another worker took over in a generation that we have not read yet, or the store has lost
        // generations that the fence remembers.
        Stop(running, kStopPatience);
        MUSTER_ASSIGN(const int64_t highest, model_.HighestGeneration(options_.set));
        member_.GenerationsSeenUpTo(highest);
        continue;
      }
      if (failure->code == Code::kIncompatible) return *failure;
      ReportTrouble(running.trouble, name.first + ": " + failure->message);
    } else if (running.follower->pulse().sound) {
      Recover(running.trouble);
    }
  }
  std::vector<std::string> serial = Serialized(view);
  if (stopped == member_.state().stopped && serial == member_.state().serial) return {};
  member_.state().stopped = std::move(stopped);
  member_.state().serial = std::move(serial);
  return member_.Say(member_.state().phase, member_.state().generation);
}

// Records a worker's events in flight, or that there are none any more.
Status Worker::NoteInFlight(const Instance& instance, const std::vector<int64_t>& positions,
                            int hangs) {
  const std::string key =
      SuspectKey(options_.set, instance.projection, instance.version, member_.id());
  const auto note =
      [&](std::optional<store::Record> stored) -> Result<std::optional<store::Change>> {
    if (!stored && positions.empty()) return std::nullopt;
    if (stored) {
      MUSTER_ASSIGN(const Suspect known, Suspect::FromBody(stored->body));
      if (known.hangs > 0) return std::nullopt;
    }
    store::Record record =
        stored ? *std::move(stored)
               : store::Record{.kind = kReplicaKind, .queue = kReplicaQueue, .key = key};
    if (positions.empty()) return store::Change::Delete(std::move(record));
    const Suspect suspect{instance.projection, instance.version, member_.id(), positions, hangs};
    record.body = suspect.ToBody();
    return store::Change::Put(std::move(record), store::Due::After(kRemembered));
  };
  return store::Update(store_, kReplicaKind, key, note);
}

// A processor hangs. Its thread cannot be ended, but the others need not wait: its events are
// recorded, and this worker leaves the set until the processor returns.
Status Worker::NoteHang(const Running& running) {
  const Instance& instance = running.follower->instance();
  const std::vector<int64_t> positions = running.follower->pulse().InFlight();
  MUSTER_TRY(NoteInFlight(instance, positions, 1));
  static_cast<void>(member_.Leave());
  return Error{Code::kLeaseLost, "projection '" + instance.projection + "' hangs at position " +
                                     std::to_string(positions.front())};
}

}  // namespace muster::replica
