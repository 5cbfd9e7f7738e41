// What goes on beside a run that is driven: its lease, what others wish, what people see.

#include "plan/run_body.h"
#include "plan/runs.h"

namespace muster::plan {
namespace {

constexpr const char* kWishKind = "plan.wish";
constexpr const char* kRowsKind = "plan.rows";
constexpr const char* kQueue = "default";
constexpr milliseconds kLookEvery{500};
constexpr milliseconds kRenewEvery = kRunLease / 3;
constexpr int kMaxTries = 5;

// Creates or replaces a record that one process at a time has to do with.
Status Put(Store& store, const char* kind, const std::string& key, const std::string& body) {
  for (int tries = 0; tries < kMaxTries; ++tries) {
    MUSTER_ASSIGN(const auto found, store.Get(kind, key));
    Record record = found.value_or(Record{.kind = kind, .queue = kQueue, .key = key});
    record.body = body;
    const auto written = store.Write({{Change::Put(std::move(record), Due::Never())}});
    if (!written && written.error().code != Code::kUnknownOutcome) return written.error();
    if (written && written->front().applied) return {};
  }
  return Error{Code::kConflict, "others keep changing the record '" + key + "'"};
}

// The body of a record about this attempt of a run; null: there is none.
Result<Json> About(Store& store, const char* kind, const RunState& run) {
  MUSTER_ASSIGN(const auto found, store.Get(kind, run.id));
  if (!found) return Json();
  Json body = Json::parse(found->body, nullptr, false);
  if (!body.is_object() || body.value("execution", "") != run.execution) return Json();
  return body;
}

}  // namespace

void Runs::Attend(const RunState& run, const std::stop_token& done) {
  MonoTime renew = env_.MonoNow() + kRenewEvery;
  std::map<std::string, int64_t> told;
  bool draining = false;
  bool cancelled = false;
  while (env_.Sleep(kLookEvery, done)) {
    if (env_.MonoNow() >= renew) {
      Renew(run.id, false);
      renew = env_.MonoNow() + kRenewEvery;
    }
    if (gate_ == nullptr) continue;
    if (const auto rows = gate_->LiveRows(); rows != told) {
      Publish(run, rows);
      told = rows;
    }
    // A store that does not answer is asked again; the wish stands.
    draining = draining || IsToDrain(run).value_or(false);
    if (!draining || cancelled) continue;
    gate_->Close();
    cancelled = IsDrained(run).value_or(false) && EndCancelled(run, "by 'muster cancel --drain'");
  }
}

void Runs::Publish(const RunState& run, const std::map<std::string, int64_t>& rows) {
  // Nobody relies on it: the next one may go through.
  static_cast<void>(Put(store_, kRowsKind, run.id,
                        ToJsonText({{"execution", run.execution}, {"rows", Json(rows)}})));
}

Result<std::map<std::string, int64_t>> Runs::LiveRows(const RunState& run) {
  MUSTER_ASSIGN(const Json body, About(store_, kRowsKind, run));
  std::map<std::string, int64_t> rows;
  if (body.is_null()) return rows;
  const Json told = body.value("rows", Json::object());
  for (const auto& [state, count] : told.items()) {
    if (count.is_number_integer()) rows[state] = count;
  }
  return rows;
}

Result<bool> Runs::IsToDrain(const RunState& run) {
  MUSTER_ASSIGN(const Json wish, About(store_, kWishKind, run));
  return wish.is_object() && wish.value("cancel", "") == "drain";
}

Status Runs::DropWish(const std::string& id) {
  MUSTER_ASSIGN(const auto found, store_.Get(kWishKind, id));
  return found ? Put(store_, kWishKind, id, "{}") : Status();
}

// What was begun has ended, and its result is in the store.
Result<bool> Runs::IsDrained(const RunState& run) {
  using Passage = TaskGate::Passage;
  if (!gate_->IsEmpty()) return false;
  MUSTER_ASSIGN(const Record record, Read(run.id));
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

// The record has the state machine that does it, made when the run began: the plan may be gone.
Status Runs::MarkCancelled(const RunState& run) {
  MUSTER_ASSIGN(const Record record, Read(run.id));
  const Json machine = CancelMachineOf(record);
  if (machine.is_null()) return {};
  const std::string name = run.execution + ".c";
  MUSTER_TRY(states_.Start({.name = name,
                            .definition = ToJsonText(machine),
                            .origin = run.path,
                            .machine = run.plan + ".cancel",
                            .input = ToJsonText(Json(run.inputs))}));
  MUSTER_TRY(states_.Work({}, name));
  MUSTER_ASSIGN(const auto marked, states_.Find(name));
  if (marked && marked->status == "SUCCEEDED") return {};
  return Error{Code::kUnavailable,
               "migration '" + run.id + "' is cancelled, but its status could not be written: " +
                   (marked ? marked->error + ": " + marked->cause : std::string())};
}

Status Runs::Cancel(const std::string& id) {
  MUSTER_ASSIGN(const RunState run, Find(id));
  if (run.status == "IN_PROGRESS") return EndCancelled(run, "by 'muster cancel'");
  if (run.status == "CANCELLED") {
    MUSTER_ASSIGN(const auto marked, states_.Find(run.execution + ".c"));
    if (!marked || marked->status != "SUCCEEDED") return MarkCancelled(run);
  }
  return Error{Code::kConflict, "migration '" + id + "' has ended: " + run.status};
}

Result<RunState> Runs::Drain(const std::string& id, int threads, std::stop_token stop) {
  MUSTER_ASSIGN(RunState run, Find(id));
  if (run.status != "IN_PROGRESS")
    return Error{Code::kConflict, "migration '" + id + "' has ended: " + run.status};
  MUSTER_TRY(
      Put(store_, kWishKind, id, ToJsonText({{"execution", run.execution}, {"cancel", "drain"}})));
  while (run.status == "IN_PROGRESS" && !stop.stop_requested()) {
    MUSTER_ASSIGN(const auto claimed, Claim(id));
    if (claimed) return Drive(run, threads, stop);
    env_.Sleep(kLookEvery, stop);
    MUSTER_ASSIGN(run, Find(id));
  }
  return run;
}

Result<bool> Runs::IsDriven(const std::string& id) {
  MUSTER_ASSIGN(const Record record, Read(id));
  MUSTER_ASSIGN(const WallTime now, store_.Now());
  return record.due && *record.due > now;
}

}  // namespace muster::plan
