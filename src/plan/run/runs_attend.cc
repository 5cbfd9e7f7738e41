// What goes on beside a run that is driven: its lease, what others wish, what people see.

#include "core/guard.h"
#include "core/json_fields.h"
#include "core/record_version.h"
#include "plan/run/run_attempts.h"
#include "plan/run/run_body.h"
#include "plan/run/runs.h"
#include "store/store.h"

namespace muster::plan {
namespace {

constexpr const char* kWishKind = "plan.wish";
constexpr const char* kLiveKind = "plan.rows";
constexpr const char* kQueue = "default";
constexpr int64_t kVersion = 1;  // of wishes and of live rows
constexpr milliseconds kLookEvery{500};
constexpr milliseconds kRenewEvery = kRunLease / 3;

// Creates or replaces a record that one process at a time has to do with.
Status Put(store::Store& store, const char* kind, const std::string& key, const std::string& body,
           bool deferred = false) {
  return store::Update(
      store, kind, key,
      [&](std::optional<store::Record> found) -> Result<std::optional<store::Change>> {
        store::Record record =
            std::move(found).value_or(store::Record{.kind = kind, .queue = kQueue, .key = key});
        record.body = body;
        return store::Change::Put(std::move(record), store::Due::Never(), deferred);
      });
}

// The body of a record about this attempt of a run; null: there is none.
Result<Json> About(store::Store& store, const char* kind, const RunState& run) {
  MUSTER_ASSIGN(const auto found, store.Get(kind, run.id));
  if (!found) return Json();
  Json body = Json::parse(found->body, nullptr, false);
  if (TextIn(body, "execution") != run.execution) return Json();
  MUSTER_TRY(CheckVersion(VersionOf(body), kVersion, "the record '" + run.id + "' of " + kind));
  return body;
}

}  // namespace

void Runs::Attend(const RunState& run, const std::stop_token& done) {
  MonoTime renew = env_.MonoNow() + kRenewEvery;
  LiveRun live;
  if (const auto now = store_.Now()) live.since = *now;
  Publish(run, live);
  bool draining = false;
  bool cancelled = false;
  while (env_.Sleep(kLookEvery, done)) {
    if (env_.MonoNow() >= renew) {
      Renew(run.id, false);
      renew = env_.MonoNow() + kRenewEvery;
    }
    if (gate_ == nullptr) continue;
    auto rows = gate_->LiveRows();
    auto waits = gate_->LiveWaits();
    if (rows != live.rows || waits != live.waits) {
      live.rows = std::move(rows);
      live.waits = std::move(waits);
      Publish(run, live);
    }
    // A store that does not answer is asked again; the wish stands.
    draining = draining || IsToDrain(run).value_or(false);
    if (!draining || cancelled) continue;
    gate_->Close();
    if (!IsDrained(run).value_or(false)) continue;
    // What goes on elsewhere may take long to stop, and the run has to stay ours until then.
    std::stop_source ended;
    env_.RunAll({[&] {
                   while (env_.Sleep(kRenewEvery, ended.get_token())) Renew(run.id, false);
                 },
                 [&] {
                   cancelled = Guarded("run '" + run.id + "'", [&] {
                                 return EndCancelled(run, "by 'muster cancel --drain'");
                               }).has_value();
                   ended.request_stop();
                 }});
  }
}

void Runs::Publish(const RunState& run, const LiveRun& live) {
  Json body{{"v", kVersion},
            {"execution", run.execution},
            {"rows", Json(live.rows)},
            {"waits", Json(live.waits)}};
  if (live.since) body["since"] = live.since->time_since_epoch().count();
  // Nobody relies on it: the next one may go through.
  static_cast<void>(Put(store_, kLiveKind, run.id, ToJsonText(body), true));
}

Result<LiveRun> Runs::Live(const RunState& run) {
  MUSTER_ASSIGN(const Json body, About(store_, kLiveKind, run));
  LiveRun live;
  if (body.is_null()) return live;
  for (const auto& [state, count] : MemberIn(body, "rows").items()) {
    if (count.is_number_integer()) live.rows[state] = count;
  }
  for (const auto& [state, what] : MemberIn(body, "waits").items()) {
    if (what.is_string()) live.waits[state] = what.get<std::string>();
  }
  if (const Json& since = MemberIn(body, "since"); since.is_number_integer())
    live.since = WallTime(milliseconds(since.get<int64_t>()));
  return live;
}

Result<bool> Runs::IsToDrain(const RunState& run) {
  MUSTER_ASSIGN(const Json wish, About(store_, kWishKind, run));
  return TextIn(wish, "cancel") == "drain";
}

Status Runs::DropWish(const std::string& id) {
  MUSTER_ASSIGN(const auto found, store_.Get(kWishKind, id));
  return found ? Put(store_, kWishKind, id, "{}") : Status();
}

// What was begun has ended, and its result is in the store.
Result<bool> Runs::IsDrained(const RunState& run) {
  using Passage = TaskGate::Passage;
  if (!gate_->IsEmpty()) return false;
  MUSTER_ASSIGN(const store::Record record, Read(run.id));
  MUSTER_ASSIGN(const std::optional<Plan> plan, PinnedPlan(record));
  MUSTER_ASSIGN(const RunReport report, Report(run));
  bool remote = false;
  if (plan) {
    MUSTER_ASSIGN(const Profile* profile, plan->FindProfile(run.profile));
    remote = profile->kind != ProfileKind::kLocal;
  }
  for (const RankReport& rank : report.ranks) {
    for (const TaskReport& task : rank.tasks) {
      if (task.state != PartState::kRunning) continue;
      const Passage passage = gate_->PassageOf(task.first_state);
      // One that has failed waits for its next try, which is not begun.
      if (passage == Passage::kHeld || passage == Passage::kFailed) continue;
      // What another process was at has ended with it, unless it goes on elsewhere.
      if (passage == Passage::kNone && !remote) continue;
      return false;
    }
  }
  return true;
}

Status Runs::EndCancelled(const RunState& run, const std::string& cause) {
  MUSTER_TRY(states_.Stop(run.execution, "Cancelled", cause));
  return MarkCancelled(run);
}

// The record has the state machine that does it, and stops what goes on elsewhere, made when the
// run began: the plan may be gone.
Status Runs::MarkCancelled(const RunState& run) {
  MUSTER_ASSIGN(const store::Record record, Read(run.id));
  const Json machine = CancelMachineOf(record);
  if (machine.is_null()) return {};
  const std::string name = run.execution + ".c";
  MUSTER_ASSIGN(const auto before, states_.Find(name));
  Status begun;
  if (!before) {
    MUSTER_ASSIGN(const Json history, HistoryOf(run));
    MUSTER_ASSIGN(const RunReport report, ReportBy(history, run));
    Json input(run.inputs);
    input[kBegunInput] = BegunExtracts(report, history);
    begun = states_.Start({.name = name,
                           .definition = ToJsonText(machine),
                           .origin = run.path,
                           .machine = run.plan + ".cancel",
                           .input = ToJsonText(input),
                           .queue = QueueOf(run)});
  } else if (before->status != states::ExecutionStatus::kRunning &&
             before->status != states::ExecutionStatus::kSucceeded) {
    begun = states_.Redrive(name);
  }
  // A conflict is another process that cancels it at the same time.
  if (!begun && begun.error().code != Code::kConflict) return begun;
  MUSTER_TRY(states_.Work({}, name));
  MUSTER_ASSIGN(const auto marked, states_.Find(name));
  if (marked && marked->status == states::ExecutionStatus::kSucceeded) return {};
  return Error{Code::kUnavailable,
               "migration '" + run.id +
                   "' is cancelled, but its status could not be written, or what goes on elsewhere "
                   "could not be stopped: " +
                   (marked ? marked->error + ": " + marked->cause : std::string()),
               "mend that, then run 'muster cancel " + run.id + "' again"};
}

Status Runs::Cancel(const std::string& id) {
  MUSTER_ASSIGN(const RunState run, Find(id));
  if (run.status == RunStatus::kInProgress) return EndCancelled(run, "by 'muster cancel'");
  if (run.status == RunStatus::kCancelled) {
    MUSTER_ASSIGN(const auto marked, states_.Find(run.execution + ".c"));
    if (!marked || marked->status != states::ExecutionStatus::kSucceeded) return MarkCancelled(run);
  }
  return Error{Code::kConflict, "migration '" + id + "' has ended: " + NameOf(run.status)};
}

// "waiting for transform posts, which waits for the write lock of …"
Result<std::string> Runs::WhatIsWaitedFor(const RunState& run) {
  MUSTER_ASSIGN(const LiveRun live, Live(run));
  MUSTER_ASSIGN(const RunReport report, Report(run));
  std::string text;
  for (const RankReport& rank : report.ranks) {
    for (const TaskReport& task : rank.tasks) {
      // Of one that was stopped, its process may still be at it.
      if (task.state != PartState::kRunning && task.state != PartState::kStopped) continue;
      text += (text.empty() ? "waiting for " : ", ") + NameOf(task.phase) + " " + task.name;
      const auto what = live.waits.find(task.first_state);
      if (what != live.waits.end()) text += ", which waits for " + what->second;
    }
  }
  return text;
}

Result<bool> Runs::IsLetGo(const std::string& id) {
  MUSTER_ASSIGN(const store::Record record, Read(id));
  MUSTER_ASSIGN(const WallTime now, store_.Now());
  return !record.due || *record.due <= now;
}

Result<RunState> Runs::Drain(const std::string& id, int threads, const Sayer& say,
                             std::stop_token stop) {
  MUSTER_ASSIGN(RunState run, Find(id));
  if (run.status != RunStatus::kInProgress)
    return Error{Code::kConflict, "migration '" + id + "' has ended: " + NameOf(run.status)};
  MUSTER_TRY(Put(store_, kWishKind, id,
                 ToJsonText({{"v", kVersion}, {"execution", run.execution}, {"cancel", "drain"}})));
  std::string said;
  while (run.status == RunStatus::kInProgress && !stop.stop_requested()) {
    MUSTER_ASSIGN(const auto claimed, Claim(id, stop));
    if (claimed) return Drive(run, threads, stop);
    MUSTER_ASSIGN(const std::string waits, WhatIsWaitedFor(run));
    if (say && !waits.empty() && waits != said) say(waits);
    said = waits;
    env_.Sleep(kLookEvery, stop);
    MUSTER_ASSIGN(run, Find(id));
  }
  return run;
}

}  // namespace muster::plan
