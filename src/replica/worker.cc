#include "replica/worker.h"

#include <algorithm>

#include "core/guard.h"
#include "core/log.h"
#include "core/planted_bug.h"

namespace muster::replica {
namespace {

constexpr milliseconds kTroublePause{250};
constexpr milliseconds kSayEvery{10'000};

std::vector<std::string> NamesOf(const std::vector<std::shared_ptr<Projection>>& projections) {
  std::vector<std::string> names;
  for (const auto& projection : projections) names.push_back(projection->name());
  return names;
}

}  // namespace

Worker::Worker(store::Store& store, events::EventLog& log, ReadModel& model,
               std::vector<std::shared_ptr<Projection>> projections, const ReplicaOptions& options,
               ReplicaObserver& observer, FollowerRunner& runner, Env& env)
    : store_(store),
      log_(log),
      model_(model),
      env_(env),
      options_(options),
      projections_(std::move(projections)),
      observer_(observer),
      runner_(runner),
      member_(store, env, options_, log.slots(), NamesOf(projections_)) {}

ReplicaEvent Worker::EventOf(ReplicaEvent::Kind kind) const {
  return {.kind = kind,
          .worker = member_.id(),
          .generation = started_ != 0 ? started_ : prepared_,
          .partition = partition_.key,
          .partitions = partition_.total};
}

void Worker::Report(ReplicaEvent::Kind kind, const std::string& error) {
  ReplicaEvent event = EventOf(kind);
  event.error = error;
  observer_.Happened(event);
}

Status Worker::Run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    Status registered = Enter();
    if (!registered) {
      if (!IsTransient(registered.error().code)) return registered;
      Report(ReplicaEvent::Kind::kTrouble, registered.error().message);
      env_.Sleep(kTroublePause + env_.Jitter(kTroublePause), stop);
      continue;
    }
    Report(ReplicaEvent::Kind::kRegistered);
    Status served = Serve(stop);
    const bool lost = !served && served.error().code == Code::kLeaseLost;
    if (!lost && served) {
      // Announced first: the others reconfigure while the last batch ends.
      static_cast<void>(member_.Say(MemberState::Phase::kStopping, prepared_));
    }
    deadline_ns_ = 0;
    while (!StopAll(kSayEvery)) {
      Log(Level::kWarning, "waiting for a projection that does not return",
          {{"set", options_.set}, {"worker", member_.id()}});
    }
    CountHandled();
    Reset();
    if (!served && !lost) return served;
    if (lost) {
      Log(Level::kWarning, "worker lost", {{"set", options_.set}, {"why", served.error().message}});
      Report(ReplicaEvent::Kind::kLost, served.error().message);
      env_.Sleep(env_.Jitter(kTroublePause), stop);
      continue;
    }
    static_cast<void>(member_.Leave());
    Report(ReplicaEvent::Kind::kStopped);
  }
  return {};
}

// A store that was restored or recreated may have older generations than the fences.
Status Worker::Enter() {
  MUSTER_ASSIGN(const int64_t highest, model_.HighestGeneration(options_.set));
  member_.GenerationsSeenUpTo(highest);
  return member_.Register();
}

void Worker::CountHandled() {
  int64_t handled = handled_before_;
  for (const auto& [name, running] : running_) handled += running.follower->pulse().handled;
  member_.state().handled = handled;
}

void Worker::DropFollowers() {
  for (const auto& [name, running] : running_) {
    handled_before_ += running.follower->pulse().handled;
  }
  running_.clear();
}

void Worker::Reset() {
  DropFollowers();
  prepared_ = started_ = 0;
  go_ = false;
}

Status Worker::Look() {
  CountHandled();
  const auto view = member_.Tick();
  deadline_ns_ = member_.deadline().time_since_epoch().count();
  if (!view) return view.error();
  MUSTER_TRY(Follow(**view));
  return ManageFollowers(**view);
}

void Worker::ReportTrouble(std::string& trouble, const std::string& error) {
  trouble = error;
  member_.state().error = error;
  Report(ReplicaEvent::Kind::kTrouble, error);
}

// Operators see current trouble, not past trouble.
void Worker::Recover(std::string& trouble) {
  if (!trouble.empty() && member_.state().error == trouble) member_.state().error.clear();
  trouble.clear();
}

Status Worker::Serve(std::stop_token stop) {
  while (!stop.stop_requested()) {
    // Projections are set up and built in here, and may throw anything.
    if (Status done = Guarded("a worker of the set", [&] { return Look(); }); !done) {
      if (!IsTransient(done.error().code)) return done;
      ReportTrouble(trouble_, done.error().message);
      env_.Sleep(env_.Jitter(kTroublePause), stop);
    } else {
      Recover(trouble_);
    }
    runner_.Wait(member_.Rest(), stop);
  }
  return {};
}

Status Worker::Follow(const SetView& view) {
  MUSTER_TRY(view.CheckNotForgotten(NamesOf(projections_)));
  const Generation& generation = view.generation;
  const int partition = generation.assignment.PartitionOf(member_.id());
  if (partition < 0) {
    // Not a member: pending, or standing by. Our slots have other owners now.
    if (generation.number > prepared_ && prepared_ != 0) {
      if (!StopAll(kStopPatience)) return {};
      Reset();
      Report(ReplicaEvent::Kind::kStandby);
      MUSTER_TRY(member_.Say(MemberState::Phase::kPending, 0));
    }
    return {};
  }
  if (prepared_ != generation.number) {
    MUSTER_TRY(Prepare(view, generation.assignment.SlotsOf(partition), partition));
    if (prepared_ != generation.number) return {};
    MUSTER_TRY(member_.Say(MemberState::Phase::kReady, generation.number));
    Report(ReplicaEvent::Kind::kReady);
  }
  if (!MayStart(view)) return {};
  if (started_ != generation.number) MUSTER_TRY(Start(view));
  return EnsureFollowers(view);
}

// "Go" is stored permanently in the set's record. A worker that checked the others' phases instead,
// and found one already running, would wait forever.
bool Worker::MayStart(const SetView& view) {
  if (PLANTED_BUG(naive_barrier)) {
    const auto& members = view.generation.assignment.members;
    return std::all_of(members.begin(), members.end(), [&](const std::string& id) {
      const auto found = view.members.find(id);
      return found != view.members.end() &&
             found->second.state.phase == MemberState::Phase::kReady &&
             found->second.state.generation == view.generation.number;
    });
  }
  return view.generation.phase == Generation::Phase::kRunning;
}

// Stops all followers. Until the last batch has ended we are busy, which the others wait for; a
// hanging batch is handled by LookForHangs.
Status Worker::EndBatches() {
  const bool busy = !StopAll(std::min(kStopPatience, options_.barrier_timeout / 4));
  if (busy == member_.state().busy) return {};
  member_.state().busy = busy;
  // The next step announces that we are ready.
  if (!busy) return {};
  return member_.Say(member_.state().phase, member_.state().generation);
}

// Stops what must stop, and acquires the slots of the new generation.
Status Worker::Prepare(const SetView& view, const std::vector<int>& slots, int partition) {
  const Generation& generation = view.generation;
  // If we missed a generation, others may have taken over our slots.
  const bool incremental =
      generation.strategy == Strategy::kIncremental && generation.number == prepared_ + 1;
  const bool same = incremental && slots == slots_;
  if (!same) {
    go_ = false;
    MUSTER_TRY(EndBatches());
    if (member_.state().busy) return {};
  }
  partition_ = {.key = partition,
                .total = static_cast<int>(generation.assignment.members.size()),
                .generation = generation.number};
  if (!incremental) {
    // Processors are built for one generation and its number of partitions.
    DropFollowers();
  }
  if (!same) {
    for (auto& [name, running] : running_) {
      Status owned = running.follower->Own(slots, generation.number, incremental);
      if (owned) running.follower->SetOrphans(generation.orphans);
      if (owned) continue;
      if (owned.error().code != Code::kLeaseLost) return owned;
      // Either we are behind the set, and the next look shows it, or the store is behind the fence.
      MUSTER_ASSIGN(const int64_t highest, model_.HighestGeneration(options_.set));
      member_.GenerationsSeenUpTo(highest);
      return {};
    }
  }
  slots_ = slots;
  MUSTER_TRY(EnsureFollowers(view));
  member_.state().busy = false;
  prepared_ = generation.number;
  // Followers whose slots did not move never stop.
  paused_ = !same;
  return {};
}

Status Worker::Start(const SetView& view) {
  started_ = view.generation.number;
  go_ = true;
  MUSTER_TRY(member_.Say(MemberState::Phase::kRunning, started_));
  Report(ReplicaEvent::Kind::kRunning);
  if (auto now = store_.Now()) {
    const milliseconds since = now->time_since_epoch() - milliseconds(view.generation.since_ms);
    const milliseconds pause = paused_ ? std::max(milliseconds(0), since) : milliseconds(0);
    member_.state().pause_ms = pause.count();
    ReplicaEvent event = EventOf(ReplicaEvent::Kind::kReconfigured);
    for (const int slot : slots_) event.pauses.emplace_back(slot, pause);
    observer_.Happened(event);
  }
  return {};
}

bool Worker::Stop(Running& running, milliseconds patience) {
  if (!running.given) return true;
  running.asked_back = true;
  if (!runner_.Take(*running.follower, patience)) return false;
  running.given = running.asked_back = false;
  // Saves the next owner from scanning empty ranges. Harmless if it fails.
  static_cast<void>(running.follower->Flush());
  // It came back: its events in flight are no longer suspect.
  static_cast<void>(running.follower->ClearInFlight());
  return true;
}

// Requests all stops first: the total wait, and so the heartbeat's delay, is that of the slowest.
bool Worker::StopAll(milliseconds patience) {
  const MonoTime end = env_.MonoNow() + patience;
  for (auto& [name, running] : running_) Stop(running, milliseconds(0));
  bool all = true;
  for (auto& [name, running] : running_) {
    const auto left = std::chrono::floor<milliseconds>(end - env_.MonoNow());
    all &= Stop(running, std::max(left, milliseconds(0)));
  }
  return all;
}

}  // namespace muster::replica
