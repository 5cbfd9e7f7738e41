#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include "cli/commands.h"
#include "cli/existing_store.h"
#include "cli/exit_codes.h"
#include "cli/metered_executor.h"
#include "cli/run_checks.h"
#include "cli/run_follower.h"
#include "cli/run_report.h"
#include "cli/serve_options.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "cli/watched_executor.h"
#include "core/guard.h"
#include "muster/executors.h"
#include "muster/plan.h"
#include "muster/runs.h"

namespace muster::cli {
namespace {

using plan::RunState;

struct RunCommandOptions {
  std::string file;  // for run
  std::string id;    // for the others
  std::vector<std::string> inputs;
  std::vector<std::string> variables;
  std::string profile;
  std::string plan;  // for resume and retry: where the plan is now
  bool accept_changes = false;
  bool failed = false;
  std::optional<int64_t> rank;
  std::string task;
  bool drain = false;
  bool now = false;
  int threads = 8;
  ServeBesideOptions serve;
  int limit = 100;
};

// How long to wait for the process of a cancelled run.
constexpr milliseconds kCancelPatience{5'000};

Result<std::map<std::string, std::string>> Pairs(const std::string& option,
                                                 const std::vector<std::string>& texts) {
  std::map<std::string, std::string> pairs;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == text.npos)
      return Error{Code::kInvalid, option + " " + text + ": not NAME=VALUE"};
    pairs[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return pairs;
}

Result<std::string> WorkingFolder() {
  std::error_code failed;
  const auto folder = std::filesystem::current_path(failed);
  if (failed) return Error{Code::kNotFound, "the working folder: " + failed.message()};
  return folder.string();
}

// The commands for runs of plans.
class RunCommand {
 public:
  RunCommand(const RunCommandOptions& options, Context& context)
      : options_(options),
        context_(context),
        executor_(task::NewExecutors(context.store, context.env)),
        dashboard_(context, "muster run", options.serve) {}

  Result<int> Run() {
    plan::StartOptions start{.plan = {.variables = {}, .profile = options_.profile}};
    MUSTER_ASSIGN(start.plan.variables, Pairs("--set", options_.variables));
    MUSTER_ASSIGN(const auto summary, Check(options_.file, start.plan));
    MUSTER_ASSIGN(start.inputs, Pairs("--input", options_.inputs));
    MUSTER_ASSIGN(const std::string target,
                  CheckProfile(summary.profile, options_.file, start.plan, start.inputs,
                               context_.env, signals_.Token()));
    MUSTER_TRY(CheckTarget(target));
    MUSTER_TRY(Open(summary.name));
    MUSTER_ASSIGN(start.folder, WorkingFolder());
    MUSTER_ASSIGN(const RunState run, engine_->Start(options_.file, start));
    return Drive(run);
  }

  Result<int> Resume() {
    MUSTER_TRY(OpenExisting());
    MUSTER_ASSIGN(const RunState before, engine_->Find(id_));
    plan::ResumeOptions resume{.accept_changes = options_.accept_changes, .path = options_.plan};
    MUSTER_ASSIGN(resume.variables, Pairs("--set", options_.variables));
    if (before.status == RunStatus::kCompleted && !options_.rank && options_.task.empty()) {
      SayCompleted(*engine_, id_, resume, context_);
      MUSTER_TRY(Report(before));
      return kNothingToDo;
    }
    plan::PlanOptions now{.variables = resume.variables, .profile = before.profile};
    now.variables.insert(before.variables.begin(), before.variables.end());
    const std::string& path = resume.path.empty() ? before.path : resume.path;
    MUSTER_ASSIGN(const auto summary, Check(path, now));
    MUSTER_TRY(
        CheckProfile(summary.profile, path, now, before.inputs, context_.env, signals_.Token()));
    MUSTER_ASSIGN(resume.folder, WorkingFolder());
    resume.again.rank = options_.rank;
    if (!options_.task.empty()) resume.again.task = options_.task;
    // A rank or task that does not exist is refused before there is any progress to show.
    if (resume.again) MUSTER_TRY(engine_->Repeats(id_, resume));
    MUSTER_TRY(Open(summary.name));
    Waiting waiting([this](const std::string& what) { progress_->Say(what); });
    MUSTER_ASSIGN(const RunState run, engine_->Resume(id_, resume, waiting, signals_.Token()));
    SayInvalidated(run);
    return Drive(run);
  }

  Result<int> Cancel() {
    if (options_.drain && options_.now)
      return Error{Code::kInvalid, "--drain and --now are mutually exclusive"};
    MUSTER_TRY(OpenExisting());
    if (!options_.drain) {
      MUSTER_TRY(engine_->Cancel(id_));
      MUSTER_TRY(AwaitLetGo());
      MUSTER_ASSIGN(const RunState run, engine_->Find(id_));
      MUSTER_TRY(Report(run));
      return kDone;
    }
    Waiting waiting([this](const std::string& what) { context_.err << what << '\n'; });
    MUSTER_ASSIGN(const RunState run, engine_->Drain(id_, waiting, signals_.Token()));
    if (run.status == RunStatus::kInProgress) {
      return Error{Code::kCancelled, "stopped before migration '" + id_ + "' was drained",
                   "its process drains it; 'muster watch " + id_ + "' follows it"};
    }
    MUSTER_ASSIGN(const int code, Report(run));
    // It may have ended in another way before.
    return run.status == RunStatus::kCancelled ? kDone : code;
  }

  Result<int> ShowStatus() {
    MUSTER_TRY(OpenExisting());
    MUSTER_ASSIGN(const RunState run, engine_->Find(id_));
    return Report(run);
  }

  Result<int> Watch() {
    MUSTER_TRY(OpenExisting());
    MUSTER_ASSIGN(const RunState run, engine_->Find(id_));
    MakeProgress("watch " + run.id);
    RunFollower follower(*engine_, run, *progress_, context_,
                         context_.json ? RunFollower::Events::kJson : RunFollower::Events::kText);
    MUSTER_ASSIGN(const RunState seen, follower.Follow(signals_.Token()));
    progress_->Finish();
    if (seen.status == RunStatus::kInProgress) return kInterrupted;
    return Report(seen);
  }

  Result<int> History() {
    MUSTER_TRY(OpenExisting());
    MUSTER_ASSIGN(const RunState run, engine_->Find(id_));
    return ShowHistory(*engine_, run, context_);
  }

  Result<int> List() {
    MUSTER_TRY(OpenExisting());
    return ListRuns(*engine_, options_.limit, context_);
  }

 private:
  // Waits for the current task to end, which may take a moment.
  Status AwaitLetGo() {
    const MonoTime end = context_.env.MonoNow() + kCancelPatience;
    while (context_.env.MonoNow() < end) {
      MUSTER_ASSIGN(const bool let_go, engine_->IsReleased(id_));
      if (let_go) return {};
      if (!context_.env.Sleep(milliseconds(200), signals_.Token())) return {};
    }
    MUSTER_ASSIGN(const RunState run, engine_->Find(id_));
    MUSTER_ASSIGN(const std::string waits, engine_->WhatIsWaitedFor(run));
    context_.err << "the run is cancelled; its process is dead, or has not released it yet"
                 << (waits.empty() ? "" : ": " + waits) << '\n';
    return {};
  }

  // Prints every problem of the plan.
  Result<plan::PlanSummary> Check(const std::string& path, const plan::PlanOptions& options) {
    const auto problems = plan::CheckPlan(path, options);
    if (problems.empty()) return plan::SummarizePlan(path, options);
    for (const std::string& problem : problems) context_.err << problem << '\n';
    return Error{Code::kInvalid, path + " has " + std::to_string(problems.size()) +
                                     (problems.size() == 1 ? " problem" : " problems")};
  }

  // A target that is missing would fail only after the extraction. Not for a resumed run, whose
  // relative paths start at the folder of its first start.
  Status CheckTarget(const std::string& url) {
    if (url.empty()) return {};
    const Status ready = task::CheckTransformTarget(url);
    return ready ? ready : ready.error().Within("the target of the plan");
  }

  // For a command about a run that was started before.
  Status OpenExisting() {
    MUSTER_TRY(CheckStoreExists(context_.store));
    return Open({});
  }

  // Opens the store, and an engine on it. `plan`: the name of the plan to drive; none: only look.
  Status Open(const std::optional<std::string>& plan) {
    if (!store_) {
      MUSTER_ASSIGN(opened_, store::OpenStore(context_.store, context_.env));
      store_ = dashboard_.Metered(*opened_);
      MUSTER_TRY(dashboard_.Start(context_.store, *opened_));
    }
    states::TaskExecutor* executor = executor_.get();
    if (plan) {
      MakeProgress("run " + *plan);
      metered_ =
          std::make_unique<MeteredExecutor>(*executor, dashboard_.metrics(), dashboard_.tracer());
      watched_ = std::make_unique<WatchedExecutor>(*metered_, *progress_);
      executor = watched_.get();
    }
    engine_ = plan::NewRunEngine(*store_, {executor}, {.owner = "run", .threads = options_.threads},
                                 context_.env);
    if (!options_.id.empty()) {
      MUSTER_ASSIGN(id_, engine_->Resolve(options_.id));
    }
    return {};
  }

  void MakeProgress(const std::string& label) {
    progress_ = std::make_unique<Progress>(context_.progress, context_.err, context_.env, label, 0,
                                           [] { return TerminalWidth(2); });
  }

  Result<int> Drive(const RunState& run) {
    RunFollower follower(*engine_, run, *progress_, context_, RunFollower::Events::kNone);
    Result<RunState> ended = run;
    {
      const std::jthread following([&](const std::stop_token& done) {
        if (context_.progress == ProgressMode::kNone) return;
        LogThrown("progress", [&] { static_cast<void>(follower.Follow(done)); });
      });
      ended = engine_->Drive(run, signals_.Token());
    }
    if (!ended) return ended.error();
    Trace(*ended);
    progress_->Finish();
    if (ended->status == RunStatus::kInProgress)
      return Error{Code::kCancelled, "stopped before the end",
                   "'muster resume " + run.id + "' resumes it"};
    return Report(*ended);
  }

  // A requested task also invalidates its dependents.
  void SayInvalidated(const RunState& run) {
    std::string tasks;
    for (const std::string& task : run.invalidated) tasks += (tasks.empty() ? "" : ", ") + task;
    if (!tasks.empty()) progress_->Say("repeated although they succeeded: " + tasks);
  }

  // The parent span of its tasks.
  void Trace(const RunState& run) {
    dashboard_.tracer().Add({.name = "run " + run.plan,
                             .trace = run.execution,
                             .itself = run.execution,
                             .start = run.start,
                             .end = run.stop.value_or(context_.env.WallNow()),
                             .attributes = {{"muster.run", run.execution},
                                            {"muster.migration", run.id},
                                            {"muster.status", std::string(NameOf(run.status))}},
                             .error = run.error});
  }

  Result<int> Report(const RunState& run) { return ReportRun(*engine_, run, *store_, context_); }

  const RunCommandOptions& options_;
  Context& context_;
  std::string id_;  // of the command's run
  const StopOnSignals signals_;
  const std::unique_ptr<states::TaskExecutor> executor_;
  std::unique_ptr<store::Store> opened_;
  DashboardBeside dashboard_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<Progress> progress_;
  std::unique_ptr<MeteredExecutor> metered_;
  std::unique_ptr<WatchedExecutor> watched_;
  std::unique_ptr<plan::RunEngine> engine_;
};

using Method = Result<int> (RunCommand::*)();

Command AddOne(Command& app, Context& context, const char* name, const char* description,
               const std::shared_ptr<RunCommandOptions>& options, Method method) {
  Command command = app.AddCommand(name, description);
  command.Group("Run plans and state machines");
  command.Action(context,
                 [options, &context, method] { return (RunCommand(*options, context).*method)(); });
  return command;
}

void AddId(Command& command, RunCommandOptions& options) {
  command
      .AddOption("MIGRATION", options.id,
                 "Its migrationId; TENANT/ENVIRONMENT/ID if several have it")
      .Required();
}

void AddDriving(Command& command, RunCommandOptions& options) {
  command.AddOption("--set", options.variables, "Set a variable; may be repeated")
      .TypeName("NAME=VALUE")
      .OneValuePerUse();
  command.AddOption("--threads", options.threads, "Maximum number of concurrent tasks here (8)")
      .TypeName("N")
      .Range(1, 256);
  AddServeOption(command, options.serve);
}

void AddResuming(Command& command, RunCommandOptions& options) {
  AddId(command, options);
  AddDriving(command, options);
  command.AddOption("--plan", options.plan, "The plan's file, if it is elsewhere now")
      .TypeName("FILE");
  command.AddFlag("--accept-changes", options.accept_changes,
                  "Continue with the plan as it is now, although it has changed");
}

}  // namespace

void AddRunCommands(Command& app, Context& context) {
  const auto options = std::make_shared<RunCommandOptions>();
  Command run = AddOne(app, context, "run", "Run a plan, rank by rank", options, &RunCommand::Run);
  run.AddOption("PLAN", options->file, "The plan's file").Required();
  run.AddOption("--input", options->inputs, "An input of the plan; may be repeated")
      .TypeName("NAME=VALUE")
      .OneValuePerUse();
  run.AddOption("--profile", options->profile, "The plan's profile to use; the first by default")
      .TypeName("NAME");
  AddDriving(run, *options);
  run.Footer("  muster run plan.yaml --input tenantId=customer-1 --input migrationId=m-1");

  Command resume =
      AddOne(app, context, "resume", "Resume an interrupted or failed run; what succeeded is kept",
             options, &RunCommand::Resume);
  AddResuming(resume, *options);
  resume.Footer("  muster resume m-1");

  Command retry =
      AddOne(app, context, "retry", "Rerun parts of a run", options, &RunCommand::Resume);
  AddResuming(retry, *options);
  retry.AddFlag("--failed", options->failed, "Repeat what did not succeed; always included");
  retry.AddOption("--rank", options->rank, "Also repeat this whole rank").TypeName("N");
  retry.AddOption("--task", options->task, "Also repeat this object or script").TypeName("NAME");
  retry.Footer("  muster retry m-1 --rank 600");

  Command status =
      AddOne(app, context, "status", "Show the status of a run", options, &RunCommand::ShowStatus);
  AddId(status, *options);
  status.Footer("  muster status m-1 --json");

  Command history = AddOne(app, context, "history", "Show the history of a run, event by event",
                           options, &RunCommand::History);
  AddId(history, *options);
  history.Footer("  muster history m-1");

  Command watch =
      AddOne(app, context, "watch", "Follow a run that another process drives, until it has ended",
             options, &RunCommand::Watch);
  AddId(watch, *options);
  watch.Footer("  muster watch m-1\n  muster watch m-1 --json");

  Command cancel = AddOne(app, context, "cancel", "End a run", options, &RunCommand::Cancel);
  AddId(cancel, *options);
  cancel.AddFlag("--drain", options->drain, "Let running tasks finish, start nothing new");
  cancel.AddFlag("--now", options->now, "Stop running tasks; the default");
  cancel.Footer("  muster cancel m-1 --drain");

  Command list = AddOne(app, context, "list", "List the runs of plans", options, &RunCommand::List);
  list.AddOption("--limit", options->limit, "Maximum number to list").TypeName("N").Range(1, 1000);
  list.Footer("  muster list --json");
}

}  // namespace muster::cli
