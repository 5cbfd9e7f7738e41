#include <algorithm>

#include "sim/replica_world.h"

namespace muster::sim {

using std::chrono::seconds;

namespace {

constexpr int kHangs = 2;
constexpr nanoseconds kLongestTransaction = seconds(60);

}  // namespace

// The product's, those of all simulations before there were others, or any. In the simulated worlds
// calls take milliseconds or, when lost, five seconds.
replica::ReplicaOptions ReplicaWorld::Terms(Random& random) {
  replica::ReplicaOptions terms;
  if (random.OneIn(4)) return terms;
  terms.heartbeat_interval = seconds(8);
  terms.heartbeat_timeout = seconds(30);
  terms.barrier_timeout = seconds(60);
  terms.quiet = seconds(2);
  terms.quiet_most = seconds(10);
  terms.handle_timeout = seconds(300);
  terms.batch_time = seconds(10);
  terms.batch = 5;
  terms.max_attempts = 3;
  terms.retry_delay = seconds(1);
  if (random.OneIn(2)) return terms;
  terms.heartbeat_interval = milliseconds(random.Between(1'000, 10'000));
  terms.heartbeat_timeout = terms.heartbeat_interval * random.Between(2, 6);
  terms.barrier_timeout = seconds(random.Between(10, 90));
  terms.quiet = milliseconds(random.Between(0, 4'000));
  terms.quiet_most = terms.quiet * random.Between(1, 10);
  terms.handle_timeout = terms.barrier_timeout * random.Between(4, 8);
  terms.batch_time = milliseconds(random.Between(100, 20'000));
  terms.batch = static_cast<int>(random.Between(1, 40));
  terms.max_attempts = static_cast<int>(random.Between(1, 6));
  terms.retry_delay = milliseconds(random.Between(50, 2'000));
  return terms;
}

void ReplicaWorld::Setup(Simulation& sim) {
  sim_ = &sim;
  store_ = std::make_unique<FaultyStore>(
      sim,
      StoreObserver{
          .sends = {},
          .changed = [this](const store::Change& change, const std::optional<store::Record>& before,
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
              [this](const replica::Instance& instance, const replica::ReadModelProgress& progress,
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
              [this](const replica::Instance& instance) {
                dropped_.insert(instance.version);
                spoiled_.erase(instance.version);
              },
          .reset = [this](const replica::Instance& instance) { Reset(instance.version); },
      });
  Draw(sim);
}

// The faults and participants of this world.
void ReplicaWorld::Draw(Simulation& sim) {
  Random& random = sim.random();
  terms_ = Terms(sim.terms());
  log_ = std::make_unique<SimEventLog>(sim, static_cast<int>(random.Between(3, 12)));
  crowd_ = random.OneIn(200);
  // Small enough to be crashed at every single call.
  const bool tiny = !crowd_ && random.OneIn(8);
  const int64_t workers = crowd_ ? 100 : tiny ? 1 : random.Between(1, 5);
  terms_.strategy =
      random.OneIn(2) ? replica::Strategy::kRecreate : replica::Strategy::kIncremental;
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
    const bool whole_batch = random.OneIn(2);
    events_ = std::min<int64_t>(events_, 20);
    const nanoseconds barrier = terms_.barrier_timeout;
    slow_ = whole_batch ? barrier / std::min<int64_t>(events_, terms_.batch) * 2 : barrier * 3 / 2;
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

void ReplicaWorld::Check() {
  if (crowd_) sim_->Sometimes("36 a hundred workers join in one window");
  sim_->Sometimes("40 every notification is lost");
  const auto all = log_->Truth().ReadAll(0, events::kMaxEventBatch).value().events;
  for (const int version : Versions()) {
    CheckHandled(version, all);
    CheckAudit(version, all);
  }
  for (const events::Event& event : all) CheckEffects(event);
}

// The projection: its read model is the list of events it has handled.
class ReplicaWorld::SimProcessor final : public replica::Processor {
 public:
  SimProcessor(ReplicaWorld& world, InlineRunner& runner, bool side_effects)
      : world_(world), runner_(runner), side_effects_(side_effects) {}
  Status Handle(std::span<const events::Event> events, replica::Transaction& transaction) override {
    for (const events::Event& event : events) MUSTER_TRY(HandleOne(event, transaction));
    return {};
  }
  // Some processors stop when their turn is over, others continue to the end.
  Result<size_t> HandleSome(std::span<const events::Event> events,
                            replica::Transaction& transaction, replica::Turn& turn) override {
    for (size_t i = 0; i < events.size(); ++i) {
      MUSTER_TRY(HandleOne(events[i], transaction));
      if (world_.heeds_turns_ && turn.Over()) return i + 1;
    }
    return events.size();
  }

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
      runner_.Spend(world_.terms_.handle_timeout + seconds(60));
    }
    if (world_.slow_ > nanoseconds(0)) runner_.Spend(world_.slow_);
    return transaction.Execute("handled", {event.stream, std::to_string(event.version),
                                           side_effects_ ? "1" : "0", event.id});
  }

  ReplicaWorld& world_;
  InlineRunner& runner_;
  const bool side_effects_;
};

class ReplicaWorld::SimProjection final : public replica::Projection {
 public:
  SimProjection(ReplicaWorld& world, InlineRunner* runner) : world_(world), runner_(runner) {}
  const std::string& name() const override { return kProjection; }
  Result<std::unique_ptr<replica::Processor>> Build(
      const replica::ReplicaPartition& partition) override {
    return std::make_unique<SimProcessor>(world_, *runner_, partition.side_effects);
  }

  // Its read model is what has been handled since.
  Status Clear(replica::Transaction&, int /*version*/) override { return {}; }

  ReplicaWorld& world_;
  InlineRunner* const runner_;  // of those who handle events
};

std::shared_ptr<replica::Projection> ReplicaWorld::NewProjection(InlineRunner* runner) {
  return std::make_shared<SimProjection>(*this, runner);
}

// A process that handles this event dies, until the event is parked.
void ReplicaWorld::CrashIn(int64_t number) {
  sim_->Sometimes("43 a projection ends its process");
  // The first death is not recorded, the second is in a batch, two more with the event alone.
  // Other faults may hide as many, and each version and replay starts over.
  if (++crashes_ > 4 * (1 + tries_) + sim_->faults_fired()) {
    Violate("B", "event " + std::to_string(number) + " has ended " + std::to_string(crashes_) +
                     " processes");
  }
  sim_->Crash("the projection");
}

void ReplicaWorld::Work(const std::string& name, Env& env, std::stop_token stop) {
  NoteRestart(name);
  for (;;) {
    const Status ended = RunWorker(name, env, stop);
    if (ended) return;
    if (ended.error().code != Code::kIncompatible || !ever_spoiled_) {
      return Violate("V", name + " gave up: " + ended.error().message);
    }
    Halted(ended.error(), env, stop);
    if (stop.stop_requested()) return;
  }
}

namespace {

// A simulated worker's environment.
class WorkerWatch final : public replica::ReplicaObserver {
 public:
  WorkerWatch(Simulation& sim, InlineRunner& runner) : sim_(sim), runner_(runner) {}

  void Happened(const replica::ReplicaEvent& event) override {
    if (event.kind == replica::ReplicaEvent::Kind::kTrouble) runner_.NoteTrouble();
    if (event.kind == replica::ReplicaEvent::Kind::kLost) {
      sim_.Sometimes("37 a worker flaps at the heartbeat's timeout");
    }
    if (event.kind != replica::ReplicaEvent::Kind::kReady) return;
    if (last_ != 0 && event.generation >= last_ + 2) {
      sim_.Sometimes("30 a worker sleeps through two or more generations");
    }
    last_ = event.generation;
  }

 private:
  Simulation& sim_;
  InlineRunner& runner_;
  int64_t last_ = 0;  // the generation it was ready for
};

}  // namespace

Status ReplicaWorld::RunWorker(const std::string& name, Env& env, std::stop_token stop) {
  replica::ReplicaOptions options = terms_;
  options.set = kSet;
  options.worker = name;
  InlineRunner runner(
      *sim_, env, [this] { return AllDone(); }, [this] { return paused_ ? pauses_ : 0; });
  WorkerWatch watch(*sim_, runner);
  replica::Worker worker(*store_, *log_, *model_, {NewProjection(&runner)}, options, watch, runner,
                         runner);
  runner.SetWorker(worker, options.heartbeat_interval);
  std::stop_callback pass_on(stop, [&runner] { runner.Stop().request_stop(); });
  return worker.Run(runner.Stop().get_token());
}

// One event after another, throughout the fault phase.
void ReplicaWorld::AppendAll(Env& env, std::stop_token stop) {
  while (appended_ < events_ && !stop.stop_requested()) {
    if (appended_ + 1 == events_ && late_) {
      env.Sleep(seconds(1), stop);
      continue;
    }
    // Not after the last event: the workers may have ended.
    MaybeRestoreLog();
    AppendNext();
    env.Sleep(append_for_ / events_, stop);
  }
}

void ReplicaWorld::AppendNext() {
  const int64_t number = appended_++;
  const events::StreamAppend append{
      .stream = "stream" + std::to_string((number + other_place_) % streams_),
      .expected = events::kAnyVersion,
      .events = {events::NewEvent{.type = "T",
                                  .payload = std::to_string(number),
                                  .metadata = "",
                                  .id = "event" + std::to_string(number) +
                                        (life_ == 0 ? "" : "/" + std::to_string(life_))}}};
  if (sim_->Fires(Fault::kLateCommit, 12)) {
    log_->AppendLate(append, sim_->RandomOf(Fault::kLateCommit).UpTo(kLongestTransaction));
  } else if (auto done = log_->Append({&append, 1}); !done) {
    Violate("V", done.error().message);
  }
}

std::set<int> ReplicaWorld::Versions() {
  const auto stored =
      store_->Truth().Get(replica::kReplicaKind, replica::ProjectionKey(kSet, kProjection)).value();
  if (!stored) return {1};
  return versions_seen_[stored->body];
}

// Everything is handled, or parked and left so by the operator.
bool ReplicaWorld::AllDone() {
  if (appended_ < events_ || is_beginning_) return false;
  const std::set<int> versions = Versions();
  return std::all_of(versions.begin(), versions.end(), [&](int v) { return AllDone(v); });
}

bool ReplicaWorld::AllDone(int version) {
  if (spoiled_.contains(version)) return false;
  int64_t waiting = 0;
  for (const auto& [stream, found] : Parked(version)) {
    if (replaying_.contains({version, stream})) return false;
    waiting += static_cast<int64_t>(found.versions.size());
  }
  return committed_[version] + waiting == events_;
}

std::map<std::string, replica::ParkedStream> ReplicaWorld::Parked(int version) {
  std::vector<int> slots;
  for (int slot = 0; slot < log_->slots(); ++slot) slots.push_back(slot);
  std::map<std::string, replica::ParkedStream> parked;
  const auto streams = model_->Truth().Parked({kSet, kProjection, version}, slots).value();
  for (const replica::ParkedStream& stream : streams) parked[stream.stream] = stream;
  return parked;
}

const replica::Generation* ReplicaWorld::Current() {
  const auto record = store_->Truth().Get(replica::kReplicaKind, replica::SetKey(kSet)).value();
  if (!record) return nullptr;
  const auto& generation = generations_seen_[record->body];
  return generation ? &*generation : nullptr;
}

const replica::MemberState* ReplicaWorld::StateOf(const std::string& id) {
  const auto record =
      store_->Truth().Get(replica::kReplicaKind, replica::MemberKey(kSet, id)).value();
  if (!record) return nullptr;
  const auto& state = states_seen_[record->body];
  return state ? &*state : nullptr;
}

void ReplicaWorld::Violate(const std::string& invariant, std::string message) {
  sim_->Violate(invariant, std::move(message));
}

WorkloadInfo ReplicaWorkload() {
  return {.name = "replica",
          .about = "workers join, leave and die while they follow an event log",
          .create = []() -> std::unique_ptr<Workload> { return std::make_unique<ReplicaWorld>(); },
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
                        "61 versions are swapped in mid-stream",
                        "62 the event log is restored, and has lost nothing that was handled",
                        "62 the event log is restored, and has lost what was handled",
                        "62 a worker halts, and the projection is reset",
                        "75 an event becomes visible after later ones"}};
}

}  // namespace muster::sim
