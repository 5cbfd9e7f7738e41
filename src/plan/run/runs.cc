#include "plan/run/runs.h"

#include <filesystem>

#include "core/sha256.h"
#include "muster/store.h"
#include "plan/compile/compile.h"
#include "plan/model/order.h"
#include "plan/model/plan_json.h"
#include "plan/run/run_attempts.h"
#include "plan/run/run_body.h"
#include "states/states.h"

namespace muster::plan {
namespace {

// Separates a migrationId from the hash that distinguishes runs that share it.
constexpr const char* kOwnerMark = ".t";
constexpr size_t kOwnerDigits = 8;
constexpr size_t kMaxSharedId = 60;  // leaves room for the hash
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

Error NoSuchRun(const std::string& id) {
  return {Code::kNotFound, "no migration '" + id + "'", "'muster list' shows the existing ones"};
}

Runs::Runs(store::Store& store, states::States& states, Env& env, TaskGate* gate)
    : store_(store), states_(states), env_(env), gate_(gate), owner_(env.NewId()) {}

Result<store::Record> Runs::Read(const std::string& id) {
  MUSTER_ASSIGN(auto record, store_.Get(kRunKind, id));
  if (!record) return NoSuchRun(id);
  return *std::move(record);
}

Result<RunState> Runs::Describe(const store::Record& record) {
  MUSTER_ASSIGN(RunState run, *bodies_.In(record, ReadRunBody));
  run.epoch = record.epoch;
  MUSTER_TRY(DropForeignAttempts(store_, run));
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

// Called before a run is recorded: one that cannot begin must not be left in progress.
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
  MUSTER_TRY(CheckSize(plan, request.definition));
  if (request.input.size() > states::kMaxPayloadBytes) {
    return Error{Code::kInvalid, "the inputs have " + std::to_string(request.input.size()) +
                                     " bytes; the limit is " +
                                     std::to_string(states::kMaxPayloadBytes)};
  }
  return CompiledRun{std::move(request), std::move(compiled.states)};
}

Status Runs::Begin(const CompiledRun& compiled) {
  MUSTER_TRY(WriteStates(store_, compiled.request.name, compiled.states));
  return states_.Start(compiled.request);
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
  // Tenants and environments may use the same migrationId.
  if (other && !IsSameMigration(*other, run)) {
    MUSTER_ASSIGN(run.id, LongName(run));
    MUSTER_ASSIGN(other, Create(run, plan));
  }
  if (other) {
    const std::string next = other->status == RunStatus::kCompleted
                                 ? "give the new one a migrationId of its own"
                                 : "'muster resume " + run.id + "' resumes it";
    return Error{Code::kConflict,
                 "migration '" + run.id + "' already exists: " + std::string(NameOf(other->status)),
                 next};
  }
  // The names of its execution and queue depend on it.
  MUSTER_ASSIGN(const CompiledRun compiled, Compiled(plan, run, Json::object()));
  MUSTER_TRY(Begin(compiled));
  return run;
}

// Writes the record of a new run. If the name is taken, returns the run that has it.
Result<std::optional<RunState>> Runs::Create(RunState& run, const Plan& plan) {
  run.attempts.clear();
  AddAttempt(run);
  store::Record record{.kind = kRunKind, .queue = kRunQueue, .key = run.id, .owner = owner_};
  record.body = RunBody(run, plan, Json::object());
  std::optional<store::Record> other;
  MUSTER_TRY(store::Update(
      store_, kRunKind, run.id,
      [&](std::optional<store::Record> stored) -> Result<std::optional<store::Change>> {
        // The body contains the run's incarnation: an equal one is ours, by a write whose reply was
        // lost.
        const bool ours = stored && stored->body == record.body && Holds(*stored, record.epoch);
        if (stored && !ours) other = stored;
        if (stored) return std::nullopt;
        return store::Change::Put(record, store::Due::After(kRunLease));
      }));
  if (!other) return std::optional<RunState>();
  MUSTER_ASSIGN(RunState found, Describe(*other));
  return std::optional<RunState>(std::move(found));
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
  return Error{Code::kInvalid, "several migrations have the id '" + id + "': " + names,
               "say which: TENANT/ENVIRONMENT/" + id};
}

Result<std::shared_ptr<const PlanWithStates>> Runs::PlanIn(const store::Record& record) {
  using Plans = Result<std::shared_ptr<const PlanWithStates>>;
  return *plans_.In(record, [](const store::Record& changed) -> Plans {
    MUSTER_ASSIGN(std::optional<Plan> plan, PinnedPlan(changed));
    if (!plan) return nullptr;
    return std::make_shared<const PlanWithStates>(*std::move(plan));
  });
}

Result<ExecutionLog> Runs::LogOf(const RunState& run, const PlanWithStates* pinned) {
  return ReadLog(store_, run.execution, run.profile, pinned);
}

Result<std::vector<states::Event>> Runs::Events(const Attempt& attempt) {
  auto events = states::ReadEvents(store_, attempt.execution);
  if (!events && events.error().code == Code::kNotFound) return std::vector<states::Event>();
  return events;
}

Result<RunReport> Runs::Report(const RunState& run) {
  MUSTER_ASSIGN(const store::Record record, Read(run.id));
  MUSTER_ASSIGN(const auto plan, PlanIn(record));
  if (!plan) return RunReport();
  MUSTER_ASSIGN(const ExecutionLog log, LogOf(run, plan.get()));
  return MakeReport(**plan, log, DoneOf(record), run.status != RunStatus::kInProgress);
}

Result<RunState> Runs::Find(const std::string& id) {
  MUSTER_ASSIGN(const store::Record record, Read(id));
  return Describe(record);
}

Result<RunView> Runs::View(const std::string& id) {
  MUSTER_ASSIGN(const store::Record record, Read(id));
  MUSTER_ASSIGN(RunState run, Describe(record));
  MUSTER_ASSIGN(const auto plan, PlanIn(record));
  if (!plan) {
    return Error{Code::kNotFound,
                 "the plan of migration '" + id + "' was too large to be kept with it"};
  }
  MUSTER_ASSIGN(const ExecutionLog log, LogOf(run, plan.get()));
  MUSTER_ASSIGN(LiveRun live, Live(run));
  RunReport report = MakeReport(**plan, log, DoneOf(record), run.status != RunStatus::kInProgress);
  SetWaits(report, live.waits);
  return ViewRun(**plan, std::move(run), report, log, std::move(live), env_.WallNow());
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
