// The followers of a worker: one for each version of each projection, set up and built by the
// definition that the version has.

#include <algorithm>

#include "core/log.h"
#include "replica/definitions.h"
#include "replica/worker.h"

namespace muster::replica {
namespace {

constexpr int kSetUpTries = 5;
// A swap waits until the new version has stored its position in every slot, including idle ones.
constexpr milliseconds kFlushAlone{5'000};
constexpr milliseconds kFlushBesideAnother{500};
// Memory for a worker's events, and as much again for read-ahead; shared by its followers.
constexpr size_t kEventMemory = 64 * 1024 * 1024;
constexpr size_t kLeastPage = 1024 * 1024;

}  // namespace

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
  Log(Level::kWarning, "a version runs with a definition other than this worker's",
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
      wanted.insert({given->name(), version});
      MUSTER_ASSIGN(const bool done, EnsureFollower(given, version, desired, view, followers));
      if (!done) return {};
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

// False: an outdated follower has not stopped yet.
Result<bool> Worker::EnsureFollower(const std::shared_ptr<Projection>& given, int version,
                                    const DesiredState& desired, const SetView& view,
                                    size_t followers) {
  const Name name{given->name(), version};
  const bool active = version == desired.active;
  MUSTER_ASSIGN(const std::string hash, HashOf(*given, version, desired));
  if (auto found = running_.find(name); found != running_.end()) {
    const bool same = found->second.active == active && found->second.touched == desired.touched &&
                      found->second.definition == hash;
    if (same) return true;
    if (!Stop(found->second, kStopPatience)) return false;
    handled_before_ += found->second.follower->pulse().handled;
    running_.erase(found);
  }
  MUSTER_ASSIGN(const auto projection, DefinedBy(given, version, hash));
  MUSTER_TRY(SetUpOnce(*projection, version));
  auto follower = NewFollower(projection, version, active,
                              desired.versions.size() > 1 ? kFlushBesideAnother : kFlushAlone,
                              std::max(kLeastPage, kEventMemory / followers));
  if (Status owned = follower->Own(slots_, partition_.generation, false); !owned) {
    if (owned.error().code != Code::kLeaseLost) return owned.error();
    MUSTER_ASSIGN(const int64_t highest, model_.HighestGeneration(options_.set));
    member_.GenerationsSeenUpTo(highest);
    return Error{Code::kUnavailable, owned.error().message};
  }
  follower->SetOrphans(view.generation.orphans);
  MUSTER_TRY(follower->Prepare());
  running_[name] = Running{projection, std::move(follower), active, desired.touched, hash};
  return true;
}

std::unique_ptr<Follower> Worker::NewFollower(const std::shared_ptr<Projection>& projection,
                                              int version, bool active, milliseconds flush_every,
                                              size_t page_bytes) {
  ReplicaPartition partition = partition_;
  partition.version = version;
  auto follower = std::make_unique<Follower>(
      log_, model_, env_, Instance{options_.set, projection->name(), version}, active,
      [projection, partition](bool side_effects) mutable {
        partition.side_effects = side_effects;
        return projection->Build(partition);
      },
      FollowerOptions{.batch = options_.batch,
                      .batch_time = options_.batch_time,
                      .idle_limit = options_.heartbeat_timeout,
                      .idle_limit_most = options_.handle_timeout,
                      .handle_timeout = options_.handle_timeout,
                      .page_bytes = page_bytes,
                      .max_attempts = options_.max_attempts,
                      .retry_delay = options_.retry_delay,
                      .read_ahead = runner_.HaveThreads(),
                      .flush_every = flush_every});
  follower->on_parked = [this, name = projection->name()](const std::string& stream,
                                                          const std::string& error) {
    observer_.Happened({.kind = ReplicaEvent::Kind::kParked,
                        .worker = member_.id(),
                        .projection = name,
                        .error = "stream '" + stream + "': " + error});
  };
  follower->note_in_flight =
      [this, instance = follower->instance()](const std::vector<int64_t>& positions) {
        return NoteInFlight(instance, positions, 0);
      };
  return follower;
}

}  // namespace muster::replica
