// The public engine of runs: reads plans from their files, and leaves the rest to Runs.

#include <atomic>

#include "muster/runs.h"
#include "plan/run/runs.h"
#include "states/states.h"

namespace muster::plan {
namespace {

// A plan with all of its files, as a run needs it.
Result<Plan> LoadForRun(const std::string& path, const PlanOptions& options) {
  std::string wrong;
  for (const std::string& problem : CheckPlan(path, options)) {
    wrong += (wrong.empty() ? "" : "\n") + problem;
  }
  if (!wrong.empty()) return Error{Code::kInvalid, wrong};
  return LoadPlan(path, options);
}

// Calls go through the gate to the executors.
class StoreRunEngine final : public RunEngine {
 public:
  StoreRunEngine(store::Store& store, std::vector<states::TaskExecutor*> executors,
                 const RunEngineOptions& options, Env& env)
      : threads_(options.threads),
        gate_(std::move(executors)),
        states_(store, {&gate_},
                states::StatesOptions{
                    .owner = options.owner, .lease = kRunLease, .idle_wait = milliseconds(100)},
                env),
        runs_(store, states_, env, &gate_) {}

  Result<RunState> Start(const std::string& path, const StartOptions& options) override {
    MUSTER_ASSIGN(const Plan plan, LoadForRun(path, options.plan));
    MUSTER_ASSIGN(const Profile* profile, plan.FindProfile(options.plan.profile));
    return runs_.Start(plan, *profile, options.inputs, options.folder);
  }

  Result<RunState> Resume(const std::string& id, const ResumeOptions& options,
                          RunObserver& observer, std::stop_token stop) override {
    MUSTER_ASSIGN(const Plan plan, PlanOf(id, options));
    return runs_.Resume(id, plan, options, observer, std::move(stop));
  }

  Result<std::vector<std::string>> Repeats(const std::string& id,
                                           const ResumeOptions& options) override {
    MUSTER_ASSIGN(const Plan plan, PlanOf(id, options));
    return runs_.DoneAgain(id, plan, options.again);
  }

  Result<RunState> Drive(const RunState& run, std::stop_token stop) override {
    return Alone([&] { return runs_.Drive(run, threads_, std::move(stop)); });
  }

  Status Cancel(const std::string& id) override { return runs_.Cancel(id); }

  Result<RunState> Drain(const std::string& id, RunObserver& observer,
                         std::stop_token stop) override {
    return Alone([&] { return runs_.Drain(id, threads_, observer, std::move(stop)); });
  }

  Result<RunState> Find(const std::string& id) override { return runs_.Find(id); }

  Result<std::vector<RunState>> List(const std::string& after, int limit) override {
    return runs_.List(after, limit);
  }

  Result<std::string> Resolve(const std::string& text) override { return runs_.Resolve(text); }

  Result<RunReport> Report(const RunState& run) override {
    MUSTER_ASSIGN(RunReport report, runs_.Report(run));
    if (run.status != RunStatus::kInProgress) return report;
    MUSTER_ASSIGN(const LiveRun live, runs_.Live(run));
    SetWaits(report, live.waits);
    return report;
  }

  Result<LiveRun> Live(const RunState& run) override { return runs_.Live(run); }

  Result<std::vector<AttemptReport>> Attempts(const RunState& run, bool with_tasks) override {
    return runs_.Attempts(run, with_tasks);
  }

  Result<std::vector<RunEvent>> Events(const Attempt& attempt) override {
    MUSTER_ASSIGN(const std::vector<states::Event> events, runs_.Events(attempt));
    std::vector<RunEvent> shown;
    for (const states::Event& event : events) {
      shown.push_back({event.time, event.name, event.type, event.error, event.ToJson()});
    }
    return shown;
  }

  Result<bool> IsReleased(const std::string& id) override { return runs_.IsLetGo(id); }

  Result<std::string> WhatIsWaitedFor(const RunState& run) override {
    return runs_.WhatIsWaitedFor(run);
  }

 private:
  // The plan of a run as its file is now, with the variables of its start.
  Result<Plan> PlanOf(const std::string& id, const ResumeOptions& options) {
    MUSTER_ASSIGN(const RunState run, runs_.Find(id));
    PlanOptions plan{.variables = options.variables, .profile = run.profile};
    plan.variables.insert(run.variables.begin(), run.variables.end());
    auto loaded = LoadForRun(options.path.empty() ? run.path : options.path, plan);
    if (loaded || !options.path.empty()) return loaded;
    Error error = loaded.error();
    if (error.hint.empty())
      error.hint = "if the plan's file is elsewhere now: muster retry " + id + " --plan FILE";
    return error;
  }

  // The gate knows the tasks of a single run.
  template <class Work>
  Result<RunState> Alone(const Work& work) {
    if (driving_.exchange(true)) {
      return Error{Code::kConflict, "this engine already drives a run",
                   "make an engine for each run that is driven at the same time"};
    }
    Result<RunState> ended = work();
    driving_ = false;
    return ended;
  }

  const int threads_;
  TaskGate gate_;
  states::States states_;
  plan::Runs runs_;
  std::atomic<bool> driving_{false};
};

}  // namespace

std::unique_ptr<RunEngine> NewRunEngine(store::Store& store,
                                        std::vector<states::TaskExecutor*> executors,
                                        const RunEngineOptions& options, Env& env) {
  return std::make_unique<StoreRunEngine>(store, std::move(executors), options, env);
}

}  // namespace muster::plan
