#include "sim/work_ledger.h"

#include <algorithm>

#include "core/json_fields.h"
#include "muster/store.h"

namespace muster::sim {
namespace {

constexpr milliseconds kLongestRest = std::chrono::seconds(300);
// A poison item can kill its process up to three times: while new, after progress in a hold, and
// again before a checkpoint. Each time, an item just begun beside it is lost once.
constexpr int kMostLostToPoison = 3;

std::string WithEpoch(const std::string& key, int64_t epoch) {
  return key + " epoch " + std::to_string(epoch);
}

}  // namespace

StoreObserver WorkLedger::StoreEvents() {
  return {
      .sends = [this](const store::Change& change) { Sends(change); },
      .changed = [this](const store::Change& change, const std::optional<store::Record>& before,
                        const std::optional<store::Record>& after,
                        bool late) { Changed(change, before, after, late); },
      .claimed = [this](const store::ClaimRequest& request,
                        const std::vector<store::Record>& before,
                        const std::vector<store::Record>& taken,
                        bool late) { Claimed(request, before, taken, late); },
      .reads = [this](const std::optional<store::Record>& stored) { Reads(stored); },
      .went_back = [this] { WentBack(); },
  };
}

SinkObserver WorkLedger::SinkEvents() {
  return {.reached = [this](const pipeline::Fence& fence, bool late, bool refused,
                            bool empty) { Sinks(fence, late, refused, empty); },
          .begins = [this](const pipeline::Fence& fence) { leases.Begins(fence); }};
}

void WorkLedger::Settled(Env& env, const work::WorkItem& item, work::ShardOutcome outcome,
                         const Error* why) {
  const std::optional<store::Record> stored = scene_.Stored(work::ItemKey("run", item.name()));
  switch (outcome) {
    case work::ShardOutcome::kCompleted:
    case work::ShardOutcome::kHandedOver:
      if (why != nullptr && why->message == work::kRunIsStopped)
        sim_.Sometimes("74 a holder notices at a checkpoint that its run is stopped");
      if (!scene_.went_back && !scene_.IsDone(*stored)) {
        sim_.Violate("H", item.name() + ": completion was reported but is not stored");
      }
      if (outcome == work::ShardOutcome::kHandedOver) sim_.Sometimes("an item is handed over");
      if (auto off = env.WallNow().time_since_epoch() % std::chrono::hours(24);
          off > std::chrono::minutes(50)) {
        sim_.Sometimes("4 a worker's clock is an hour off");
      }
      break;
    case work::ShardOutcome::kReleased:
      if (item.progress().position.empty() && !item.partition().follows) {
        sim_.Sometimes("17 asked to stop before the first checkpoint");
      }
      break;
    case work::ShardOutcome::kQuarantined:
      sim_.Sometimes(why != nullptr && why->code == Code::kCorrupt
                         ? "29 a corrupt source fails closed"
                         : "16 a poison item kills each holder");
      break;
    case work::ShardOutcome::kLost:
      if (scene_.store->Away()) sim_.Sometimes("19 the store is down near the end of a lease");
      break;
    default:
      break;
  }
}

void WorkLedger::Sends(const store::Change& change) {
  if (sim_.Unwinding()) return;
  if (change.record.kind == work::kEndKind) return PausesBeforeAnEnd(change);
  if (change.record.kind != work::kWorkKind) return;
  if (change.record.version == 0) return CrashesBeforeCreating(change.record.key);
  if (scene_.IsDone(change.record))
    completing_.insert(WithEpoch(change.record.key, change.record.epoch));
  if (leases.Sends(change)) PausesBeforeASplit(change);
}

// A named successor does not exist yet: the moment to crash.
void WorkLedger::CrashesBeforeCreating(const std::string& key) {
  if (named_.contains(key) && sim_.Fires(Fault::kCrash, 5)) {
    sim_.Crash("before it creates " + key);
  }
}

// A holder about to name a successor that sleeps past its lease wakes up to find that another has
// split the item, or handed it over, instead.
void WorkLedger::PausesBeforeASplit(const store::Change& change) {
  const auto stored = scene_.Stored(change.record.key);
  if (!stored || !scene_.GivesAway(*stored, change.record) || !sim_.Fires(Fault::kPause, 5)) return;
  sim_.Note("hangs before it splits " + change.record.key);
  Hang(scene_.terms.lease + sim_.random().UpTo<int64_t, std::nano>(2 * scene_.terms.max_lease));
}

// A worker that judged everything done records it only after the store has gone back.
void WorkLedger::PausesBeforeAnEnd(const store::Change& change) {
  const nanoseconds pause = sim_.random().UpTo<int64_t, std::nano>(2 * kLongestLoss);
  if (!scene_.store->GoBackBefore(pause)) return;
  sim_.Note("hangs before it marks " + change.record.key);
  Hang(pause);
}

void WorkLedger::Hang(nanoseconds time) {
  sim_.Lasts(time);
  sim_.Pass(time);
}

void WorkLedger::Changed(const store::Change& change, const std::optional<store::Record>& before,
                         const std::optional<store::Record>& after, bool late) {
  if (change.record.kind == work::kEndKind && after) return CheckEnd(*after);
  if (change.record.kind == work::kRunKind && after)
    leases.RunChanged(work::RunBody::FromJson(after->body).value().stopped.has_value());
  if (change.record.kind != work::kWorkKind) return;
  const std::string& key = change.record.key;
  if (!after && !scene_.went_back) return sim_.Violate("P", key + " disappeared");
  if (!after) {
    known_.erase(key);  // its claimer achieved nothing by it
    return;
  }
  if (!before) return Created(*after);
  if (change.record.version == 0) return;  // was there already
  if (*before == *after) return Conflicts(change, *before, late);
  Applied(change, *before, *after);
}

void WorkLedger::Conflicts(const store::Change& change, const store::Record& before, bool late) {
  const bool completes = scene_.IsDone(change.record);
  const bool stale = before.epoch > change.record.epoch;
  if (!late && !completes && stale) sim_.Sometimes("9 a renewal races a takeover");
  if (late && !completes && before.owner.empty())
    sim_.Sometimes("10 a late renewal after the release");
  if (stale && scene_.GivesAway(before, change.record))
    sim_.Sometimes("15 two workers split the same item");
}

void WorkLedger::Applied(const store::Change& change, const store::Record& before,
                         const store::Record& after) {
  const std::string& key = after.key;
  Known& known = known_[key];
  const work::ItemBody& was = scene_.Body(before);
  const work::ItemBody& is = scene_.Body(after);
  leases.Renewed(change, after, was.progress.former_ends == is.progress.former_ends);
  CheckRest(change, was, is, after);
  // One that follows others was claimed before its turn.
  const bool postponed = is.waits > was.waits;
  if (postponed) {
    sim_.Sometimes("76 an item waits for those that it follows");
    --known.claims;
    --known.claims_without_progress;
  }
  if (!scene_.went_back && change.record.epoch != before.epoch) {
    sim_.Violate("F", key + ": a write of epoch " + std::to_string(change.record.epoch) +
                          " took effect in epoch " + std::to_string(before.epoch));
  }
  if (after.version <= before.version) sim_.Violate("P", key + ": its version did not grow");
  if (was.state == work::ItemBody::State::kDone && !scene_.went_back)
    sim_.Violate("P", key + " was changed after completion");
  CheckProgress(change, after, known);
  if (is.state == work::ItemBody::State::kQuarantined) CheckQuarantine(after, known);
  const bool released = after.owner.empty() && is.state == work::ItemBody::State::kOpen;
  if (released && !postponed && is.error.empty() && (!after.due || *after.due > scene_.StoreNow()))
    sim_.Violate("V", key + " was released but is not due");
  for (const pipeline::Partition& part : is.Successors())
    named_.try_emplace(work::ItemKey("run", work::NameOf(part)), after.epoch, key);
}

void WorkLedger::CheckProgress(const store::Change& change, const store::Record& after,
                               Known& known) {
  const int64_t read = scene_.Body(after).progress.counts.read;
  if (!scene_.went_back && read < known.read) sim_.Violate("P", after.key + ": its progress fell");
  if (read > known.read) known.claims_without_progress = 0;
  const bool reports = after.owner.empty() && change.due.kind == store::Due::Kind::kAfter;
  if (read > known.read || reports) known.lost_holders = known.lost_to_poison = 0;
  known.read = std::max(known.read, read);
}

void WorkLedger::CheckQuarantine(const store::Record& after, const Known& known) {
  const int most = scene_.terms.max_attempts;
  if (!scene_.went_back && known.claims_without_progress < most) {
    sim_.Violate("B", after.key + " was quarantined after only " +
                          std::to_string(known.claims_without_progress) +
                          " claims without progress");
  }
  // Indistinguishable from an item that kills each holder.
  const int lost = known.lost_holders + std::min(known.lost_to_poison, kMostLostToPoison);
  if (!scene_.went_back && lost < most) return;
  unlucky_.insert(after.key);
  sim_.Sometimes("faults take so many holders in a row that an item is quarantined");
}

// A failed item backs off, longer each time if its data is to blame.
void WorkLedger::CheckRest(const store::Change& change, const work::ItemBody& was,
                           const work::ItemBody& is, const store::Record& after) {
  const bool rests = change.due.kind == store::Due::Kind::kAfter ||
                     (change.due.kind == store::Due::Kind::kAtOnce && is.error != was.error);
  const bool failed = is.state == work::ItemBody::State::kOpen && !is.error.empty() &&
                      after.owner.empty() && rests && is.waits == was.waits;
  if (!failed) return;
  const bool damaged = is.error.find(WorkWorld::kDamaged) != std::string::npos;
  const milliseconds least = store::LeaseFor(damaged ? std::max(1, after.attempt) : 1,
                                             scene_.terms.retry_delay, kLongestRest);
  if (change.due.delay < least)
    sim_.Violate("B", after.key + " is tried again after " +
                          std::to_string(change.due.delay.count()) + " ms, not " +
                          std::to_string(least.count()));
}

// A run is finished when every item of this incarnation is done.
void WorkLedger::CheckEnd(const store::Record& end) {
  const std::optional<work::RunBody> run = scene_.Run();
  if (!run || end.key != work::EndKey("run", run->incarnation) ||
      !Json::parse(end.body).value("confirmed", false))
    return;
  if (run->stopped && !scene_.went_back)
    sim_.Violate("Q", "the run is said to be finished, though too many documents have failed");
  for (const store::Record& item : scene_.Items()) {
    if (!scene_.IsDone(item))
      sim_.Violate("L", "the run is said to be finished, but " + item.key + " is not done");
  }
}

void WorkLedger::Created(const store::Record& record) {
  const auto named = named_.find(record.key);
  if (named == named_.end()) return;
  const auto& [epoch, parent] = named->second;
  const auto stored = scene_.Stored(parent);
  if (stored && stored->epoch > epoch) {
    sim_.Sometimes("14 a crash in a hand-over or split is made up for");
  }
}

void WorkLedger::Claimed(const store::ClaimRequest& request,
                         const std::vector<store::Record>& before,
                         const std::vector<store::Record>& taken, bool late) {
  if (request.kind != work::kWorkKind) return;
  if (late && !taken.empty()) sim_.Sometimes("a claim request arrives again or late");
  for (size_t i = 0; i < taken.size(); ++i) {
    if (taken[i] == before[i]) {
      sim_.Sometimes("7 claim applied, response lost");
      continue;
    }
    CheckGrant(request, before[i], taken[i], late);
  }
}

void WorkLedger::CheckGrant(const store::ClaimRequest& request, const store::Record& before,
                            const store::Record& taken, bool late) {
  const std::string& key = taken.key;
  Known& known = known_[key];
  if (taken.epoch <= known.highest_epoch)
    sim_.Violate("E", key + ": epoch " + std::to_string(taken.epoch) + " was given twice");
  if (!before.due || *before.due > scene_.StoreNow())
    sim_.Violate("E", key + " was taken before its lease had ended");
  if (!before.owner.empty() &&
      store::NameOfOwner(before.owner) == store::NameOfOwner(request.owner))
    sim_.Sometimes("11 a worker restarts under the same id");
  CountLostHolder(before, late, known);
  known.highest_epoch = taken.epoch;
  known.suspect = !before.owner.empty() && before.attempt > 0;
  leases.Granted(request.owner, key, taken.epoch,
                 sim_.now() + store::LeaseFor(taken.attempt, request.lease, request.max_lease));
  ++known.claims;
  ++known.claims_without_progress;
  // A worker that cannot reach the sink releases the item, which does not count.
  const int64_t most =
      scene_.terms.max_attempts + 4 + 3 * sim_.faults_fired() + scene_.Wire().refused();
  if (known.claims > most)
    sim_.Violate("B", key + " was claimed " + std::to_string(known.claims) + " times");
  if (!late) CheckOneClaim(request, taken);
}

void WorkLedger::CountLostHolder(const store::Record& before, bool late, Known& known) {
  const int poison = scene_.world.poison_deaths();
  const int disturbances = sim_.faults_fired() + sim_.crashes() - poison;
  if (!before.owner.empty()) {
    if (disturbances > known.disturbances_before_claim) {
      ++known.lost_holders;
    } else if (poison > known.poison_before_claim) {
      ++known.lost_to_poison;
    }
  }
  // A late request is itself caused by a fault, which its sender does not see.
  known.disturbances_before_claim = disturbances - (late ? 1 : 0);
  known.poison_before_claim = poison;
}

void WorkLedger::CheckOneClaim(const store::ClaimRequest& request, const store::Record& taken) {
  auto& granted = granted_[request.claim_id];
  for (const auto& [other, epoch] : granted) {
    const auto stored = scene_.Stored(other);
    if (stored && stored->epoch == epoch && stored->due && *stored->due > scene_.StoreNow())
      sim_.Violate("B", "one claim took " + taken.key + " though it still holds " + other);
  }
  granted.emplace_back(taken.key, taken.epoch);
}

void WorkLedger::Reads(const std::optional<store::Record>& stored) {
  if (!stored || stored->kind != work::kWorkKind ||
      store::NameOfOwner(stored->owner) != sim_.CurrentName())
    return;
  const bool done = scene_.IsDone(*stored);
  const bool completing = completing_.contains(WithEpoch(stored->key, stored->epoch));
  if (done && completing) sim_.Sometimes("12 complete: no reply, applied");
  if (!done && completing) sim_.Sometimes("13 complete: no reply, not applied");
}

void WorkLedger::Sinks(const pipeline::Fence& fence, bool late, bool refused, bool empty) {
  const auto stored = scene_.Stored(work::ItemKey("run", fence.item));
  if (!stored) return;
  if (!late && fence.epoch < stored->epoch) {
    sim_.Sometimes("2 a worker pauses between its look at the lease and the write");
    if (refused && !empty) {
      sim_.Sometimes("1 a worker pauses past its lease in the middle of a batch");
    }
  }
  if (late && scene_.IsDone(*stored)) {
    sim_.Sometimes("3 a delayed write arrives after all is done");
  }
}

// From now on epochs are granted again, and finished work is open again; only the end still counts.
void WorkLedger::WentBack() {
  scene_.went_back = true;
  known_.clear();
  granted_.clear();
  leases.Forget();
  const std::optional<work::RunBody> run = scene_.Run();
  leases.RunChanged(run && run->stopped);
  named_.clear();
  if (scene_.restored) scene_.new_incarnation = true;
  sim_.Sometimes(scene_.restored ? "23 the store is restored from a backup"
                                 : "22 a failover loses acknowledged commits");
}

}  // namespace muster::sim
