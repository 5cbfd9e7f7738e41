#include "replica/worker.h"

#include <algorithm>

#include "core/guard.h"
#include "core/log.h"
#include "core/planted_bug.h"
#include "replica/definitions.h"

namespace muster::replica {
namespace {

constexpr milliseconds kTroublePause{250};
constexpr milliseconds kSayEvery{10'000};
constexpr int kSetUpTries = 5;
// A swap waits until the new version has stored its position in every slot, including idle ones.
constexpr milliseconds kFlushAlone{5'000};
constexpr milliseconds kFlushBesideAnother{500};
// Memory for a worker's events, and as much again for read-ahead; shared by its followers.
constexpr size_t kEventMemory = 64 * 1024 * 1024;
constexpr size_t kLeastPage = 1024 * 1024;

std::vector<std::string> NamesOf(const std::vector<std::shared_ptr<Projection>>& projections) {
  std::vector<std::string> names;
  for (const auto& projection : projections) names.push_back(projection->name());
  return names;
}

}  // namespace

Worker::Worker(store::Store& store, events::EventLog& log, ReadModel& model, Env& env,
               const ReplicaOptions& options, std::vector<std::shared_ptr<Projection>> projections,
               FollowerRunner& runner)
    : store_(store),
      log_(log),
      model_(model),
      env_(env),
      options_(options),
      projections_(std::move(projections)),
      runner_(runner),
      member_(store, env, options_, log.slots(), NamesOf(projections_)) {}

void Worker::Report(ReplicaEvent::Kind kind, const std::string& error) {
  if (!options_.observer) return;
  ReplicaEvent event;
  event.kind = kind;
  event.worker = member_.id();
  event.generation = started_ != 0 ? started_ : prepared_;
  event.partition = partition_.key;
  event.partitions = partition_.total;
  event.error = error;
  options_.observer(event);
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
  MUSTER_TRY(Follow(*view));
  return ManageFollowers(*view);
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

DesiredState Worker::DesiredOf(const SetView& view, const std::string& projection) {
  const auto found = view.projections.find(projection);
  return found == view.projections.end() ? DesiredState{} : found->second;
}

Status Worker::SetUpOnce(Projection& projection, int version) {
  if (set_up_.contains({projection.name(), version})) return {};
  const auto set_up = [&]() -> Status {
    MUSTER_ASSIGN(const auto transaction, model_.Begin());
    MUSTER_TRY(projection.SetUp(*transaction, version));
    return model_.Commit(*transaction);
  };
  // Others may be creating the same concurrently, which databases report in various ways.
  if (Status done = set_up(); !done) {
    if (++failed_set_ups_ < kSetUpTries) {
      return Error{Code::kUnavailable, done.error().message, done.error().hint};
    }
    return done;
  }
  failed_set_ups_ = 0;
  set_up_.insert({projection.name(), version});
  return {};
}

// The hash of the definition a version runs with. A set without one adopts its first worker's.
Result<std::string> Worker::HashOf(const Projection& projection, int version,
                                   const DesiredState& desired) {
  const std::string hash = desired.Definition(version);
  if (!hash.empty()) return hash;
  return AdoptedHash(store_, options_.set, projection, version);
}

// The projection as that version was built, which may differ from what this worker was started
// with.
Result<std::shared_ptr<Projection>> Worker::DefinedBy(const std::shared_ptr<Projection>& given,
                                                      int version, const std::string& hash) {
  MUSTER_ASSIGN(auto projection, ProjectionBy(store_, options_.set, given, hash));
  if (projection == given) return projection;
  const std::string words = "projection '" + given->name() + "': version " +
                            std::to_string(version) + " is run by definition " + hash +
                            ", which it was built from; this worker was started with " +
                            DefinitionHash(*given) + ", which 'muster replica rebuild' builds";
  Log(Level::kWarning, "a version is run by another definition than this worker's",
      {{"set", options_.set},
       {"projection", given->name()},
       {"version", version},
       {"runs", hash},
       {"started_with", DefinitionHash(*given)}});
  member_.state().error = words;
  Report(ReplicaEvent::Kind::kTrouble, words);
  return projection;
}

// Reconciles the followers with the desired state: one for each existing version, none for others.
Status Worker::EnsureFollowers(const SetView& view) {
  std::set<Name> wanted;
  size_t followers = 0;
  for (const auto& projection : projections_) {
    followers += DesiredOf(view, projection->name()).versions.size();
  }
  for (const auto& given : projections_) {
    const DesiredState desired = DesiredOf(view, given->name());
    for (const int version : desired.versions) {
      const Name name{given->name(), version};
      wanted.insert(name);
      const bool active = version == desired.active;
      MUSTER_ASSIGN(const std::string hash, HashOf(*given, version, desired));
      if (auto found = running_.find(name); found != running_.end()) {
        const bool same = found->second.active == active &&
                          found->second.touched == desired.touched &&
                          found->second.definition == hash;
        if (same) continue;
        if (!Stop(found->second, kStopPatience)) return {};
        handled_before_ += found->second.follower->pulse().handled;
        running_.erase(found);
      }
      MUSTER_ASSIGN(const auto projection, DefinedBy(given, version, hash));
      MUSTER_TRY(SetUpOnce(*projection, version));
      ReplicaPartition partition = partition_;
      partition.version = version;
      auto follower = std::make_unique<Follower>(
          log_, model_, env_, Instance{options_.set, projection->name(), version}, active,
          [projection, partition](bool side_effects) mutable {
            partition.side_effects = side_effects;
            return projection->Build(partition);
          },
          FollowerOptions{
              .batch = options_.batch,
              .batch_time = options_.batch_time,
              .idle_limit = options_.heartbeat_timeout,
              .idle_limit_most = options_.handle_timeout,
              .page_bytes = std::max(kLeastPage, kEventMemory / followers),
              .max_attempts = options_.max_attempts,
              .retry_delay = options_.retry_delay,
              .read_ahead = runner_.HaveThreads(),
              .flush_every = desired.versions.size() > 1 ? kFlushBesideAnother : kFlushAlone});
      follower->on_parked = [this, projection](const std::string& stream,
                                               const std::string& error) {
        if (!options_.observer) return;
        ReplicaEvent event;
        event.kind = ReplicaEvent::Kind::kParked;
        event.worker = member_.id();
        event.projection = projection->name();
        event.error = "stream '" + stream + "': " + error;
        options_.observer(event);
      };
      follower->note_in_flight =
          [this, instance = follower->instance()](const std::vector<int64_t>& positions) {
            return NoteInFlight(instance, positions, 0);
          };
      Status owned = follower->Own(slots_, partition_.generation, false);
      if (!owned) {
        if (owned.error().code != Code::kLeaseLost) return owned;
        MUSTER_ASSIGN(const int64_t highest, model_.HighestGeneration(options_.set));
        member_.GenerationsSeenUpTo(highest);
        return Error{Code::kUnavailable, owned.error().message};
      }
      follower->SetOrphans(view.generation.orphans);
      MUSTER_TRY(follower->Prepare());
      running_[name] = Running{projection, std::move(follower), active, desired.touched, hash};
    }
  }
  for (auto it = running_.begin(); it != running_.end();) {
    if (wanted.contains(it->first)) {
      ++it;
      continue;
    }
    if (!Stop(it->second, kStopPatience)) return {};
    handled_before_ += it->second.follower->pulse().handled;
    set_up_.erase(it->first);
    it = running_.erase(it);
  }
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
    if (options_.observer) {
      ReplicaEvent event;
      event.kind = ReplicaEvent::Kind::kReconfigured;
      event.worker = member_.id();
      event.generation = started_;
      event.partition = partition_.key;
      event.partitions = partition_.total;
      for (const int slot : slots_) event.pauses.emplace_back(slot, pause);
      options_.observer(event);
    }
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
