#include "plan/run/runs.h"

#include <algorithm>
#include <atomic>
#include <filesystem>

#include "core/guard.h"
#include "core/planted_bug.h"
#include "core/sha256.h"
#include "plan/compile/compile.h"
#include "plan/model/data_flow.h"
#include "plan/model/fields.h"
#include "plan/model/order.h"
#include "plan/model/plan_json.h"
#include "plan/run/run_attempts.h"
#include "plan/run/run_body.h"
#include "states/states.h"
#include "store/store.h"

namespace muster::plan {
namespace {

constexpr const char* kQueue = "default";
constexpr milliseconds kRenewEvery = kRunLease / 3;

Error NoSuchRun(const std::string& id) {
  return {Code::kNotFound, "there is no migration '" + id + "'",
          "'muster list' shows the existing ones"};
}

// Before what tells runs of one migrationId apart.
constexpr const char* kOwnerMark = ".t";
constexpr size_t kOwnerDigits = 8;
constexpr size_t kMaxSharedId = 60;  // longer ones leave no room for it
constexpr int kMaxSame = 100;

std::string OwnerOf(const RunState& run) {
  return run.Input("tenantId") + "/" + run.Input("environment");
}

bool IsSameMigration(const RunState& a, const RunState& b) {
  return a.Input("migrationId") == b.Input("migrationId") && OwnerOf(a) == OwnerOf(b);
}

Result<std::string> LongName(const RunState& run) {
  if (run.id.size() > kMaxSharedId) {
    return Error{Code::kConflict,
                 "another tenant or environment has a migration '" + run.id + "' already",
                 "a migrationId of up to 60 characters can be shared; give this one its own"};
  }
  return run.id + kOwnerMark + Sha256Hex(OwnerOf(run)).substr(0, kOwnerDigits);
}

}  // namespace

Runs::Runs(store::Store& store, states::States& states, Env& env, TaskGate* gate)
    : store_(store), states_(states), env_(env), gate_(gate), owner_(env.NewId()) {}

Result<store::Record> Runs::Read(const std::string& id) {
  MUSTER_ASSIGN(auto record, store_.Get(kRunKind, id));
  if (!record) return NoSuchRun(id);
  return *std::move(record);
}

Result<RunState> Runs::Describe(const store::Record& record) {
  MUSTER_ASSIGN(RunState run, ReadRunBody(record));
  MUSTER_TRY(DropForeignAttempts(store_, states_, run));
  MUSTER_ASSIGN(const auto execution, states_.Find(run.execution));
  run.status = StatusOf(execution);
  if (run.status == RunStatus::kInProgress) {
    MUSTER_ASSIGN(const WallTime now, store_.Now());
    run.driven = record.due && *record.due > now;
  }
  if (execution) {
    run.error = execution->error;
    run.cause = execution->cause;
    run.output = execution->output;
    run.start = execution->start;
    run.stop = execution->stop;
  }
  return run;
}

// Made before a run is recorded: what cannot be begun must not be left in progress.
Result<Runs::CompiledRun> Runs::Compiled(const Plan& plan, const RunState& run, const Json& done) {
  MUSTER_ASSIGN(const Profile* profile, plan.FindProfile(run.profile));
  CompileOptions options{.inline_ranks = true, .run = IdentityOf(run)};
  for (const auto& [task, result] : done.items()) options.done[task] = result;
  CompiledPlan compiled = Compile(plan, *profile, Arrange(plan, Order(plan)), options);
  states::ExecutionRequest request{.name = run.execution,
                                   .definition = ToJsonText(compiled.main.definition),
                                   .origin = plan.path,
                                   .machine = plan.name,
                                   .input = ToJsonText(Json(run.inputs)),
                                   .queue = QueueOf(run)};
  if (request.definition.size() > states::kMaxDefinitionBytes) {
    return Error{Code::kInvalid,
                 plan.path + ": its state machine has " +
                     std::to_string(request.definition.size()) + " bytes; the limit is " +
                     std::to_string(states::kMaxDefinitionBytes),
                 "make it several plans"};
  }
  if (request.input.size() > states::kMaxPayloadBytes) {
    return Error{Code::kInvalid, "the inputs have " + std::to_string(request.input.size()) +
                                     " bytes; the limit is " +
                                     std::to_string(states::kMaxPayloadBytes)};
  }
  return CompiledRun{std::move(request), std::move(compiled.states)};
}

Status Runs::Begin(const Plan& plan, const RunState& run, const Json& done) {
  MUSTER_ASSIGN(const CompiledRun compiled, Compiled(plan, run, done));
  MUSTER_TRY(WriteStates(store_, run.execution, compiled.states));
  return states_.Start(compiled.request);
}

Result<StateTable> Runs::StatesOf(const std::string& execution, const RunState& run,
                                  const Plan* pinned) {
  MUSTER_ASSIGN(std::optional<StateTable> states, ReadStates(store_, execution));
  if (states) return *std::move(states);
  if (pinned == nullptr) return StateTable();
  MUSTER_ASSIGN(const Profile* profile, pinned->FindProfile(run.profile));
  return plan::StatesOf(*pinned, *profile);
}

Result<RunState> Runs::Start(const Plan& plan, const Profile& profile,
                             std::map<std::string, std::string> inputs, const std::string& folder) {
  MUSTER_TRY(CompleteInputs(plan, inputs));
  const std::string id = inputs["migrationId"];
  RunState run{
      .id = id,
      .plan = plan.name,
      .path = (std::filesystem::path(plan.folder) / std::filesystem::path(plan.path).filename())
                  .string(),
      .folder = folder,
      .hash = HashOf(plan),
      .incarnation = env_.NewId(),
      .profile = profile.name,
      .inputs = std::move(inputs),
      .variables = plan.given,
      .execution = {},
      .status = RunStatus::kInProgress,
      .error = {},
      .cause = {},
      .output = {},
      .first_start = env_.WallNow()};
  MUSTER_TRY(Compiled(plan, run, Json::object()));
  MUSTER_ASSIGN(std::optional<RunState> other, Create(run, plan));
  // A migration is one of its tenant in its environment: others may call theirs the same.
  if (other && !IsSameMigration(*other, run)) {
    MUSTER_ASSIGN(run.id, LongName(run));
    MUSTER_ASSIGN(other, Create(run, plan));
  }
  if (other) {
    const std::string next = other->status == RunStatus::kCompleted
                                 ? "give the new one a migrationId of its own"
                                 : "'muster resume " + run.id + "' resumes it";
    return Error{Code::kConflict,
                 "migration '" + run.id + "' already exists: " + NameOf(other->status), next};
  }
  MUSTER_TRY(Begin(plan, run, Json::object()));
  return run;
}

// Writes the record of a run that begins; if there is one of that name, the answer is that.
Result<std::optional<RunState>> Runs::Create(RunState& run, const Plan& plan) {
  run.attempts.clear();
  AddAttempt(run);
  store::Record record{.kind = kRunKind, .queue = kQueue, .key = run.id, .owner = owner_};
  record.body = RunBody(run, plan, Json::object());
  MUSTER_ASSIGN(const auto written,
                store_.Write({{store::Change::Put(record, store::Due::After(kRunLease))}}));
  if (written.front().applied) return std::optional<RunState>();
  MUSTER_ASSIGN(RunState other, Find(run.id));
  return std::optional<RunState>(std::move(other));
}

Result<std::string> Runs::Resolve(const std::string& text) {
  const size_t last = text.rfind('/');
  const std::string id = last == text.npos ? text : text.substr(last + 1);
  MUSTER_ASSIGN(std::vector<store::Record> records,
                store_.Scan(kRunKind, id + kOwnerMark, "", kMaxSame));
  MUSTER_ASSIGN(const auto plain, store_.Get(kRunKind, id));
  if (plain) records.push_back(*plain);
  std::vector<RunState> same;
  for (const store::Record& record : records) {
    auto run = ReadRunBody(record);
    if (run && run->Input("migrationId") == id) same.push_back(*std::move(run));
  }
  std::string names;
  for (const RunState& run : same) {
    const std::string name = OwnerOf(run) + "/" + id;
    if (name == text) return run.id;
    names += (names.empty() ? "" : ", ") + name;
  }
  if (last != text.npos) return NoSuchRun(text);
  if (same.size() < 2) return id;
  return Error{Code::kInvalid, "several migrations are called '" + id + "': " + names,
               "say which: TENANT/ENVIRONMENT/" + id};
}

Result<std::optional<store::Record>> Runs::Claim(const std::string& id, std::stop_token stop) {
  const store::LeaseRequest request{.kind = kRunKind,
                                    .queue = kQueue,
                                    .key = id,
                                    .owner = owner_,
                                    .terms = {.lease = kRunLease, .max_lease = kRunLease}};
  MUSTER_ASSIGN(const auto claimed, store::Lease::Claim(store_, env_, request, std::move(stop)));
  if (claimed.empty()) return std::nullopt;
  return claimed.front().record();
}

// Claims the run's record. While another process renews it, it is not to be had; one that has died
// lets it go when its lease ends, so it is worth waiting for that.
Result<store::Record> Runs::Take(const std::string& id, const Sayer& say, std::stop_token stop) {
  int64_t seen = 0;
  const MonoTime end = env_.MonoNow() + kRunLease + kRenewEvery;
  while (true) {
    MUSTER_ASSIGN(auto claimed, Claim(id, stop));
    if (claimed) return *std::move(claimed);
    if (PLANTED_BUG(runs_are_taken_from_their_drivers)) return Read(id);
    MUSTER_ASSIGN(const store::Record record, Read(id));
    if (seen == 0 && say) {
      say("another process has driven migration '" + id + "' until lately: waiting up to " +
          std::to_string(
              std::chrono::duration_cast<std::chrono::seconds>(end - env_.MonoNow()).count()) +
          " s for its lease to end");
    }
    const bool renewed = seen != 0 && record.version != seen;
    seen = record.version;
    if (renewed || env_.MonoNow() >= end)
      return Error{Code::kConflict, "another process drives migration '" + id + "'",
                   "'muster status " + id + "' tells how it stands"};
    if (!env_.Sleep(milliseconds(500), stop)) return Error{Code::kCancelled, "stopped"};
  }
}

// Best effort: a run that is not renewed is taken over when its lease ends.
void Runs::Renew(const std::string& id, bool release) {
  static_cast<void>(store::Update(
      store_, kRunKind, id,
      [&](std::optional<store::Record> record) -> Result<std::optional<store::Change>> {
        if (!record || record->owner != owner_) return std::nullopt;
        return store::Change::Put(*std::move(record),
                                  release ? store::Due::Now() : store::Due::After(kRunLease));
      }));
}

Result<Json> Runs::DoneSoFar(const Plan& plan, const RunState& run, Json done) {
  MUSTER_ASSIGN(const Json history, HistoryOf(run));
  MUSTER_ASSIGN(const StateTable states, StatesOf(run.execution, run, &plan));
  AddDone(plan, states, history, done);
  return done;
}

// What a new attempt need not do.
Result<Json> Runs::DoneFor(const store::Record& record, const RunState& run, const Plan& plan,
                           const Again& again, std::vector<std::string>& invalidated) {
  MUSTER_ASSIGN(std::set<std::string> tasks, TasksOf(plan, again));
  MUSTER_ASSIGN(Json done, DoneSoFar(plan, run, DoneOf(record)));
  if (!IsPinned(record, plan)) {
    MUSTER_ASSIGN(std::set<std::string> changed, ChangedSince(record, plan));
    tasks.merge(changed);
    // By another plan, rows may have to be elsewhere.
    ForgetReconciled(plan, done);
  }
  invalidated = Invalidate(plan, tasks, done);
  return done;
}

Result<std::vector<std::string>> Runs::DoneAgain(const std::string& id, const Plan& plan,
                                                 const Again& again) {
  MUSTER_ASSIGN(const store::Record record, Read(id));
  MUSTER_ASSIGN(const RunState run, Describe(record));
  std::vector<std::string> invalidated;
  MUSTER_TRY(DoneFor(record, run, plan, again, invalidated));
  return invalidated;
}

Result<RunState> Runs::Resume(const std::string& id, const Plan& plan, const ResumeOptions& options,
                              std::stop_token stop) {
  MUSTER_ASSIGN(const store::Record before, Read(id));
  MUSTER_ASSIGN(RunState run, Describe(before));
  const bool again = options.again.rank || options.again.task;
  const bool changed = !IsPinned(before, plan);
  if (!PLANTED_BUG(plans_are_not_pinned) && changed && !options.accept_changes) {
    return Error{Code::kConflict,
                 "the plan of migration '" + id +
                     "' has changed since it began: " + DescribeChanges(before, plan),
                 "undo that, or accept it with --accept-changes"};
  }
  MUSTER_TRY(TasksOf(plan, options.again));
  const Error completed{Code::kConflict, "migration '" + id + "' is completed",
                        "'muster retry " + id + " --rank N' does a part of it again"};
  if (run.status == RunStatus::kCompleted && !again) return completed;
  const std::string hash = run.hash;
  MUSTER_ASSIGN(store::Record record, Take(id, options.say, stop));
  MUSTER_ASSIGN(run, Describe(record));
  // While this one waited, another may have completed it, or gone on by another plan.
  if (!PLANTED_BUG(completed_runs_are_begun_again) &&
      (run.hash != hash || (run.status == RunStatus::kCompleted && !again))) {
    Renew(id, true);
    if (run.hash == hash) return completed;
    return Error{Code::kConflict, "another process has resumed migration '" + id + "'"};
  }
  MUSTER_TRY(DropWish(id));
  if (run.status == RunStatus::kInProgress) {
    // Left by another process, perhaps before it had begun. A version that makes another machine of
    // the same plan goes on with the one that was begun.
    MUSTER_ASSIGN(const auto begun, states_.Find(run.execution));
    if (!again && !changed) {
      if (!begun) MUSTER_TRY(Begin(plan, run, DoneOf(record)));
      return run;
    }
    // The machine that was begun knows nothing of what is asked for now.
    if (begun)
      MUSTER_TRY(EndCancelled(run, "to go on by another plan, or to do parts of it again"));
  }
  return NextAttempt(std::move(record), std::move(run), plan, options);
}

Result<RunState> Runs::NextAttempt(store::Record record, RunState run, const Plan& plan,
                                   const ResumeOptions& options) {
  MUSTER_ASSIGN(const Json done, DoneFor(record, run, plan, options.again, run.invalidated));
  // One that an older version has begun has none.
  if (run.incarnation.empty()) run.incarnation = env_.NewId();
  if (run.folder.empty()) run.folder = options.folder;
  AddAttempt(run);
  run.hash = HashOf(plan);
  run.variables = plan.given;
  run.status = RunStatus::kInProgress;
  MUSTER_TRY(Compiled(plan, run, done));
  record.body = RunBody(run, plan, done);
  MUSTER_ASSIGN(const auto written,
                store_.Write({{store::Change::Put(record, store::Due::After(kRunLease))}}));
  if (!written.front().applied)
    return Error{Code::kConflict, "another process has resumed migration '" + run.id + "'"};
  MUSTER_TRY(Begin(plan, run, done));
  return run;
}

// Known before anything is begun: which calls are tasks, and whether the run drains.
Status Runs::PrepareGate(const RunState& run) {
  MUSTER_ASSIGN(const store::Record record, Read(run.id));
  MUSTER_ASSIGN(const std::optional<Plan> plan, PinnedPlan(record));
  MUSTER_ASSIGN(StateTable states, StatesOf(run.execution, run, plan ? &*plan : nullptr));
  gate_->SetStates(std::move(states));
  MUSTER_ASSIGN(const bool draining, IsToDrain(run));
  if (draining) {
    gate_->Close();
  } else {
    gate_->Open();
  }
  return {};
}

Result<RunState> Runs::Drive(const RunState& run, int threads, std::stop_token stop) {
  if (gate_ != nullptr) MUSTER_TRY(PrepareGate(run));
  const std::string name = "run '" + run.id + "'";
  std::vector<Status> ended(static_cast<size_t>(std::max(1, threads)));
  std::atomic<size_t> working = ended.size();
  std::stop_source done;
  std::vector<std::function<void()>> all;
  all.emplace_back([&] {
    const Status attended = Guarded(name, [&]() -> Status {
      Attend(run, done.get_token());
      return {};
    });
    if (!attended) LogUnexpected(name, attended.error().message);
  });
  for (Status& status : ended) {
    all.emplace_back([&] {
      status = Guarded(name, [&] { return states_.Work(stop, run.execution); });
      if (--working == 0) done.request_stop();
    });
  }
  env_.RunAll(std::move(all));
  Renew(run.id, true);
  for (const Status& status : ended) MUSTER_TRY(status);
  return Find(run.id);
}

Result<Json> Runs::HistoryOf(const RunState& run) {
  auto history = states_.History(run.execution);
  // A process may have died between the record and the execution.
  if (!history && history.error().code == Code::kNotFound) return Json::array();
  return history;
}

Result<RunReport> Runs::Report(const RunState& run) {
  MUSTER_ASSIGN(const Json history, HistoryOf(run));
  return ReportBy(history, run);
}

Result<RunReport> Runs::ReportBy(const Json& history, const RunState& run) {
  MUSTER_ASSIGN(const store::Record record, Read(run.id));
  MUSTER_ASSIGN(const std::optional<Plan> plan, PinnedPlan(record));
  if (!plan) return RunReport();
  MUSTER_ASSIGN(const StateTable states, StatesOf(run.execution, run, &*plan));
  return MakeReport(*plan, states, history, DoneOf(record), run.status != RunStatus::kInProgress);
}

Result<RunState> Runs::Find(const std::string& id) {
  MUSTER_ASSIGN(const store::Record record, Read(id));
  return Describe(record);
}

Result<RunView> Runs::View(const std::string& id) {
  MUSTER_ASSIGN(const store::Record record, Read(id));
  MUSTER_ASSIGN(RunState run, Describe(record));
  MUSTER_ASSIGN(const std::optional<Plan> plan, PinnedPlan(record));
  if (!plan) {
    return Error{Code::kNotFound,
                 "the plan of migration '" + id + "' was too large to be kept with it"};
  }
  MUSTER_ASSIGN(const StateTable states, StatesOf(run.execution, run, &*plan));
  MUSTER_ASSIGN(const Json history, HistoryOf(run));
  MUSTER_ASSIGN(LiveRun live, Live(run));
  RunReport report =
      MakeReport(*plan, states, history, DoneOf(record), run.status != RunStatus::kInProgress);
  report.SetWaits(live.waits);
  return ViewRun(*plan, states, std::move(run), report, history, std::move(live), env_.WallNow());
}

Result<std::vector<RunState>> Runs::List(const std::string& after, int limit) {
  MUSTER_ASSIGN(const auto records, store_.Scan(kRunKind, "", after, limit));
  std::vector<RunState> runs;
  for (const store::Record& record : records) {
    auto run = Describe(record);
    if (!run) {
      const Error& error = run.error();
      if (error.code != Code::kInvalid && error.code != Code::kCorrupt) return error;
      RunState unreadable;
      unreadable.id = record.key;
      unreadable.status = RunStatus::kUnreadable;
      unreadable.cause = error.ToString();
      run = std::move(unreadable);
    }
    runs.push_back(*std::move(run));
  }
  return runs;
}

}  // namespace muster::plan
