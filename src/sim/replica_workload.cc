#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "replica/replica.h"
#include "sim/faulty_store.h"
#include "sim/replica_services.h"
#include "sim/workload.h"

namespace muster::sim {
namespace {

using std::chrono::seconds;

const std::string kSet = "orders";
const std::string kProjection = "totals";
constexpr int kBatch = 5;
constexpr int kHangs = 2;
constexpr milliseconds kBarrierTimeout = seconds(60);
constexpr milliseconds kHandleTimeout = seconds(300);

// The time scale of the simulated worlds: calls take milliseconds or, when lost, five seconds.
replica::ReplicaOptions Options(const std::string& name) {
  replica::ReplicaOptions options;
  options.set = kSet;
  options.worker = name;
  options.heartbeat_interval = seconds(8);
  options.heartbeat_timeout = seconds(30);
  options.barrier_timeout = kBarrierTimeout;
  options.quiet = seconds(2);
  options.quiet_most = seconds(10);
  options.handle_timeout = kHandleTimeout;
  options.batch_time = seconds(10);
  options.batch = kBatch;
  options.max_attempts = 3;
  options.retry_delay = seconds(1);
  return options;
}

// Steps the followers itself: a simulated process is one thread. During a slow batch the worker
// still looks at its set, as it would beside a thread.
class InlineRunner final : public replica::FollowerRunner {
 public:
  // `pause` returns the number of the projection's current pause; 0: not paused.
  InlineRunner(Simulation& sim, Env& env, std::function<bool()> done,
               std::function<int64_t()> pause)
      : sim_(sim), env_(env), done_(std::move(done)), pause_(std::move(pause)) {}

  void SetWorker(replica::Worker& worker) { worker_ = &worker; }
  std::stop_source& Stop() { return stop_; }

  // Within a step: lets time pass for the processor.
  void Spend(nanoseconds duration) {
    const MonoTime end = env_.MonoNow() + duration;
    while (env_.MonoNow() < end) {
      env_.Sleep(std::min<nanoseconds>(seconds(4), end - env_.MonoNow()), {});
      // If it is out, Run finds the same once the batch has ended.
      static_cast<void>(worker_->Look());
    }
  }

  bool HaveThreads() const override { return false; }

  void Start(replica::Follower& follower) override {
    given_.push_back({&follower, ++numbers_});
    stops_[&follower] = {};
    failures_.erase(&follower);
  }

  // A thread may be within a step when stopped: it ends, but is not back yet.
  bool Take(replica::Follower& follower, milliseconds /*patience*/) override {
    stops_[&follower].request_stop();
    const auto erased =
        std::erase_if(given_, [&](const Given& given) { return given.follower == &follower; });
    if (&follower == stepping_) return false;
    const bool within_a_step = erased > 0 && sim_.random().OneIn(2);
    if (within_a_step) return false;
    failures_.erase(&follower);
    return true;
  }

  std::optional<Error> Failure(replica::Follower& follower) override {
    const auto found = failures_.find(&follower);
    if (found == failures_.end()) return std::nullopt;
    Error error = found->second;
    failures_.erase(found);
    return error;
  }

  void Wait(nanoseconds duration, std::stop_token stop) override {
    const bool throughout = pause_() != 0 && pause_() == before_look_;
    seen_pause_ = throughout && !trouble_ ? pause_() : 0;
    trouble_ = false;
    StepAll(duration, stop);
    before_look_ = pause_();
  }

  // The last look failed.
  void NoteTrouble() { trouble_ = true; }

  // Whether the last look was within a pause that still lasts: its worker has seen it.
  bool IsPaused() const { return seen_pause_ != 0 && seen_pause_ == pause_(); }

 private:
  void StepAll(nanoseconds duration, const std::stop_token& stop) {
    if (done_()) {
      stop_.request_stop();
      return;
    }
    const MonoTime end = env_.MonoNow() + duration;
    while (env_.MonoNow() < end && !stop.stop_requested()) {
      bool moved = false;
      for (const Given& given : std::vector<Given>(given_)) {
        if (std::find(given_.begin(), given_.end(), given) == given_.end()) continue;
        replica::Follower* const follower = given.follower;
        if (failures_.contains(follower)) continue;
        if (env_.MonoNow().time_since_epoch().count() >= worker_->DeadlineNs()) return;
        stepping_ = follower;
        auto outcome = follower->Step(stops_[follower].get_token());
        stepping_ = nullptr;
        if (!outcome) failures_.emplace(follower, outcome.error());
        moved |= outcome && *outcome == replica::Follower::Outcome::kMoved;
      }
      if (!moved && !env_.Sleep(std::min<nanoseconds>(seconds(2), duration), stop)) return;
    }
  }

  Simulation& sim_;
  Env& env_;
  const std::function<bool()> done_;
  const std::function<int64_t()> pause_;
  int64_t before_look_ = 0;
  int64_t seen_pause_ = 0;
  bool trouble_ = false;
  replica::Worker* worker_ = nullptr;
  std::stop_source stop_;
  // By number too: a new one may reuse the address of one that is gone.
  struct Given {
    replica::Follower* follower;
    int64_t number;

    bool operator==(const Given&) const = default;
  };
  std::vector<Given> given_;
  int64_t numbers_ = 0;
  std::map<replica::Follower*, std::stop_source> stops_;
  replica::Follower* stepping_ = nullptr;
  std::map<replica::Follower*, Error> failures_;
};

class ReplicaWorkloadImpl final : public Workload {
 public:
  void Setup(Simulation& sim) override {
    sim_ = &sim;
    Random& random = sim.random();
    store_ = std::make_unique<FaultyStore>(
        sim, StoreObserver{
                 .sends = {},
                 .changed = [this](const store::Change& change,
                                   const std::optional<store::Record>& before,
                                   const std::optional<store::Record>& after,
                                   bool /*late*/) { Changed(change, before, after); },
                 .claimed = {},
                 .reads = {},
             });
    model_ = std::make_unique<SimReadModel>(
        sim,
        ReadModelObserver{
            .taken_over =
                [this](const replica::Instance& instance, int64_t generation,
                       std::span<const int> slots) {
                  TakenOver(instance.version, generation, slots);
                },
            .committed =
                [this](const replica::Instance& instance,
                       const replica::ReadModelProgress& progress,
                       const std::vector<replica::MemoryReadModel::Statement>& statements,
                       const std::string& sender, bool applied) {
                  // Work still done for a dropped version is not checked.
                  if (!applied || dropped_.contains(instance.version)) return;
                  Committed(instance.version, progress, statements, sender);
                },
            .refused =
                [this] {
                  if (!store_->Away()) {
                    sim_->Sometimes("41 a worker reaches the store, but not the read model");
                  }
                },
            .forgotten =
                [this](const replica::Instance& instance) { dropped_.insert(instance.version); },
        });
    log_ = std::make_unique<SimEventLog>(sim, static_cast<int>(random.Between(3, 12)));
    crowd_ = random.OneIn(200);
    // Small enough to be crashed at every single call.
    const bool tiny = !crowd_ && random.OneIn(8);
    const int64_t workers = crowd_ ? 100 : tiny ? 1 : random.Between(1, 5);
    strategy_ = random.OneIn(2) ? replica::Strategy::kRecreate : replica::Strategy::kIncremental;
    events_ = crowd_ ? 10 : tiny ? random.Between(1, 3) : random.Between(5, 60);
    if (tiny) append_for_ = seconds(1);
    streams_ = random.Between(1, 8);
    if (random.OneIn(4)) poison_ = random.Between(0, events_ - 1);
    if (random.OneIn(6)) hang_ = random.Between(0, events_ - 1);
    if (random.OneIn(6)) {
      needy_ = random.Between(0, events_ - 1);
      refusals_ = static_cast<int>(random.Between(1, 12));
    }
    if (!crowd_ && random.OneIn(6)) crash_ = random.Between(0, events_ - 1);
    if (!crowd_ && !tiny && random.OneIn(5)) {
      // A whole batch, or even one event, takes longer than the barrier waits.
      slow_ = random.OneIn(2) ? kBarrierTimeout / kBatch * 2 : kBarrierTimeout * 3 / 2;
      events_ = std::min<int64_t>(events_, 20);
      heeds_turns_ = random.OneIn(2);
    }
    for (int64_t i = 0; i < workers; ++i) {
      const std::string name = "worker" + std::to_string(i);
      sim.AddProcess(name, [this, name](Env& env, std::stop_token stop) { Work(name, env, stop); });
    }
    sim.AddProcess("appender", [this](Env& env, std::stop_token stop) { AppendAll(env, stop); });
    if (!crowd_ && !tiny && random.OneIn(2)) {
      late_ = random.OneIn(2);
      rebuilds_ = random.OneIn(2);
      sim.AddProcess("operator", [this](Env& env, std::stop_token stop) { Operate(env, stop); });
    }
  }

  void Check() override {
    if (crowd_) sim_->Sometimes("36 a hundred workers join in one window");
    sim_->Sometimes("40 every notification is lost");
    const auto all = log_->Truth().ReadAll(0, events::kMaxEventBatch).value().events;
    for (const int version : Versions()) {
      CheckHandled(version, all);
      CheckAudit(version, all);
    }
    for (const events::Event& event : all) CheckEffects(event);
  }

 private:
  // The projection: its read model is the list of events it has handled.
  class SimProcessor final : public replica::Processor {
   public:
    SimProcessor(ReplicaWorkloadImpl& world, InlineRunner& runner, bool side_effects)
        : world_(world), runner_(runner), side_effects_(side_effects) {}
    Status Handle(std::span<const events::Event> events,
                  replica::Transaction& transaction) override {
      for (const events::Event& event : events) MUSTER_TRY(HandleOne(event, transaction));
      return {};
    }
    // Some notice that their turn is over, others continue to the end.
    Result<size_t> HandleSome(std::span<const events::Event> events,
                              replica::Transaction& transaction, replica::Turn& turn) override {
      for (size_t i = 0; i < events.size(); ++i) {
        MUSTER_TRY(HandleOne(events[i], transaction));
        if (world_.heeds_turns_ && turn.Over()) return i + 1;
      }
      return events.size();
    }

   private:
    Status HandleOne(const events::Event& event, replica::Transaction& transaction) {
      if (runner_.IsPaused()) world_.Violate("Q", "a paused projection handles events");
      const auto number = std::stoll(event.payload);
      if (number == world_.crash_) world_.CrashIn(number);
      if (number == world_.poison_ && !world_.cured_) {
        world_.sim_->Sometimes("43 a projection throws");
        throw std::runtime_error("poison");
      }
      if (number == world_.needy_ && world_.refusals_ > 0) {
        --world_.refusals_;
        world_.sim_->Sometimes("43 what a projection needs is away");
        return Error{Code::kUnavailable, "a service is away"};
      }
      if (number == world_.hang_ && world_.hangs_ < kHangs) {
        ++world_.hangs_;
        world_.sim_->Sometimes("43 a projection hangs");
        runner_.Spend(kHandleTimeout + seconds(60));
      }
      if (world_.slow_ > nanoseconds(0)) runner_.Spend(world_.slow_);
      return transaction.Execute(
          "handled", {event.stream, std::to_string(event.version), side_effects_ ? "1" : "0"});
    }

    ReplicaWorkloadImpl& world_;
    InlineRunner& runner_;
    const bool side_effects_;
  };

  class SimProjection final : public replica::Projection {
   public:
    SimProjection(ReplicaWorkloadImpl& world, InlineRunner* runner)
        : world_(world), runner_(runner) {}
    const std::string& name() const override { return kProjection; }
    Result<std::unique_ptr<replica::Processor>> Build(
        const replica::ReplicaPartition& partition) override {
      return std::make_unique<SimProcessor>(world_, *runner_, partition.side_effects);
    }

   private:
    ReplicaWorkloadImpl& world_;
    InlineRunner* const runner_;  // of those who handle events
  };

  // A process that handles this event dies, until the event is parked.
  [[noreturn]] void CrashIn(int64_t number) {
    sim_->Sometimes("43 a projection ends its process");
    // The first death is not recorded, the second is in a batch, two more with the event alone.
    // Other faults may hide as many, and each version and replay starts over.
    if (++crashes_ > 4 * (1 + tries_) + sim_->faults_fired()) {
      Violate("B", "event " + std::to_string(number) + " has ended " + std::to_string(crashes_) +
                       " processes");
    }
    sim_->Crash("the projection");
  }

  // Only what an event itself causes may park it: its processor throws, or those who had it in
  // flight hung or died.
  void CheckGuilt(const replica::ParkedEvent& parked) {
    const auto events = log_->Truth().ReadStream(parked.stream, parked.version - 1, 1).value();
    if (events.empty()) return Violate("Q", parked.stream + " is parked for no event");
    const auto number = std::stoll(events.front().payload);
    if (number == poison_ || in_hand_[events.front().position].size() >= 2) return;
    Violate("Q", parked.stream + " is parked for event " + std::to_string(number) +
                     ", which is innocent");
  }

  void Work(const std::string& name, Env& env, std::stop_token stop) {
    NoteRestart(name);
    replica::ReplicaOptions options = Options(name);
    options.strategy = strategy_;
    int64_t last = 0;
    InlineRunner* told = nullptr;
    options.observer = [this, &last, &told](const replica::ReplicaEvent& event) {
      if (event.kind == replica::ReplicaEvent::Kind::kTrouble && told != nullptr)
        told->NoteTrouble();
      if (event.kind == replica::ReplicaEvent::Kind::kLost) {
        sim_->Sometimes("37 a worker flaps at the heartbeat's timeout");
      }
      if (event.kind != replica::ReplicaEvent::Kind::kReady) return;
      if (last != 0 && event.generation >= last + 2) {
        sim_->Sometimes("30 a worker sleeps through two or more generations");
      }
      last = event.generation;
    };
    InlineRunner runner(
        *sim_, env, [this] { return AllDone(); }, [this] { return paused_ ? pauses_ : 0; });
    replica::Worker worker(*store_, *log_, *model_, env, options,
                           {std::make_shared<SimProjection>(*this, &runner)}, runner);
    runner.SetWorker(worker);
    told = &runner;
    std::stop_callback pass_on(stop, [&runner] { runner.Stop().request_stop(); });
    if (auto ended = worker.Run(runner.Stop().get_token()); !ended) {
      Violate("V", name + " gave up: " + ended.error().message);
    }
  }

  // One event after another, throughout the fault phase.
  void AppendAll(Env& env, std::stop_token stop) {
    while (appended_ < events_ && !stop.stop_requested()) {
      if (appended_ + 1 == events_ && late_) {
        env.Sleep(seconds(1), stop);
        continue;
      }
      const int64_t number = appended_++;
      const events::StreamAppend append{
          .stream = "stream" + std::to_string(number % streams_),
          .expected = events::kAnyVersion,
          .events = {events::NewEvent{.type = "T",
                                      .payload = std::to_string(number),
                                      .metadata = "",
                                      .id = "event" + std::to_string(number)}}};
      if (auto done = log_->Append({&append, 1}); !done) Violate("V", done.error().message);
      env.Sleep(append_for_ / events_, stop);
    }
  }

  // Scales the set, replays parked streams, rebuilds, or pauses the projection and resumes it,
  // perhaps before any worker has seen it.
  void Operate(Env& env, std::stop_token stop) {
    Random& random = sim_->random();
    while (!AllDone() && !stop.stop_requested() && sim_->faults_on()) {
      if (rebuilds_ && !random.OneIn(3)) {
        RebuildSome(env, stop);
      } else if (random.OneIn(3)) {
        static_cast<void>(
            replica::ScaleSet(store_->Truth(), kSet, static_cast<int>(random.Between(1, 4))));
      } else if (random.OneIn(2)) {
        cured_ |= random.OneIn(2);
        Replay();
      } else {
        Pause(true);
        env.Sleep(seconds(random.OneIn(3) ? random.Between(10, 40) : random.Between(0, 8)), stop);
        Pause(false);
      }
      env.Sleep(seconds(random.Between(rebuilds_ ? 2 : 10, rebuilds_ ? 30 : 90)), stop);
    }
    Pause(false);  // it may have crashed before
    if (rebuilds_) EndRebuild(env);
    // Nothing else happens now that would hide what a pause left behind.
    for (int times = 0; times < 4 && late_; ++times) {
      env.Sleep(seconds(random.Between(4, 12)), {});
      Pause(true);
      env.Sleep(seconds(random.Between(1, 8)), {});
      Pause(false);
    }
    late_ = false;
  }

  // Any step of a rebuild, whether it is due or not.
  void RebuildSome(Env& env, std::stop_token stop) {
    replica::Rebuild rebuild(*store_, *log_, *model_, env, kSet,
                             std::make_shared<SimProjection>(*this, nullptr));
    const auto desired = replica::DesiredFor(store_->Truth(), kSet, kProjection).value();
    int64_t step = sim_->random().Between(0, 3);
    if (!sim_->random().OneIn(3)) {
      const bool built = desired.versions.size() > 1;
      step = !built ? 0 : desired.versions.back() > desired.active ? 1 : 2 + step % 2;
    }
    Status done;
    if (step == 0) {
      ++tries_;
      if (const auto begun = rebuild.Begin(); !begun) done = begun.error();
    } else if (step == 3) {
      if (const auto finished = rebuild.Finish(); !finished) done = finished.error();
    } else {
      done = rebuild.Swap(step == 2, stop);
      if (done && appended_ < events_) sim_->Sometimes("61 versions are swapped in mid-stream");
    }
    if (!done && (done.error().code == Code::kInternal || done.error().code == Code::kCorrupt)) {
      Violate("V", done.error().message);
    }
  }

  // As an operator who finds one in progress.
  void EndRebuild(Env& env) {
    replica::Rebuild rebuild(*store_, *log_, *model_, env, kSet,
                             std::make_shared<SimProjection>(*this, nullptr));
    for (int tries = 0; tries < 10; ++tries) {
      const auto finished = rebuild.Finish();
      if (finished || finished.error().code == Code::kNotFound) return;
      env.Sleep(seconds(5), {});
    }
  }

  void Pause(bool paused) {
    if (!replica::PauseProjection(store_->Truth(), kSet, kProjection, paused))
      Violate("V", "no pause");
    if (paused && !paused_) ++pauses_;
    paused_ = paused;
  }

  void Replay() {
    for (const int version : Versions()) {
      ++tries_;
      for (const auto& [stream, found] : Parked(version)) replaying_.emplace(version, stream);
      if (!replica::ReplayParked(store_->Truth(), model_->Truth(), {kSet, kProjection, version},
                                 "")) {
        Violate("V", "no replay");
      }
    }
  }

  std::set<int> Versions() {
    const auto desired = replica::DesiredFor(store_->Truth(), kSet, kProjection).value();
    return {desired.versions.begin(), desired.versions.end()};
  }

  // Everything is handled, or parked and left so by the operator.
  bool AllDone() {
    if (appended_ < events_) return false;
    const std::set<int> versions = Versions();
    return std::all_of(versions.begin(), versions.end(), [&](int v) { return AllDone(v); });
  }

  bool AllDone(int version) {
    int64_t waiting = 0;
    for (const auto& [stream, found] : Parked(version)) {
      if (replaying_.contains({version, stream})) return false;
      waiting += static_cast<int64_t>(found.versions.size());
    }
    return committed_[version] + waiting == events_;
  }

  std::map<std::string, replica::ParkedStream> Parked(int version) {
    std::vector<int> slots;
    for (int slot = 0; slot < log_->slots(); ++slot) slots.push_back(slot);
    std::map<std::string, replica::ParkedStream> parked;
    const auto streams = model_->Truth().Parked({kSet, kProjection, version}, slots).value();
    for (const replica::ParkedStream& stream : streams) parked[stream.stream] = stream;
    return parked;
  }

  void CheckHandled(int version, const std::vector<events::Event>& all) {
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

  // Whatever versions came and went, one of them handled it with side effects, or will.
  void CheckEffects(const events::Event& event) {
    int64_t effects = effects_[{event.stream, event.version}];
    for (const int version : Versions()) {
      const auto parked = Parked(version);
      const auto found = parked.find(event.stream);
      if (found == parked.end()) continue;
      const auto& waiting = found->second.versions;
      const bool waits = std::find(waiting.begin(), waiting.end(), event.version) != waiting.end();
      effects += waits && !found->second.quiet.contains(event.version);
    }
    if (effects != 1) {
      Violate("S", event.stream + ": event " + std::to_string(event.version) +
                       " had side effects " + std::to_string(effects) + " times");
    }
  }

  // The running counts must match the log.
  void CheckAudit(int version, const std::vector<events::Event>& all) {
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

  void TakenOver(int version, int64_t generation, std::span<const int> slots) {
    for (const int slot : slots) {
      int64_t& highest = fence_[{version, slot}];
      highest = std::max(highest, generation);
    }
  }

  void Committed(int version, const replica::ReadModelProgress& progress,
                 const std::vector<replica::MemoryReadModel::Statement>& statements,
                 const std::string& sender) {
    if (!progress.error.empty() && !progress.parked.empty()) CheckGuilt(progress.parked.front());
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
      position_[{version, move.slot}] = move.to;
      const auto [owner, fresh] = owner_.try_emplace({version, move.slot, move.generation}, sender);
      if (!fresh && owner->second != sender) {
        Violate("C", slot + " has two owners in generation " + std::to_string(move.generation) +
                         ": " + owner->second + " and " + sender);
      }
    }
    NoteParked(version, progress);
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
      if (*params[2] == "1" && ++effects_[{stream, event}] > 1) {
        Violate("S", stream + ": event " + std::to_string(event) + " had side effects twice");
      }
    }
  }

  void NoteParked(int version, const replica::ReadModelProgress& progress) {
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

  void Changed(const store::Change& change, const std::optional<store::Record>& before,
               const std::optional<store::Record>& after) {
    if (change.record.key == replica::SetKey(kSet)) return SetChanged(change, before, after);
    if (after && change.record.key.starts_with(kSet + "/suspect/")) {
      const auto suspect = replica::Suspect::FromBody(after->body);
      if (!suspect) return Violate("P", suspect.error().message);
      for (const int64_t position : suspect->positions) in_hand_[position].insert(suspect->worker);
    }
    if (!after || before == after || !change.record.key.starts_with(replica::MemberKey(kSet, "")))
      return;
    const auto now = replica::MemberState::FromBody(after->body);
    if (!now) return Violate("P", now.error().message);
    const std::string id = change.record.key.substr(replica::MemberKey(kSet, "").size());
    if (before) {
      const auto was = replica::MemberState::FromBody(before->body);
      if (was && was->phase == replica::MemberState::Phase::kDead &&
          now->phase != replica::MemberState::Phase::kDead) {
        Violate("P", id + " was dead and is alive again");
      }
    }
    if (now->phase == replica::MemberState::Phase::kReady) ready_.emplace(id, now->generation);
    const std::optional<replica::Generation> generation = Current();
    if (!generation || generation->assignment.PartitionOf(id) < 0) return;
    const bool preparing = generation->phase == replica::Generation::Phase::kPreparing;
    if (now->phase == replica::MemberState::Phase::kDead && preparing) {
      sim_->Sometimes("38 a member dies inside the barrier");
    }
    if (now->phase == replica::MemberState::Phase::kRunning) {
      for (const std::string& other : generation->assignment.members) {
        const auto state = StateOf(other);
        if (state && state->phase == replica::MemberState::Phase::kReady &&
            state->generation == generation->number) {
          sim_->Sometimes("35 a fast worker is running while a slow one is only ready");
        }
      }
    }
  }

  void SetChanged(const store::Change& change, const std::optional<store::Record>& before,
                  const std::optional<store::Record>& after) {
    const auto wanted = replica::Generation::FromBody(change.record.body);
    if (!wanted) return Violate("G", wanted.error().message);
    const auto was = before ? replica::Generation::FromBody(before->body)
                            : Result<replica::Generation>(replica::Generation{});
    if (before == after) {
      if (was && wanted->number <= was->number &&
          wanted->phase == replica::Generation::Phase::kPreparing) {
        sim_->Sometimes("34 two coordinators create a generation at once");
      }
      return;
    }
    const auto now = replica::Generation::FromBody(after->body);
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

  void Went(const replica::Generation& now) {
    if (now.assignment.owners.size() != static_cast<size_t>(log_->slots())) {
      Violate("C", "after \"go\" of generation " + std::to_string(now.number) +
                       " not every slot has an owner");
    }
    for (const std::string& id : now.assignment.members) {
      if (!ready_.contains({id, now.number}))
        Violate("C", "\"go\" came before " + id + " was ready");
    }
    if (slow_ > nanoseconds(0) && sim_->now() - proposed_at_ > kBarrierTimeout) {
      sim_->Sometimes("43 a batch is slower than the barrier");
    }
    const size_t members = now.assignment.members.size();
    if (members < static_cast<size_t>(log_->slots())) {
      sim_->Sometimes("39 fewer members than slots");
    }
    if (partitions_ != 0 && members != partitions_ && committed_[1] > 0 &&
        committed_[1] < events_) {
      sim_->Sometimes("42 the number of partitions changes in mid-stream");
    }
    partitions_ = members;
  }

  // Called when a process starts: if it started before, it has crashed or was stopped.
  void NoteRestart(const std::string& name) {
    const std::optional<replica::Generation> generation = Current();
    if (!started_.insert(name).second && generation &&
        generation->phase == replica::Generation::Phase::kPreparing) {
      size_t ready = 0;
      for (const std::string& id : generation->assignment.members) {
        const auto state = StateOf(id);
        ready += state && state->ReadyFor(generation->number);
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

  std::optional<replica::Generation> Current() {
    const auto record = store_->Truth().Get(replica::kReplicaKind, replica::SetKey(kSet)).value();
    if (!record) return std::nullopt;
    auto generation = replica::Generation::FromBody(record->body);
    if (!generation) return std::nullopt;
    return *std::move(generation);
  }

  std::optional<replica::MemberState> StateOf(const std::string& id) {
    const auto record =
        store_->Truth().Get(replica::kReplicaKind, replica::MemberKey(kSet, id)).value();
    if (!record) return std::nullopt;
    auto state = replica::MemberState::FromBody(record->body);
    if (!state) return std::nullopt;
    return *std::move(state);
  }

  void Violate(const std::string& invariant, std::string message) {
    sim_->Violate(invariant, std::move(message));
  }

  Simulation* sim_ = nullptr;
  std::unique_ptr<FaultyStore> store_;
  std::unique_ptr<SimReadModel> model_;
  std::unique_ptr<SimEventLog> log_;
  bool crowd_ = false;
  replica::Strategy strategy_ = replica::Strategy::kRecreate;
  int64_t events_ = 0;
  int64_t streams_ = 1;
  nanoseconds append_for_ = seconds(240);
  bool paused_ = false;
  int64_t pauses_ = 0;
  bool late_ = false;  // the last event comes when the operator is finished
  int64_t poison_ = -1;
  bool cured_ = false;  // it is harmless now
  bool rebuilds_ = false;
  int64_t needy_ = -1;  // an event that needs a service which is down this many times
  int refusals_ = 0;
  int64_t crash_ = -1;
  int crashes_ = 0;
  int tries_ = 0;  // how often the operator restarted everything
  int64_t hang_ = -1;
  int hangs_ = 0;
  nanoseconds slow_{0};  // duration of an event
  bool heeds_turns_ = false;
  int64_t appended_ = 0;
  int generations_ = 0;
  size_t partitions_ = 0;
  std::string creator_;
  nanoseconds proposed_at_{0};
  std::set<std::string> started_;
  std::set<std::pair<std::string, int64_t>> ready_;             // who was ever ready for what
  std::map<std::pair<std::string, int64_t>, int64_t> effects_;  // of an event
  std::map<int64_t, std::set<std::string>> in_hand_;  // by position: workers that noted it
  // By version of the read model.
  std::set<int> dropped_;
  std::map<int, int64_t> committed_;
  std::set<std::pair<int, std::string>> replaying_;  // streams that the operator has requested
  std::map<std::pair<int, std::string>, int64_t> handled_;  // the last event of a stream
  std::map<std::pair<int, int>, int64_t> fence_;            // of a slot
  std::map<std::pair<int, int>, int64_t> position_;
  std::map<std::tuple<int, int, int64_t>, std::string> owner_;  // of a slot in a generation
};

}  // namespace

WorkloadInfo ReplicaWorkload() {
  return {.name = "replica",
          .about = "workers join, leave and die while they follow an event log",
          .create = []() -> std::unique_ptr<Workload> {
            return std::make_unique<ReplicaWorkloadImpl>();
          },
          .sometimes = {"30 a worker sleeps through two or more generations",
                        "31 a coordinator dies after it has created a generation",
                        "32 a coordinator dies when part of a generation is ready",
                        "33 a coordinator dies after all are ready, before go",
                        "34 two coordinators create a generation at once",
                        "35 a fast worker is running while a slow one is only ready",
                        "36 a hundred workers join in one window",
                        "37 a worker flaps at the heartbeat's timeout",
                        "38 a member dies inside the barrier",
                        "39 fewer members than slots",
                        "40 every notification is lost",
                        "41 a worker reaches the store, but not the read model",
                        "42 the number of partitions changes in mid-stream",
                        "43 a projection throws",
                        "43 a projection hangs",
                        "43 a batch is slower than the barrier",
                        "43 a projection ends its process",
                        "43 what a projection needs is away",
                        "60 a stream is replayed while it is written to",
                        "61 versions are swapped in mid-stream"}};
}

}  // namespace muster::sim
