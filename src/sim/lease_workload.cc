#include <map>
#include <set>
#include <string>
#include <utility>

#include "sim/faulty_store.h"
#include "sim/fenced_sink.h"
#include "sim/workload.h"
#include "work/worker.h"

namespace muster::sim {
namespace {

using std::chrono::seconds;

const std::string kKind = "work";
const std::string kQueue = "documents";
constexpr LeaseTerms kTerms{.lease = seconds(30), .max_lease = seconds(120), .max_attempts = 4};
constexpr nanoseconds kSinkPause = std::chrono::milliseconds(200);

std::string WithEpoch(const std::string& key, int64_t epoch) {
  return key + " epoch " + std::to_string(epoch);
}

class LeaseWorkloadImpl final : public Workload {
 public:
  void Setup(Simulation& sim) override {
    sim_ = &sim;
    Random& random = sim.random();
    store_ = std::make_unique<FaultyStore>(
        sim, StoreObserver{
                 .sends = [this](const Change& change) { Sends(change); },
                 .changed = [this](const Change& change, const std::optional<Record>& before,
                                   const std::optional<Record>& after,
                                   bool late) { Changed(change, before, after, late); },
                 .claimed = [this](const ClaimRequest& request, const std::vector<Record>& before,
                                   const std::vector<Record>& taken,
                                   bool late) { Claimed(request, before, taken, late); },
                 .reads = [this](const std::optional<Record>& stored) { Reads(stored); },
             });
    sink_ = std::make_unique<FencedSink>(sim, [this](const std::string& item, int64_t epoch,
                                                     bool late) { Sinks(item, epoch, late); });
    const int64_t workers = random.Between(1, 5);
    const int64_t items = random.Between(1, 6);
    documents_ = random.Between(1, 40);
    batch_ = random.Between(1, 8);
    if (workers >= 3 && items == 1) sim.Sometimes("18 many workers, one item");
    std::vector<std::string> keys;
    for (int64_t i = 0; i < items; ++i) keys.push_back("item" + std::to_string(i));
    if (random.OneIn(4)) {
      poison_item_ = keys.front();
      poison_row_ = random.Between(0, documents_ - 1);
    }
    if (auto created = CreateItems(store_->Truth(), kKind, kQueue, keys); !created) {
      sim.Violate("V", created.error().message);
    }
    for (int64_t i = 0; i < workers; ++i) {
      const std::string name = "worker" + std::to_string(i);
      sim.AddProcess(name, [this, name](Env& env, std::stop_token stop) { Work(name, env, stop); });
    }
  }

  void Check() override {
    for (const Record& record : All()) {
      const ItemState state = StateOf(record);
      const std::vector<int64_t>& rows = sink_->Rows(record.key);
      for (size_t i = 0; i < rows.size(); ++i) {
        if (rows[i] != static_cast<int64_t>(i)) Violate("L", record.key + " has rows out of order");
      }
      if (state.phase == ItemState::Phase::kOpen) Violate("V", record.key + " was left open");
      if (state.phase == ItemState::Phase::kDone &&
          static_cast<int64_t>(rows.size()) != documents_) {
        Violate("L", record.key + " is done with " + std::to_string(rows.size()) + " of " +
                         std::to_string(documents_) + " rows");
      }
    }
  }

 private:
  // What the world knows of a record, to hold the store and the workers to it.
  struct Known {
    int64_t highest_epoch = 0;
    int claims = 0;
    int claims_without_progress = 0;
    int64_t progress = 0;
    nanoseconds claimed_at{0};
  };
  struct HeldUntil {
    nanoseconds deadline{0};
    int sends_too_late = 0;
  };

  void Work(const std::string& name, Env& env, std::stop_token stop) {
    const WorkerOptions options{
        .kind = kKind, .queue = kQueue, .owner = name, .terms = kTerms, .idle_wait = seconds(2)};
    const auto handler = [&](Lease& lease, std::stop_token token) {
      return CopyRows(env, lease, token);
    };
    const auto observer = [&](const Lease& lease, ItemOutcome outcome) {
      Settled(env, lease, outcome);
    };
    if (auto ended = RunWorker(*store_, env, options, handler, observer, stop); !ended) {
      Violate("V", name + " gave up: " + ended.error().message);
    }
  }

  // The handler: moves rows into the sink, batch by batch, from where the sink's watermark is.
  Result<std::string> CopyRows(Env& env, Lease& lease, std::stop_token stop) {
    Holds(lease);
    MUSTER_ASSIGN(int64_t position, OpenSink(env, lease));
    if (position < ProgressOf(lease.state())) {
      Violate("L", lease.key() + ": the checkpoint is ahead of the sink");
    }
    int64_t saved = position;
    while (position < documents_) {
      if (stop.stop_requested()) {
        if (position > saved) MUSTER_TRY(Save(lease, position));
        return Error{Code::kCancelled, "asked to stop"};
      }
      if (lease.Expired()) return Error{Code::kLeaseLost, "time is up"};
      if (lease.key() == poison_item_ && position == poison_row_) sim_->Crash("poison");
      int64_t to = std::min(position + batch_, documents_);
      if (lease.key() == poison_item_ && position < poison_row_) to = std::min(to, poison_row_);
      if (auto appended = sink_->Append(lease.key(), lease.epoch(), position, to); appended) {
        position = to;
      } else if (IsTransient(appended.error().code) || appended.error().code == Code::kConflict) {
        MUSTER_ASSIGN(position, OpenSink(env, lease));
      } else {
        sim_->Sometimes("1 a worker pauses past its lease in the middle of a batch");
        return appended.error();
      }
      if (position > saved && sim_->random().OneIn(3)) {
        MUSTER_TRY(Save(lease, position));
        saved = position;
      }
    }
    return std::to_string(position);
  }

  Result<int64_t> OpenSink(Env& env, Lease& lease) {
    for (;;) {
      auto opened = sink_->Open(lease.key(), lease.epoch());
      if (opened || !IsTransient(opened.error().code)) return opened;
      if (lease.Expired()) return Error{Code::kLeaseLost, "time is up"};
      env.Sleep(kSinkPause, {});
    }
  }

  Status Save(Lease& lease, int64_t position) {
    MUSTER_TRY(lease.Checkpoint(std::to_string(position)));
    const Record stored = Stored(lease.key());
    if (stored.epoch == lease.epoch() && ProgressOf(StateOf(stored)) < position) {
      Violate("H", lease.key() + ": a checkpoint was reported that is not stored");
    }
    Holds(lease);
    return {};
  }

  void Holds(const Lease& lease) {
    const nanoseconds deadline = lease.deadline().time_since_epoch();
    const Known& known = known_[lease.key()];
    if (known.highest_epoch == lease.epoch() && lease.attempt() > 0 &&
        deadline > known.claimed_at + LeaseFor(lease.attempt(), kTerms.lease, kTerms.max_lease)) {
      Violate("F", lease.key() + ": the holder believes in a longer lease than it was given");
    }
    held_[WithEpoch(lease.key(), lease.epoch())].deadline = deadline;
  }

  void Settled(Env& env, const Lease& lease, ItemOutcome outcome) {
    const Record stored = Stored(lease.key());
    const ItemState state = StateOf(stored);
    switch (outcome) {
      case ItemOutcome::kCompleted:
        if (state.phase != ItemState::Phase::kDone || stored.epoch != lease.epoch()) {
          Violate("H", lease.key() + ": completion was reported but is not stored");
        }
        if (auto off = env.WallNow().time_since_epoch() % std::chrono::hours(24);
            off > std::chrono::minutes(50)) {
          sim_->Sometimes("4 a worker's clock is an hour off");
        }
        break;
      case ItemOutcome::kReleased:
        if (ProgressOf(lease.state()) == 0)
          sim_->Sometimes("17 asked to stop before the first checkpoint");
        break;
      case ItemOutcome::kQuarantined:
        if (lease.key() == poison_item_) sim_->Sometimes("16 a poison item kills each holder");
        break;
      case ItemOutcome::kLost:
        if (store_->Away()) sim_->Sometimes("19 the store is down near the end of a lease");
        break;
      case ItemOutcome::kFailed:
        break;
    }
  }

  void Sends(const Change& change) {
    if (StateOf(change.record).phase == ItemState::Phase::kDone) {
      completing_.insert(WithEpoch(change.record.key, change.record.epoch));
    }
    auto held = held_.find(WithEpoch(change.record.key, change.record.epoch));
    if (held == held_.end() || sim_->now() <= held->second.deadline) return;
    // One may be on its way when the time runs out between the look at the clock and the call.
    if (++held->second.sends_too_late > 1) {
      Violate("F", change.record.key + ": its holder goes on writing after the lease has ended");
    }
  }

  void Changed(const Change& change, const std::optional<Record>& before,
               const std::optional<Record>& after, bool late) {
    if (!before || !after) return Violate("P", change.record.key + " disappeared");
    const ItemState was = StateOf(*before);
    const ItemState wanted = StateOf(change.record);
    const bool completes = wanted.phase == ItemState::Phase::kDone;
    if (*before == *after) {  // a conflict
      if (!late && !completes && before->epoch > change.record.epoch) {
        sim_->Sometimes("9 a renewal races a takeover");
      }
      if (late && !completes && before->owner.empty()) {
        sim_->Sometimes("10 a late renewal after the release");
      }
      return;
    }
    const std::string& key = after->key;
    Known& known = known_[key];
    const ItemState is = StateOf(*after);
    if (change.record.epoch != before->epoch) {
      Violate("F", key + ": a write of epoch " + std::to_string(change.record.epoch) +
                       " took effect in epoch " + std::to_string(before->epoch));
    }
    if (after->version <= before->version) Violate("P", key + ": its version did not grow");
    if (was.phase == ItemState::Phase::kDone) Violate("P", key + " was changed after completion");
    if (ProgressOf(is) < known.progress) Violate("P", key + ": its progress fell");
    if (ProgressOf(is) > known.progress) known.claims_without_progress = 0;
    known.progress = std::max(known.progress, ProgressOf(is));
    if (is.phase == ItemState::Phase::kQuarantined &&
        known.claims_without_progress < kTerms.max_attempts) {
      Violate("B", key + " was quarantined after only " +
                       std::to_string(known.claims_without_progress) + " claims without progress");
    }
    const bool released = after->owner.empty() && is.phase == ItemState::Phase::kOpen;
    if (released && is.error.empty() && (!after->due || *after->due > StoreNow())) {
      Violate("V", key + " was released but is not due");
    }
  }

  void Claimed(const ClaimRequest& request, const std::vector<Record>& before,
               const std::vector<Record>& taken, bool late) {
    if (late && !taken.empty()) sim_->Sometimes("8 a claim request arrives again or late");
    for (size_t i = 0; i < taken.size(); ++i) {
      if (taken[i] == before[i]) {
        sim_->Sometimes("7 claim applied, response lost");
        continue;
      }
      CheckGrant(request, before[i], taken[i], late);
    }
  }

  void CheckGrant(const ClaimRequest& request, const Record& before, const Record& taken,
                  bool late) {
    const std::string& key = taken.key;
    Known& known = known_[key];
    if (taken.epoch <= known.highest_epoch) {
      Violate("E", key + ": epoch " + std::to_string(taken.epoch) + " was given twice");
    }
    if (!before.due || *before.due > StoreNow()) {
      Violate("E", key + " was taken before its lease had ended");
    }
    if (!before.owner.empty() && before.owner == request.owner) {
      sim_->Sometimes("11 a worker restarts under the same id");
    }
    known.highest_epoch = taken.epoch;
    known.claimed_at = sim_->now();
    ++known.claims;
    ++known.claims_without_progress;
    if (known.claims > kTerms.max_attempts + 4 + 3 * sim_->faults_fired()) {
      Violate("B", key + " was claimed " + std::to_string(known.claims) + " times");
    }
    if (late) return;
    auto& granted = granted_[request.claim_id];
    for (const auto& [other, epoch] : granted) {
      const Record stored = Stored(other);
      if (stored.epoch == epoch && stored.due && *stored.due > StoreNow()) {
        Violate("B", "one claim took " + key + " though it still holds " + other);
      }
    }
    granted.emplace_back(key, taken.epoch);
  }

  void Reads(const std::optional<Record>& stored) {
    if (!stored || stored->owner != sim_->CurrentName()) return;
    const bool done = StateOf(*stored).phase == ItemState::Phase::kDone;
    const bool completing = completing_.contains(WithEpoch(stored->key, stored->epoch));
    if (done) sim_->Sometimes("12 complete: no reply, applied");
    if (!done && completing) sim_->Sometimes("13 complete: no reply, not applied");
  }

  void Sinks(const std::string& item, int64_t epoch, bool late) {
    const Record stored = Stored(item);
    if (!late && epoch < stored.epoch) {
      sim_->Sometimes("2 a worker pauses between its look at the lease and the write");
    }
    if (late && StateOf(stored).phase == ItemState::Phase::kDone) {
      sim_->Sometimes("3 a delayed write arrives after all is done");
    }
  }

  std::vector<Record> All() { return store_->Truth().Scan(kKind, "", "", kMaxBatch).value(); }
  Record Stored(const std::string& key) { return store_->Truth().Get(kKind, key).value().value(); }
  WallTime StoreNow() { return store_->Truth().Now().value(); }
  static ItemState StateOf(const Record& record) {
    return ItemState::FromBody(record.body).value();
  }
  static int64_t ProgressOf(const ItemState& state) {
    return state.progress == "null" ? 0 : std::stoll(state.progress);
  }
  void Violate(const std::string& invariant, std::string message) {
    sim_->Violate(invariant, std::move(message));
  }

  Simulation* sim_ = nullptr;
  std::unique_ptr<FaultyStore> store_;
  std::unique_ptr<FencedSink> sink_;
  int64_t documents_ = 0;
  int64_t batch_ = 0;
  std::string poison_item_;
  int64_t poison_row_ = 0;
  std::map<std::string, Known> known_;
  std::map<std::string, HeldUntil> held_;
  std::map<std::string, std::vector<std::pair<std::string, int64_t>>> granted_;  // by claim_id
  std::set<std::string> completing_;
};

}  // namespace

WorkloadInfo LeaseWorkload() {
  return {
      .name = "lease",
      .about = "workers share items by leases and write to a fenced sink",
      .create = []() -> std::unique_ptr<Workload> { return std::make_unique<LeaseWorkloadImpl>(); },
      .sometimes = {
          "1 a worker pauses past its lease in the middle of a batch",
          "2 a worker pauses between its look at the lease and the write",
          "3 a delayed write arrives after all is done", "4 a worker's clock is an hour off",
          "5 the store's clock jumps back", "6 the store's clock jumps forward",
          "7 claim applied, response lost", "8 a claim request arrives again or late",
          "9 a renewal races a takeover", "10 a late renewal after the release",
          "11 a worker restarts under the same id", "12 complete: no reply, applied",
          "13 complete: no reply, not applied", "16 a poison item kills each holder",
          "17 asked to stop before the first checkpoint", "18 many workers, one item",
          "19 the store is down near the end of a lease", "20 the store takes no writes"}};
}

const std::vector<WorkloadInfo>& Workloads() {
  static const std::vector<WorkloadInfo> kWorkloads{LeaseWorkload(), ReplicaWorkload()};
  return kWorkloads;
}

}  // namespace muster::sim
