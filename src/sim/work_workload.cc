#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "core/json_fields.h"
#include "pipeline/pipeline.h"
#include "sim/document_sink.h"
#include "sim/faulty_store.h"
#include "sim/parsed.h"
#include "sim/sim_files.h"
#include "sim/table_sink.h"
#include "sim/work_world.h"
#include "sim/workload.h"
#include "work/work.h"

namespace muster::sim {
namespace {

using std::chrono::seconds;

constexpr nanoseconds kOperatorTime = seconds(30);
constexpr nanoseconds kLongestLoss = seconds(100);  // since the last backup
constexpr nanoseconds kLongestLag = seconds(15);    // of a replica that takes over
constexpr milliseconds kLongestRest = seconds(300);
constexpr nanoseconds kNoticed = milliseconds(1'100);  // the end of a lease, by its holder
constexpr nanoseconds kCalm = seconds(10);
constexpr nanoseconds kStopTime = seconds(1);
constexpr char kLetters[] = "letters";

std::string WithEpoch(const std::string& key, int64_t epoch) {
  return key + " epoch " + std::to_string(epoch);
}

// A restored store may grant the same epoch to another owner.
std::string HeldBy(std::string_view owner, const std::string& key, int64_t epoch) {
  return WithEpoch(key, epoch) + " of " + std::string(owner);
}

class WorkWorkloadImpl final : public Workload {
 public:
  void Setup(Simulation& sim) override {
    sim_ = &sim;
    Random& random = sim.random();
    store_ = std::make_unique<FaultyStore>(
        sim, StoreObserver{
                 .sends = [this](const store::Change& change) { Sends(change); },
                 .changed = [this](const store::Change& change,
                                   const std::optional<store::Record>& before,
                                   const std::optional<store::Record>& after,
                                   bool late) { Changed(change, before, after, late); },
                 .claimed = [this](const store::ClaimRequest& request,
                                   const std::vector<store::Record>& before,
                                   const std::vector<store::Record>& taken,
                                   bool late) { Claimed(request, before, taken, late); },
                 .reads = [this](const std::optional<store::Record>& stored) { Reads(stored); },
                 .went_back = [this] { WentBack(); },
             });
    files_ = std::make_unique<SimFiles>(sim);
    store_->AddHarshFaults();
    world_.Make(random);
    if (random.OneIn(4)) {
      restored_ = random.OneIn(3);
      goes_back_ = true;
      store_->MayGoBack(restored_ ? kLongestLoss : kLongestLag, random.OneIn(2));
    }
    const SinkObserver observer{
        .reached = [this](const pipeline::Fence& fence, bool late, bool refused,
                          bool empty) { Sinks(fence, late, refused, empty); },
        .begins = [this](const pipeline::Fence& fence) { Begins(fence); }};
    if (random.OneIn(2)) {
      tables_ = std::make_unique<TableTarget>(sim, observer);
    } else {
      documents_ = std::make_unique<DocumentTarget>(sim, observer);
      world_.LeaveEarlierVersion(sim, *documents_);
    }
    if (random.OneIn(2)) {
      // Like most real sinks, which leave retrying to the worker.
      (tables_ ? tables_->patient : documents_->patient) = false;
    }
    if (random.OneIn(4)) Wire().AddHarshFaults();
    if (random.OneIn(6)) Wire().CutOff("worker0");
    terms_ = world_.Terms(random);
    pace_ = random.UpTo<int64_t, std::nano>(seconds(3));
    buffered_ = random.OneIn(2);
    // Many workers, or few with several slots: a seed's cost grows with the total number of slots.
    const bool many = random.OneIn(2);
    const int64_t workers = random.Between(1, many ? 5 : 2);
    if (workers >= 3 && world_.roots() == 1) sim.Sometimes("18 many workers, one item");
    for (int64_t i = 0; i < workers; ++i) {
      const std::string name = "worker" + std::to_string(i);
      const auto drawn = static_cast<int>(many ? 1 : random.Between(1, 3));
      // A store that goes back grants an epoch twice. Leases are then told apart by owner, and the
      // slots of a worker share one: a gap in the product, see docs/internals/work.md.
      const int slots = goes_back_ ? 1 : drawn;
      sim.AddProcess(name, [this, name, slots](Env& env, std::stop_token stop) {
        Work(name, slots, env, stop);
      });
    }
  }

  void Check() override {
    WorldCheck check(world_, *sim_);
    for (const store::Record& record : All())
      check.Item(Body(record), unlucky_.contains(record.key));
    if (tables_) check.Rows(tables_->rows);
    if (documents_) check.Documents(documents_->indexes);
    const std::set<std::string> letters = LettersInFile();
    check.Letters(letters);
    for (const std::string& letter : acknowledged_) {
      if (!letters.contains(letter)) Violate("L", "the letter of " + letter + " is lost");
    }
  }

 private:
  // What the world knows of a record, to check the store and the workers.
  struct Known {
    int64_t highest_epoch = 0;
    int claims = 0;
    int claims_without_progress = 0;
    // Consecutive holders lost to a fault, or to a poison item beside it: they neither made
    // progress nor reported why.
    int lost_holders = 0;
    int disturbances_before_claim = 0;
    int64_t read = 0;
  };
  struct HeldUntil {
    nanoseconds deadline{0};
    int faults_at_late_send = -1;
    nanoseconds believed{0};  // the deadline as known to its holder
    bool lapsed = false;      // it passed before the holder learned of a later one
  };

  class Letters final : public pipeline::DeadLetters {
   public:
    Letters(WorkWorkloadImpl& workload, Env& env)
        : workload_(workload),
          calls_(workload.files_->CallsOf(env)),
          file_(pipeline::NewDeadLetterFile(kLetters, "run", *calls_)) {}
    Status Add(const pipeline::DeadLetter& letter) override {
      MUSTER_TRY(file_->Add(letter));
      pending_.insert(std::string(letter.collection) + "/" + std::string(letter.document.id));
      return {};
    }
    Status Flush() override {
      MUSTER_TRY(file_->Flush());
      workload_.acknowledged_.merge(pending_);
      return {};
    }

   private:
    WorkWorkloadImpl& workload_;
    std::unique_ptr<FileCalls> calls_;
    std::unique_ptr<pipeline::DeadLetters> file_;
    std::set<std::string> pending_;
  };

  // What a process knows of itself, from start to end.
  class Observer final : public work::WorkObserver {
   public:
    Observer(WorkWorkloadImpl& workload, Env& env, std::stop_token stop)
        : workload_(workload), env_(env), stop_(std::move(stop)), stopping_(stop_, [this] {
            stopped_at_ = workload_.sim_->now();
            calm_since_ = workload_.sim_->calm_since();
          }) {}

    void Acquired(const work::WorkItem& item, const pipeline::Progress& /*from*/) override {
      for (const auto& [name, epoch] : holds_) {
        if (name == item.name()) workload_.CheckOther(item, epoch);
      }
      holds_.emplace(item.name(), item.fence().epoch);
      workload_.Holds(item);
    }
    void Advanced(const work::WorkItem& item, const pipeline::Progress& progress) override {
      workload_.Holds(item);
      workload_.Accounts(item.name(), progress.counts);
    }
    void Renewed(const work::WorkItem& item) override { workload_.Holds(item); }
    void Split(const work::WorkItem& item, const pipeline::Progress& /*progress*/) override {
      workload_.sim_->Sometimes("an item is split");
      workload_.Holds(item);
    }
    void Ended(const work::WorkItem& item, work::ShardOutcome outcome, const Error* why) override {
      holds_.erase({item.name(), item.fence().epoch});
      if (!stop_.stop_requested() && workload_.WasStopped(item, why)) stopped_ = item.name();
      workload_.Settled(env_, item, outcome, why);
    }

    // Its worker has returned. A failing one stops all of its slots.
    void Returned(bool failed) {
      if (!stopped_.empty() && !failed)
        workload_.Violate("V", stopped_ + " was stopped though its lease lasts");
      stopped_.clear();
      if (!holds_.empty() && !failed)
        workload_.Violate("L", holds_.begin()->first + " is still held when its worker has ended");
      holds_.clear();
      if (stopped_at_) workload_.CheckEndOfStop(*stopped_at_, calm_since_);
    }

   private:
    WorkWorkloadImpl& workload_;
    Env& env_;
    const std::stop_token stop_;
    std::optional<nanoseconds> stopped_at_;
    nanoseconds calm_since_{0};                        // when it was stopped
    std::set<std::pair<std::string, int64_t>> holds_;  // names and epochs
    std::string stopped_;                              // an item that was stopped during its lease
    std::stop_callback<std::function<void()>> stopping_;
  };

  void Work(const std::string& name, int slots, Env& env, std::stop_token stop) {
    std::unique_ptr<pipeline::Sink> sink;
    if (tables_) sink = std::make_unique<TableSink>(*tables_, env, pace_);
    if (documents_) sink = std::make_unique<DocumentSink>(*documents_, env, pace_, buffered_);
    WorldSource source(world_, *sim_);
    Letters letters(*this, env);
    pipeline::Throttle throttle(env);
    const auto transforms = pipeline::ParseTransforms("", "").value();
    pipeline::Pipeline pipeline{.env = env,
                                .source = source,
                                .transforms = *transforms,
                                .sink = *sink,
                                .dead_letters = letters,
                                .throttle = throttle,
                                .options = {.limits = world_.limits(), .read_ahead = false}};
    Observer observer(*this, env, stop);
    work::WorkerOptions options{
        .run = {.name = "run"}, .terms = terms_, .worker = name, .slots = slots};
    while (!stop.stop_requested()) {
      options.run.new_incarnation = std::exchange(new_incarnation_, false);
      const auto ended = work::RunWorker(*store_, pipeline, options, observer, stop);
      observer.Returned(!ended.has_value());
      if (ended && ended->all_done) {
        if (!MayGoBackYet()) return;
        env.Sleep(kOperatorTime, stop);
      } else if (ended) {
        if (!stop.stop_requested()) Violate("V", name + " ended before all was done");
      } else if (ended.error().code == Code::kIncompatible && went_back_) {
        // An operator reads the message and follows it.
        sim_->Note("halts: " + ended.error().message);
        sim_->Sometimes("a worker halts loudly, and a new incarnation goes on");
        env.Sleep(sim_->random().UpTo(kOperatorTime), stop);
        new_incarnation_ = true;
      } else if (!IsTransient(ended.error().code)) {
        return Violate("V", name + " gave up: " + ended.error().ToString());
      }
    }
  }

  // Complete lines; readers recognise lines torn by a crash.
  std::set<std::string> LettersInFile() const {
    std::set<std::string> letters;
    std::istringstream file(files_->Content(kLetters));
    for (std::string line; std::getline(file, line);) {
      const Json letter = Json::parse(line, nullptr, false);
      if (!letter.is_object()) {
        sim_->Sometimes("a line of a letter is torn");
        continue;
      }
      letters.insert(TextIn(letter, "collection") + "/" + TextIn(letter, "id"));
    }
    return letters;
  }

  FaultyWire& Wire() { return tables_ ? tables_->wire : documents_->wire; }

  // An operator checks from time to time whether finished work is still there.
  bool MayGoBackYet() const {
    return goes_back_ && sim_->now() < Simulation::kFaultTime + 2 * kLongestLoss;
  }

  void Holds(const work::WorkItem& item) {
    const std::string held =
        HeldBy(sim_->CurrentName(), work::ItemKey("run", item.name()), item.fence().epoch);
    const nanoseconds believed = item.deadline().time_since_epoch();
    HeldUntil& until = held_[held];
    until.lapsed |= until.believed.count() > 0 && sim_->now() > until.believed;
    until.believed = until.deadline = believed;
    if (const auto lasts = lasts_.find(held); lasts != lasts_.end() && believed > lasts->second) {
      Violate("F", item.name() + ": its holder counts on a longer lease than it has");
    }
  }

  // A slot acquires an item that another slot of its worker has not released, and so must have
  // lost.
  void CheckOther(const work::WorkItem& item, int64_t epoch) {
    sim_->Sometimes("a slot acquires what another of its worker has lost");
    if (!went_back_ && epoch == item.fence().epoch)
      Violate("F", item.name() + " is held by two slots of a worker");
  }

  // A holder stops when its lease ends, and starts no further batch.
  void Begins(const pipeline::Fence& fence) {
    const auto held =
        held_.find(HeldBy(sim_->CurrentName(), work::ItemKey("run", fence.item), fence.epoch));
    if (held == held_.end() || sim_->Unwinding()) return;
    if (sim_->now() > std::max(held->second.deadline, sim_->RunsSince()) + kNoticed)
      Violate("F", fence.item + ": a batch begins after the lease has ended");
  }

  // Whether an item was stopped during its lease.
  bool WasStopped(const work::WorkItem& item, const Error* why) const {
    if (went_back_ || why == nullptr || why->code != Code::kCancelled ||
        why->message == "held long enough")
      return false;
    const auto held = held_.find(
        HeldBy(sim_->CurrentName(), work::ItemKey("run", item.name()), item.fence().epoch));
    return held != held_.end() && !held->second.lapsed && sim_->now() < held->second.believed;
  }

  // If nothing else goes wrong, a worker that is asked to stop releases everything in time.
  void CheckEndOfStop(nanoseconds stopped_at, nanoseconds calm_since) {
    if (sim_->calm_since() != calm_since || stopped_at < calm_since + kCalm) return;
    sim_->Sometimes("17 asked to stop while nothing else goes wrong");
    if (sim_->now() > stopped_at + kStopTime + 2 * pace_)
      Violate("V", "a worker was asked to stop, and went on");
  }

  void Accounts(const std::string& name, const pipeline::Counts& counts) {
    if (counts.read != counts.written + counts.skipped + counts.failed) {
      Violate("L", name + ": what was read is not what was written, skipped or failed");
    }
  }

  void Settled(Env& env, const work::WorkItem& item, work::ShardOutcome outcome, const Error* why) {
    const std::optional<store::Record> stored =
        store_->Truth().Get(work::kWorkKind, work::ItemKey("run", item.name())).value();
    switch (outcome) {
      case work::ShardOutcome::kCompleted:
      case work::ShardOutcome::kHandedOver:
        if (!went_back_ && StateOf(*stored) != work::ItemBody::State::kDone) {
          Violate("H", item.name() + ": completion was reported but is not stored");
        }
        if (outcome == work::ShardOutcome::kHandedOver) sim_->Sometimes("an item is handed over");
        if (auto off = env.WallNow().time_since_epoch() % std::chrono::hours(24);
            off > std::chrono::minutes(50)) {
          sim_->Sometimes("4 a worker's clock is an hour off");
        }
        break;
      case work::ShardOutcome::kReleased:
        if (item.progress().position.empty()) {
          sim_->Sometimes("17 asked to stop before the first checkpoint");
        }
        break;
      case work::ShardOutcome::kQuarantined:
        sim_->Sometimes(why != nullptr && why->code == Code::kCorrupt
                            ? "29 a corrupt source fails closed"
                            : "16 a poison item kills each holder");
        break;
      case work::ShardOutcome::kLost:
        if (store_->Away()) sim_->Sometimes("19 the store is down near the end of a lease");
        break;
      default:
        break;
    }
  }

  void Sends(const store::Change& change) {
    if (sim_->Unwinding()) return;
    if (change.record.kind == work::kEndKind) return PausesBeforeAnEnd(change);
    if (change.record.kind != work::kWorkKind) return;
    if (change.record.version == 0) return Creates(change.record.key);
    if (StateOf(change.record) == work::ItemBody::State::kDone) {
      completing_.insert(WithEpoch(change.record.key, change.record.epoch));
    }
    auto held = held_.find(HeldBy(change.record.owner, change.record.key, change.record.epoch));
    if (held == held_.end() || sim_->now() <= held->second.deadline) {
      return PausesBeforeASplit(change);
    }
    // One may be in flight if time runs out between checking the clock and the call, and another
    // only if a further fault stopped its sender there.
    const int faults = sim_->faults_fired();
    if (std::exchange(held->second.faults_at_late_send, faults) == faults) {
      Violate("F", change.record.key + ": its holder goes on writing after the lease has ended");
    }
  }

  // A named successor does not exist yet: the moment to crash.
  void Creates(const std::string& key) {
    if (named_.contains(key) && sim_->Fires(Fault::kCrash, 5)) {
      sim_->Crash("before it creates " + key);
    }
  }

  // A holder about to name a successor that sleeps past its lease wakes up to find that another has
  // split the item, or handed it over, instead.
  void PausesBeforeASplit(const store::Change& change) {
    const auto stored = store_->Truth().Get(work::kWorkKind, change.record.key).value();
    if (!stored || !GivesAway(*stored, change.record) || !sim_->Fires(Fault::kPause, 5)) return;
    sim_->Note("hangs before it splits " + change.record.key);
    Hang(terms_.lease + sim_->random().UpTo<int64_t, std::nano>(2 * terms_.max_lease));
  }

  // A worker that judged everything done records it only after the store has gone back.
  void PausesBeforeAnEnd(const store::Change& change) {
    const nanoseconds pause = sim_->random().UpTo<int64_t, std::nano>(2 * kLongestLoss);
    if (!store_->GoBackBefore(pause)) return;
    sim_->Note("hangs before it marks " + change.record.key);
    Hang(pause);
  }

  void Hang(nanoseconds time) {
    sim_->Lasts(time);
    sim_->Pass(time);
  }

  // A hand-over also renews the lease before it creates the successor.
  void Renewed(const store::Change& change, const store::Record& after) {
    const auto held = held_.find(HeldBy(after.owner, after.key, after.epoch));
    if (held == held_.end() || change.due.kind != store::Due::Kind::kAfter || after.owner.empty())
      return;
    held->second.deadline = std::max(held->second.deadline, sim_->now() + change.due.delay);
  }

  // A failed item backs off, longer each time if its data is to blame.
  void CheckRest(const store::Change& change, const work::ItemBody& was, const work::ItemBody& is,
                 const store::Record& after) {
    const bool failed = is.state == work::ItemBody::State::kOpen && !is.error.empty() &&
                        after.owner.empty() && change.due.kind == store::Due::Kind::kAfter &&
                        is.waits == was.waits;
    if (!failed) return;
    const bool damaged = is.error.find(WorkWorld::kDamaged) != std::string::npos;
    const milliseconds least =
        store::LeaseFor(damaged ? std::max(1, after.attempt) : 1, terms_.retry_delay, kLongestRest);
    if (change.due.delay < least)
      Violate("B", after.key + " is tried again after " + std::to_string(change.due.delay.count()) +
                       " ms, not " + std::to_string(least.count()));
  }

  void Changed(const store::Change& change, const std::optional<store::Record>& before,
               const std::optional<store::Record>& after, bool late) {
    if (change.record.kind == work::kEndKind && after) return CheckEnd(*after);
    if (change.record.kind != work::kWorkKind) return;
    const std::string& key = change.record.key;
    if (!after && !went_back_) return Violate("P", key + " disappeared");
    if (!after) {
      known_.erase(key);  // its claimer achieved nothing by it
      return;
    }
    if (!before) return Created(*after);
    if (change.record.version == 0) return;  // was there already
    const work::ItemBody& was = Body(*before);
    const work::ItemBody& wanted = Body(change.record);
    const bool completes = wanted.state == work::ItemBody::State::kDone;
    if (*before == *after) {  // a conflict
      const bool stale = before->epoch > change.record.epoch;
      if (!late && !completes && stale) sim_->Sometimes("9 a renewal races a takeover");
      if (late && !completes && before->owner.empty()) {
        sim_->Sometimes("10 a late renewal after the release");
      }
      if (stale && GivesAway(*before, change.record)) {
        sim_->Sometimes("15 two workers split the same item");
      }
      return;
    }
    if (change.due.kind == store::Due::Kind::kAfter && !after->owner.empty())
      lasts_[HeldBy(after->owner, key, after->epoch)] = sim_->now() + change.due.delay;
    Renewed(change, *after);
    Known& known = known_[key];
    const work::ItemBody& is = Body(*after);
    CheckRest(change, was, is, *after);
    if (!went_back_ && change.record.epoch != before->epoch) {
      Violate("F", key + ": a write of epoch " + std::to_string(change.record.epoch) +
                       " took effect in epoch " + std::to_string(before->epoch));
    }
    if (after->version <= before->version) Violate("P", key + ": its version did not grow");
    if (was.state == work::ItemBody::State::kDone && !went_back_) {
      Violate("P", key + " was changed after completion");
    }
    if (!went_back_ && is.progress.counts.read < known.read) {
      Violate("P", key + ": its progress fell");
    }
    if (is.progress.counts.read > known.read) known.claims_without_progress = 0;
    const bool reports = after->owner.empty() && change.due.kind == store::Due::Kind::kAfter;
    if (is.progress.counts.read > known.read || reports) known.lost_holders = 0;
    known.read = std::max(known.read, is.progress.counts.read);
    if (is.state == work::ItemBody::State::kQuarantined && !went_back_ &&
        known.claims_without_progress < terms_.max_attempts) {
      Violate("B", key + " was quarantined after only " +
                       std::to_string(known.claims_without_progress) + " claims without progress");
    }
    // Indistinguishable from an item that kills each holder.
    if (is.state == work::ItemBody::State::kQuarantined &&
        (went_back_ || known.lost_holders >= terms_.max_attempts)) {
      unlucky_.insert(key);
      sim_->Sometimes("faults take so many holders in a row that an item is quarantined");
    }
    const bool released = after->owner.empty() && is.state == work::ItemBody::State::kOpen;
    if (released && is.error.empty() && (!after->due || *after->due > StoreNow())) {
      Violate("V", key + " was released but is not due");
    }
    for (const pipeline::Partition& part : is.Successors()) {
      named_.try_emplace(work::ItemKey("run", work::NameOf(part)), after->epoch, key);
    }
  }

  // A run is finished when every item of this incarnation is done.
  void CheckEnd(const store::Record& end) {
    const auto stored = store_->Truth().Get(work::kRunKind, "run").value();
    if (!stored) return;
    const work::RunBody run = work::RunBody::FromJson(stored->body).value();
    if (end.key != work::EndKey("run", run.incarnation) ||
        !Json::parse(end.body).value("confirmed", false))
      return;
    for (const store::Record& item : All()) {
      if (StateOf(item) != work::ItemBody::State::kDone)
        Violate("L", "the run is said to be finished, but " + item.key + " is not done");
    }
  }

  void Created(const store::Record& record) {
    const auto named = named_.find(record.key);
    if (named == named_.end()) return;
    const auto& [epoch, parent] = named->second;
    const auto stored = store_->Truth().Get(work::kWorkKind, parent).value();
    if (stored && stored->epoch > epoch) {
      sim_->Sometimes("14 a crash in a hand-over or split is made up for");
    }
  }

  void Claimed(const store::ClaimRequest& request, const std::vector<store::Record>& before,
               const std::vector<store::Record>& taken, bool late) {
    if (request.kind != work::kWorkKind) return;
    if (late && !taken.empty()) sim_->Sometimes("a claim request arrives again or late");
    for (size_t i = 0; i < taken.size(); ++i) {
      if (taken[i] == before[i]) {
        sim_->Sometimes("7 claim applied, response lost");
        continue;
      }
      CheckGrant(request, before[i], taken[i], late);
    }
  }

  void CheckGrant(const store::ClaimRequest& request, const store::Record& before,
                  const store::Record& taken, bool late) {
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
    if (!before.owner.empty() && Disturbances() > known.disturbances_before_claim)
      ++known.lost_holders;
    // A late request is itself caused by a fault, which its sender does not see.
    known.disturbances_before_claim = Disturbances() - (late ? 1 : 0);
    known.highest_epoch = taken.epoch;
    // A removed and recreated item starts over with its epochs.
    const std::string held = HeldBy(request.owner, key, taken.epoch);
    held_.erase(held);
    lasts_[held] = sim_->now() + store::LeaseFor(taken.attempt, request.lease, request.max_lease);
    ++known.claims;
    ++known.claims_without_progress;
    // A worker that cannot reach the sink releases the item, which does not count.
    if (known.claims > terms_.max_attempts + 4 + 3 * sim_->faults_fired() + Wire().refused()) {
      Violate("B", key + " was claimed " + std::to_string(known.claims) + " times");
    }
    if (late) return;
    auto& granted = granted_[request.claim_id];
    for (const auto& [other, epoch] : granted) {
      const auto stored = store_->Truth().Get(work::kWorkKind, other).value();
      if (stored && stored->epoch == epoch && stored->due && *stored->due > StoreNow()) {
        Violate("B", "one claim took " + key + " though it still holds " + other);
      }
    }
    granted.emplace_back(key, taken.epoch);
  }

  // A poison item also kills what other slots of its worker hold.
  int Disturbances() const { return sim_->faults_fired() + sim_->crashes(); }

  void Reads(const std::optional<store::Record>& stored) {
    if (!stored || stored->kind != work::kWorkKind || stored->owner != sim_->CurrentName()) return;
    const bool done = StateOf(*stored) == work::ItemBody::State::kDone;
    const bool completing = completing_.contains(WithEpoch(stored->key, stored->epoch));
    if (done && completing) sim_->Sometimes("12 complete: no reply, applied");
    if (!done && completing) sim_->Sometimes("13 complete: no reply, not applied");
  }

  void Sinks(const pipeline::Fence& fence, bool late, bool refused, bool empty) {
    const auto stored =
        store_->Truth().Get(work::kWorkKind, work::ItemKey("run", fence.item)).value();
    if (!stored) return;
    if (!late && fence.epoch < stored->epoch) {
      sim_->Sometimes("2 a worker pauses between its look at the lease and the write");
      if (refused && !empty) {
        sim_->Sometimes("1 a worker pauses past its lease in the middle of a batch");
      }
    }
    if (late && StateOf(*stored) == work::ItemBody::State::kDone) {
      sim_->Sometimes("3 a delayed write arrives after all is done");
    }
  }

  // From now on epochs are granted again, and finished work is open again; only the end still
  // counts.
  void WentBack() {
    went_back_ = true;
    known_.clear();
    granted_.clear();
    held_.clear();
    lasts_.clear();
    named_.clear();
    if (restored_) new_incarnation_ = true;
    sim_->Sometimes(restored_ ? "23 the store is restored from a backup"
                              : "22 a failover loses acknowledged commits");
  }

  std::vector<store::Record> All() {
    return store_->Truth().Scan(work::kWorkKind, "", "", store::kMaxBatch).value();
  }
  WallTime StoreNow() { return store_->Truth().Now().value(); }
  const work::ItemBody& Body(const store::Record& record) { return bodies_[record.body]; }
  work::ItemBody::State StateOf(const store::Record& record) { return Body(record).state; }
  // Whether `wanted` names a successor that `stored` does not.
  bool GivesAway(const store::Record& stored, const store::Record& wanted) {
    const auto& known = Body(stored).progress.former_ends;
    const auto& named = Body(wanted).progress.former_ends;
    return named.size() > known.size() || !std::equal(named.begin(), named.end(), known.begin());
  }
  void Violate(const std::string& invariant, std::string message) {
    sim_->Violate(invariant, std::move(message));
  }

  Simulation* sim_ = nullptr;
  Parsed<work::ItemBody> bodies_{
      [](const std::string& body) { return work::ItemBody::FromJson(body).value(); }};
  WorkWorld world_;
  std::unique_ptr<FaultyStore> store_;
  std::unique_ptr<TableTarget> tables_;  // one of the two
  std::unique_ptr<DocumentTarget> documents_;
  work::WorkTerms terms_;
  nanoseconds pace_{0};
  bool buffered_ = false;
  bool restored_ = false;
  bool goes_back_ = false;
  bool went_back_ = false;
  bool new_incarnation_ = false;  // the next worker to start begins one
  std::unique_ptr<SimFiles> files_;
  std::set<std::string> acknowledged_;  // letters that were flushed
  std::map<std::string, Known> known_;
  std::set<std::string> unlucky_;  // items quarantined because no holder survived
  std::map<std::string, HeldUntil> held_;
  std::map<std::string, nanoseconds> lasts_;  // end of each lease, as granted by the store
  std::map<std::string, std::vector<std::pair<std::string, int64_t>>> granted_;  // by claim_id
  std::map<std::string, std::pair<int64_t, std::string>> named_;  // successors: epoch, parent
  std::set<std::string> completing_;
};

}  // namespace

WorkloadInfo WorkWorkload() {
  return {
      .name = "work",
      .about = "workers share a migration: leases, checkpoints, splits, hand-overs, real pipelines",
      .create = []() -> std::unique_ptr<Workload> { return std::make_unique<WorkWorkloadImpl>(); },
      .sometimes = {"1 a worker pauses past its lease in the middle of a batch",
                    "2 a worker pauses between its look at the lease and the write",
                    "3 a delayed write arrives after all is done",
                    "4 a worker's clock is an hour off",
                    "5 the store's clock jumps back",
                    "6 the store's clock jumps forward",
                    "7 claim applied, response lost",
                    "a claim request arrives again or late",
                    "9 a renewal races a takeover",
                    "10 a late renewal after the release",
                    "11 a worker restarts under the same id",
                    "12 complete: no reply, applied",
                    "13 complete: no reply, not applied",
                    "14 a crash in a hand-over or split is made up for",
                    "15 two workers split the same item",
                    "16 a poison item kills each holder",
                    "17 asked to stop before the first checkpoint",
                    "18 many workers, one item",
                    "19 the store is down near the end of a lease",
                    "20 the store takes no writes",
                    "21 the connection is lost during COMMIT",
                    "22 a failover loses acknowledged commits",
                    "23 the store is restored from a backup",
                    "24 only some changes of a request survive",
                    "25 a bulk request is taken in part",
                    "26 a stale read picks an item that is taken",
                    "27 a late write of an earlier migration meets a deleted document",
                    "28 the store throttles",
                    "29 a corrupt source fails closed",
                    "an item is split",
                    "an item is handed over",
                    "a worker halts loudly, and a new incarnation goes on",
                    "a full disk takes a part of a letter",
                    "a line of a letter is torn",
                    "24 a loss of power takes back letters that were not synced",
                    "a machine is suspended",
                    "a call hangs",
                    "a slot acquires what another of its worker has lost",
                    "17 asked to stop while nothing else goes wrong"}};
}

const std::vector<WorkloadInfo>& Workloads() {
  static const std::vector<WorkloadInfo> kWorkloads{WorkWorkload(), ReplicaWorkload(),
                                                    StatesWorkload(), PlanWorkload()};
  return kWorkloads;
}

}  // namespace muster::sim
