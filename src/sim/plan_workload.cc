#include "plan/plan.h"
#include "sim/plan_world.h"
#include "sim/workload.h"

namespace muster::sim {
namespace {

using plan::Runs;
using plan::RunState;
using std::chrono::seconds;

constexpr char kNewer[] = "newer";

states::StatesOptions OptionsOf(const PlanWorld& world, const std::string& name) {
  states::StatesOptions options = world.terms();
  options.owner = name;
  return options;
}

// What the canceller was told.
enum class CancelAnswer { kNone, kCancelled, kEnded };

// A user of the program: runs the plan, and resumes it until it is completed.
class PlanUser {
 public:
  struct Manner {
    int threads = 1;
    bool gated = false;  // runs can be drained
  };

  PlanUser(PlanWorld& world, Simulation& sim, const std::string& name, const Manner& manner,
           Env& env)
      : world_(world),
        sim_(sim),
        env_(env),
        threads_(manner.threads),
        executor_(world.NewExecutor()),
        gate_({executor_.get()}),
        states_(world.store(), {&gate_}, OptionsOf(world, name), env),
        runs_(world.store(), states_, env, manner.gated ? &gate_ : nullptr) {}

  void Use(std::stop_token stop) {
    while (!stop.stop_requested() && !world_.Completed()) {
      if (const auto run = Begin(stop)) Drive(*run, stop);
      env_.Sleep(seconds(sim_.random().Between(1, 12)), stop);
    }
  }

  // Resumes with an edited plan: never allowed.
  void UseEdited(std::stop_token stop) {
    while (!stop.stop_requested() && !world_.Completed()) {
      const auto run = runs_.Resume(PlanWorld::kMigration, world_.edited(), {}, nothing_, stop);
      if (run) return sim_.Violate("R", "a run was resumed with another plan");
      if (run.error().code == Code::kConflict) {
        if (run.error().message.find("has changed") == std::string::npos)
          return sim_.Violate("R", "another plan was not noticed: " + run.error().message);
        sim_.Sometimes("48 a plan that was edited is refused");
        return;
      }
      env_.Sleep(seconds(2), stop);
    }
  }

  // Tries a run that a later version has begun: it must stay untouched.
  void UseNewer(std::stop_token stop) {
    while (!stop.stop_requested()) {
      const auto run = runs_.Resume(kNewer, world_.plan(), {}, nothing_, stop);
      if (run) return sim_.Violate("R", "the run of a newer version was resumed");
      if (!IsTransient(run.error().code)) {
        if (run.error().message.find("newer version") == std::string::npos)
          return sim_.Violate("R", "a newer version was not noticed: " + run.error().message);
        sim_.Sometimes("49 the run of a newer version is refused");
        return;
      }
      env_.Sleep(seconds(2), stop);
    }
  }

  void Cancel(std::stop_token stop, nanoseconds after, CancelAnswer& answer) {
    env_.Sleep(after, stop);
    while (!stop.stop_requested() && answer == CancelAnswer::kNone) {
      const Status cancelled = runs_.Cancel(PlanWorld::kMigration);
      if (cancelled) {
        answer = CancelAnswer::kCancelled;
        sim_.Sometimes("46 a run is cancelled");
      } else if (cancelled.error().code == Code::kConflict) {
        answer = CancelAnswer::kEnded;
        sim_.Sometimes("46 a cancel comes too late");
      }
      env_.Sleep(seconds(2), stop);
    }
  }

  // Lets the run end with the tasks that it has begun.
  void Drain(std::stop_token stop, nanoseconds after) {
    env_.Sleep(after, stop);
    const PlanDrivers::Draining draining(world_.drivers());
    while (!stop.stop_requested()) {
      const auto drained = runs_.Drain(PlanWorld::kMigration, threads_, nothing_, stop);
      if (drained && drained->status == RunStatus::kCancelled)
        sim_.Sometimes("46 a run is drained");
      if (drained || drained.error().code == Code::kConflict) return;
      env_.Sleep(seconds(2), stop);
    }
  }

  // Now and then reads the run's state.
  void Look(std::stop_token stop) {
    while (!stop.stop_requested() && !world_.Completed()) {
      const nanoseconds asked = sim_.now();
      if (const auto run = runs_.Find(PlanWorld::kMigration))
        world_.drivers().CheckReported(*run, asked);
      env_.Sleep(seconds(7), stop);
    }
  }

 private:
  // Once the run exists, it is seldom started again: that compiles the plan, which takes longer
  // than anything else.
  std::optional<RunState> Begin(std::stop_token stop) {
    if (world_.Executions().empty() || sim_.random().OneIn(6)) {
      const auto begun =
          runs_.Start(world_.plan(), world_.plan().profiles.front(), world_.inputs());
      if (begun) return *begun;
      if (begun.error().code != Code::kConflict) return Refused(begun.error());
    }
    const auto run = runs_.Resume(PlanWorld::kMigration, world_.plan(), {}, nothing_, stop);
    if (run) return *run;
    return Refused(run.error());
  }

  std::optional<RunState> Refused(const Error& error) {
    if (error.code == Code::kConflict) {
      sim_.Sometimes("45 a second that runs or resumes is refused");
    } else if (!IsTransient(error.code) && error.code != Code::kCancelled) {
      sim_.Violate("V", "a run cannot be gone on with: " + error.ToString());
    }
    return std::nullopt;
  }

  void Drive(const RunState& run, std::stop_token stop) {
    const PlanDrivers::Driving driving(world_.drivers());
    const auto ended = runs_.Drive(run, threads_, stop);
    if (ended) return;
    if (ended.error().code == Code::kLeaseLost) {
      sim_.Sometimes("45 a process that lost its run stops");
    } else if (!IsTransient(ended.error().code)) {
      sim_.Violate("V", "a run cannot be driven: " + ended.error().ToString());
    }
  }

  PlanWorld& world_;
  Simulation& sim_;
  Env& env_;
  const int threads_;
  std::unique_ptr<states::TaskExecutor> executor_;
  plan::TaskGate gate_;
  states::States states_;
  Runs runs_;
  plan::RunObserver nothing_;
};

class PlanWorkloadImpl final : public Workload {
 public:
  void Setup(Simulation& sim) override {
    sim_ = &sim;
    world_ = std::make_unique<PlanWorld>(sim);
    Random& random = sim.random();
    // A driver that can drain looks for requests twice a second, which makes a seed slower.
    manner_ = {.threads = random.OneIn(3) ? 2 : 1, .gated = random.OneIn(5)};
    if (random.OneIn(4)) {
      sim.AddProcess("elder", [this](Env& env, std::stop_token stop) { RunByElder(env, stop); });
    }
    for (int64_t i = random.Between(1, 3); i > 0; --i) {
      Add("user" + std::to_string(i), [](PlanUser& user, std::stop_token stop) { user.Use(stop); });
    }
    if (random.OneIn(3)) {
      Add("editor", [](PlanUser& user, std::stop_token stop) { user.UseEdited(stop); });
    }
    if (random.OneIn(3)) {
      const nanoseconds after = random.UpTo(nanoseconds(seconds(60)));
      Add("canceller", [this, after](PlanUser& user, std::stop_token stop) {
        user.Cancel(stop, after, cancelled_);
      });
    }
    if (manner_.gated) {
      const nanoseconds after = random.UpTo(nanoseconds(seconds(60)));
      Add("drainer", [after](PlanUser& user, std::stop_token stop) { user.Drain(stop, after); });
    }
    if (random.OneIn(4)) {
      Add("looker", [](PlanUser& user, std::stop_token stop) { user.Look(stop); });
    }
    if (random.OneIn(10)) {
      store::Record record{.kind = "plan.run", .queue = "default", .key = kNewer};
      record.body = R"({"format":99,"execution":{"of":"another kind"},"inputs":{}})";
      static_cast<void>(
          world_->store().Truth().Write({{store::Change::Put(record, store::Due::AtOnce())}}));
      Add("late", [](PlanUser& user, std::stop_token stop) { user.UseNewer(stop); });
    }
  }

  void Check() override {
    world_->CheckEnd();
    bool aborted = false;
    for (const std::string& execution : world_->Executions())
      aborted |= world_->StatusOf(execution) == states::ExecutionStatus::kAborted;
    if (cancelled_ == CancelAnswer::kCancelled && !aborted)
      sim_->Violate("R", "a run was reported cancelled, but went on");
  }

 private:
  void Add(const std::string& name, std::function<void(PlanUser&, std::stop_token)> act) {
    sim_->AddProcess(name, [this, name, act = std::move(act)](Env& env, std::stop_token stop) {
      PlanUser user(*world_, *sim_, name, manner_, env);
      act(user, stop);
      if (elder_began_ && name.starts_with("user") && world_->Completed())
        sim_->Sometimes("49 the run of an older version is gone on with");
    });
  }

  // Begins the migration like an older version: with a state machine other than the one this
  // version compiles.
  void RunByElder(Env& env, std::stop_token stop) {
    const plan::Plan& plan = world_->plan();
    RunState run;
    run.id = PlanWorld::kMigration;
    run.plan = plan.name;
    run.path = plan.path;
    run.hash = plan::HashOf(plan);
    run.profile = plan.profiles.front().name;
    run.inputs = world_->inputs();
    run.execution = run.id;
    store::Record record{.kind = "plan.run", .queue = "default", .key = run.id, .owner = "elder"};
    record.body = plan::RunBody(run, plan, Json::object());
    const auto written =
        world_->store().Write({{store::Change::Put(record, store::Due::After(plan::kRunLease))}});
    if (!written || !written->front().applied) return;
    const auto compiled =
        plan::Compile(plan, plan.profiles.front(), plan::Arrange(plan, plan::Order(plan)),
                      {.inline_ranks = true});
    Json definition = compiled.main.definition;
    definition["Comment"] = "of an older version";
    states::States states(world_->store(), {}, OptionsOf(*world_, "elder"), env);
    while (!stop.stop_requested()) {
      const Status started = states.Start({.name = run.execution,
                                           .definition = definition.dump(),
                                           .machine = plan.name,
                                           .input = Json(run.inputs).dump()});
      if (started) elder_began_ = true;
      if (started || !IsTransient(started.error().code)) return;
      env.Sleep(seconds(1), stop);
    }
  }

  Simulation* sim_ = nullptr;
  std::unique_ptr<PlanWorld> world_;
  PlanUser::Manner manner_;
  CancelAnswer cancelled_ = CancelAnswer::kNone;
  bool elder_began_ = false;
};

}  // namespace

WorkloadInfo PlanWorkload() {
  return {
      .name = "plan",
      .about = "people run, resume, edit and cancel plans whose tasks fail, hang and are told of",
      .create = []() -> std::unique_ptr<Workload> { return std::make_unique<PlanWorkloadImpl>(); },
      .sometimes = {"24 a loss of power takes back what the disk had not been waited for",
                    "44 a backoff survives a change of hands",
                    "44 a caught failure changes hands",
                    "44 a call whose answer is unknown is made again",
                    "45 a second that runs or resumes is refused",
                    "45 a process that lost its run stops",
                    "46 a run is cancelled",
                    "46 a cancel comes too late",
                    "46 a run is drained",
                    "a run is reported as driven",
                    "a run is reported as not driven",
                    "47 the target of a notification is down",
                    "47 a notification arrives again with the same key",
                    "47 a notification is appended to a file",
                    "73 a sync fails",
                    "48 a plan that was edited is refused",
                    "49 the run of a newer version is refused",
                    "49 the run of an older version is gone on with",
                    "a later attempt does what did not succeed",
                    "a machine is suspended"},
      .small_worlds = 2,
      .small_world = 400};
}

}  // namespace muster::sim
