#include "plan/plan.h"
#include "sim/plan_world.h"
#include "sim/workload.h"

namespace muster::sim {
namespace {

using plan::Runs;
using plan::RunState;
using std::chrono::seconds;

constexpr seconds kLease{15};
constexpr char kNewer[] = "newer";

states::StatesOptions OptionsOf(const std::string& name) {
  return {.owner = name, .lease = kLease, .idle_wait = seconds(2), .max_attempts = 1'000};
}

// Calls a hook at each store call. A process driving a run renews its lease on its own thread; here
// a process has only one.
class AttendedStore final : public store::Store {
 public:
  AttendedStore(store::Store& store, std::function<void()> attend)
      : store_(store), attend_(std::move(attend)) {}

  Result<std::optional<store::Record>> Get(std::string_view kind, std::string_view key) override {
    attend_();
    return store_.Get(kind, key);
  }
  Result<std::vector<store::Record>> Scan(std::string_view kind, std::string_view prefix,
                                          std::string_view after, int limit) override {
    attend_();
    return store_.Scan(kind, prefix, after, limit);
  }
  Result<std::vector<store::Written>> Write(std::span<const store::Change> changes) override {
    attend_();
    return store_.Write(changes);
  }
  Result<std::vector<store::Record>> Claim(const store::ClaimRequest& request) override {
    attend_();
    return store_.Claim(request);
  }
  Result<WallTime> Now() override { return store_.Now(); }
  void Wait(std::string_view kind, milliseconds timeout, std::stop_token stop) override {
    store_.Wait(kind, timeout, std::move(stop));
  }

 private:
  store::Store& store_;
  std::function<void()> attend_;
};

// A user of the program: runs the plan, and resumes it until it is completed.
class PlanUser {
 public:
  PlanUser(PlanWorld& world, Simulation& sim, const std::string& name, Env& env)
      : world_(world),
        sim_(sim),
        env_(env),
        executor_(world.NewExecutor()),
        store_(world.store(), [this] { RenewInTime(); }),
        states_(store_, env, {executor_.get()}, OptionsOf(name)),
        // What renews must not be asked to renew.
        runs_(world.store(), states_, env) {}

  void Use(std::stop_token stop) {
    while (!stop.stop_requested() && !world_.Completed()) {
      if (const auto run = Begin(stop)) Drive(*run, stop);
      env_.Sleep(seconds(3), stop);
    }
  }

  // Resumes with an edited plan: never allowed.
  void UseEdited(std::stop_token stop) {
    while (!stop.stop_requested() && !world_.Completed()) {
      const auto run = runs_.Resume(PlanWorld::kMigration, world_.edited(), {}, stop);
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

  // Asks for a run that a later version has begun: must not be touched.
  void UseNewer(std::stop_token stop) {
    while (!stop.stop_requested()) {
      const auto run = runs_.Resume(kNewer, world_.plan(), {}, stop);
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

  void Cancel(std::stop_token stop, nanoseconds after, std::string& answer) {
    env_.Sleep(after, stop);
    while (!stop.stop_requested() && answer.empty()) {
      const Status cancelled = runs_.Cancel(PlanWorld::kMigration);
      if (cancelled) {
        answer = "cancelled";
        sim_.Sometimes("46 a run is cancelled");
      } else if (cancelled.error().code == Code::kConflict) {
        answer = "ended";
        sim_.Sometimes("46 a cancel comes too late");
      }
      env_.Sleep(seconds(2), stop);
    }
  }

 private:
  std::optional<RunState> Begin(std::stop_token stop) {
    auto run = runs_.Start(world_.plan(), world_.plan().profiles.front(), world_.inputs());
    if (run) return *run;
    if (run.error().code != Code::kConflict) return Refused(run.error());
    run = runs_.Resume(PlanWorld::kMigration, world_.plan(), {}, stop);
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
    world_.CheckDriver();
    renewed_ = env_.MonoNow();
    driven_ = run.id;
    const Status worked = states_.Work(stop, run.execution);
    driven_.clear();
    if (!worked && !IsTransient(worked.error().code))
      sim_.Violate("V", "a run cannot be driven: " + worked.error().ToString());
    runs_.Renew(run.id, true);
  }

  void RenewInTime() {
    if (driven_.empty() || env_.MonoNow() - renewed_ < kLease / 3) return;
    renewed_ = env_.MonoNow();
    runs_.Renew(driven_, false);
  }

  PlanWorld& world_;
  Simulation& sim_;
  Env& env_;
  std::unique_ptr<states::TaskExecutor> executor_;
  AttendedStore store_;
  states::States states_;
  Runs runs_;
  std::string driven_;
  MonoTime renewed_{};
};

class PlanWorkloadImpl final : public Workload {
 public:
  void Setup(Simulation& sim) override {
    sim_ = &sim;
    world_ = std::make_unique<PlanWorld>(sim);
    Random& random = sim.random();
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
    if (random.OneIn(10)) {
      store::Record record{.kind = "plan.run", .queue = "default", .key = kNewer};
      record.body = R"({"format":99,"execution":{"of":"another kind"},"inputs":{}})";
      static_cast<void>(
          world_->store().Truth().Write({{store::Change::Put(record, store::Due::Now())}}));
      Add("late", [](PlanUser& user, std::stop_token stop) { user.UseNewer(stop); });
    }
  }

  void Check() override {
    world_->CheckEnd();
    bool aborted = false;
    for (const std::string& execution : world_->Executions())
      aborted |= world_->StatusOf(execution) == "ABORTED";
    if (cancelled_ == "cancelled" && !aborted)
      sim_->Violate("R", "a run was reported cancelled, but went on");
  }

 private:
  void Add(const std::string& name, std::function<void(PlanUser&, std::stop_token)> act) {
    sim_->AddProcess(name, [this, name, act = std::move(act)](Env& env, std::stop_token stop) {
      PlanUser user(*world_, *sim_, name, env);
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
        world_->store().Write({{store::Change::Put(record, store::Due::After(kLease))}});
    if (!written || !written->front().applied) return;
    const auto compiled =
        plan::Compile(plan, plan.profiles.front(), plan::Arrange(plan, plan::Order(plan)),
                      {.inline_ranks = true});
    Json definition = compiled.main.definition;
    definition["Comment"] = "of an older version";
    states::States states(world_->store(), env, {}, OptionsOf("elder"));
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
  std::string cancelled_;  // what the canceller was told
  bool elder_began_ = false;
};

}  // namespace

WorkloadInfo PlanWorkload() {
  return {
      .name = "plan",
      .about = "people run, resume, edit and cancel plans whose tasks fail, hang and are told of",
      .create = []() -> std::unique_ptr<Workload> { return std::make_unique<PlanWorkloadImpl>(); },
      .sometimes = {"24 a loss of power takes back what the disk had not been waited for",
                    "44 a backoff survives a change of hands", "44 a caught failure changes hands",
                    "44 a call whose answer is unknown is made again",
                    "45 a second that runs or resumes is refused", "46 a run is cancelled",
                    "46 a cancel comes too late", "47 the target of a notification is down",
                    "47 a notification arrives again with the same key",
                    "48 a plan that was edited is refused",
                    "49 the run of a newer version is refused",
                    "49 the run of an older version is gone on with",
                    "a later attempt does what did not succeed", "a machine is suspended"},
      .small_worlds = 2,
      .small_world = 400};
}

}  // namespace muster::sim
