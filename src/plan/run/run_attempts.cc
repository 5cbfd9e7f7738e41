#include "plan/run/run_attempts.h"

#include <algorithm>

#include "core/record_fields.h"
#include "core/timestamp.h"
#include "plan/run/run_body.h"
#include "plan/run/runs.h"

namespace muster::plan {
namespace {

constexpr size_t kMaxKept = 100;        // attempts kept in a record: the latest
constexpr size_t kMaxPrefixBytes = 30;  // of the run's id, in the name of an execution

constexpr RecordFields<Attempt, 3> kAttemptFields{{
    Always<Attempt, &Attempt::number>("number"),
    Always<Attempt, &Attempt::execution>("execution"),
    Field<Attempt, &Attempt::again>("again"),
}};

std::string LegacyExecutionOf(const std::string& id, int64_t attempt) {
  return attempt == 1 ? id : id + "." + std::to_string(attempt);
}

// The run that owned an attempt of this name in an older version; empty: none.
std::string RunBefore(const std::string& id) {
  const size_t dot = id.rfind('.');
  if (dot == id.npos || dot == 0 || dot + 1 == id.size()) return {};
  const bool number = std::all_of(id.begin() + static_cast<std::ptrdiff_t>(dot) + 1, id.end(),
                                  [](char c) { return c >= '0' && c <= '9'; });
  return number ? id.substr(0, dot) : std::string();
}

// Whether an execution belongs to a run, by its inputs, or does not exist.
Result<bool> HasInputsOf(store::Store& store, const std::string& execution, const RunState& run) {
  MUSTER_ASSIGN(const ExecutionLog log, ReadLog(store, execution, run.profile, nullptr));
  if (log.input.is_null()) return true;
  return TextIn(log.input, "migrationId") == run.Input("migrationId") &&
         TextIn(log.input, "tenantId") == run.Input("tenantId");
}

}  // namespace

RunStatus StatusOf(const std::optional<states::Execution>& execution) {
  if (!execution) return RunStatus::kInProgress;
  switch (execution->status) {
    case states::ExecutionStatus::kRunning:
      return RunStatus::kInProgress;
    case states::ExecutionStatus::kSucceeded:
      return RunStatus::kCompleted;
    case states::ExecutionStatus::kAborted:
      return RunStatus::kCancelled;
    case states::ExecutionStatus::kFailed:
    case states::ExecutionStatus::kTimedOut:
    case states::ExecutionStatus::kUnreadable:
      break;
  }
  return RunStatus::kFailed;
}

std::string ExecutionOf(const RunState& run, int64_t attempt) {
  return run.id.substr(0, kMaxPrefixBytes) + "." + run.incarnation + "." + std::to_string(attempt);
}

std::string QueueOf(const RunState& run) { return "plan." + run.incarnation; }

void AddAttempt(RunState& run) {
  run.attempt = run.attempts.empty() ? 1 : run.attempt + 1;
  run.execution = ExecutionOf(run, run.attempt);
  if (run.attempts.size() == kMaxKept) run.attempts.erase(run.attempts.begin());
  run.attempts.push_back({run.attempt, run.execution, run.invalidated});
}

Json AttemptsJson(const RunState& run) {
  Json attempts = Json::array();
  for (const Attempt& attempt : run.attempts) {
    attempts.push_back(Nested<kAttemptFields>::Write(attempt));
  }
  return attempts;
}

void ReadAttempts(const Json* attempts, RunState& run) {
  if (attempts == nullptr || !attempts->is_array() || attempts->empty()) {
    run.unmarked_staging = true;
    const auto kept = static_cast<int64_t>(kMaxKept);
    for (int64_t i = std::max<int64_t>(1, run.attempt - kept + 1); i < run.attempt; ++i)
      run.attempts.push_back({i, LegacyExecutionOf(run.id, i), {}});
    run.attempts.push_back({run.attempt, run.execution, {}});
    return;
  }
  for (const Json& one : *attempts) {
    Attempt attempt{.number = 0, .execution = {}};
    JsonFields fields(one);
    ReadMembers(kAttemptFields, fields, attempt);
    if (attempt.number > 0 && !attempt.execution.empty())
      run.attempts.push_back(std::move(attempt));
  }
}

Status DropForeignAttempts(store::Store& store, RunState& run) {
  std::vector<Attempt> own;
  for (const Attempt& attempt : run.attempts) {
    const bool legacy = attempt.execution == LegacyExecutionOf(run.id, attempt.number);
    const std::string rival = attempt.number > 1 ? attempt.execution : RunBefore(run.id);
    if (legacy && !rival.empty()) {
      MUSTER_ASSIGN(const auto other, store.Get(kRunKind, rival));
      if (other) {
        MUSTER_ASSIGN(const bool ours, HasInputsOf(store, attempt.execution, run));
        if (!ours) continue;
      }
    }
    own.push_back(attempt);
  }
  run.attempts = std::move(own);
  if (!run.attempts.empty() && run.attempts.back().number == run.attempt) return {};
  run.execution = ExecutionOf(run, run.attempt);
  run.attempts.push_back({run.attempt, run.execution, {}});
  return {};
}

// An earlier attempt without an execution was recorded, but never begun.
Result<std::vector<AttemptReport>> Runs::Attempts(const RunState& run, bool with_tasks) {
  std::shared_ptr<const PlanWithStates> plan;
  if (with_tasks) {
    MUSTER_ASSIGN(const store::Record record, Read(run.id));
    MUSTER_ASSIGN(plan, PlanIn(record));
  }
  std::vector<AttemptReport> reports;
  for (const Attempt& attempt : run.attempts) {
    AttemptReport report{
        .attempt = attempt, .status = RunStatus::kCancelled, .error = {}, .cause = {}};
    const bool current = attempt.number == run.attempt;
    MUSTER_ASSIGN(const auto execution, states_.Find(attempt.execution));
    if (execution || current) report.status = StatusOf(execution);
    if (execution) {
      report.error = execution->error;
      report.cause = execution->cause;
      report.start = execution->start;
      report.stop = execution->stop;
    } else if (!current) {
      report.cause = "it was never begun";
    }
    if (plan && execution) {
      MUSTER_ASSIGN(const ExecutionLog log,
                    ReadLog(store_, attempt.execution, run.profile, plan.get()));
      const bool ended = report.status != RunStatus::kInProgress;
      report.did = MakeReport(**plan, log, Json::object(), ended);
      KeepBegun(report.did);
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

Json ToJson(const AttemptReport& report) {
  Json json{{"attempt", report.attempt.number},
            {"execution", report.attempt.execution},
            {"status", NameOf(report.status)}};
  if (report.start) json["started_at"] = FormatTimestamp(*report.start);
  if (report.stop) json["ended_at"] = FormatTimestamp(*report.stop);
  if (!report.error.empty() || !report.cause.empty())
    json["error"] = ToJson(CaughtError{report.error, report.cause});
  if (!report.attempt.again.empty()) json["done_again"] = report.attempt.again;
  return json;
}

}  // namespace muster::plan
