#include "serve/migration_view.h"

#include "core/mutex.h"
#include "serve/merge_patch.h"
#include "serve/offers.h"

namespace muster::serve {
namespace {

using plan::RankView;
using plan::RunState;
using plan::RunView;
using plan::TaskStatus;
using plan::TaskView;

constexpr size_t kMaxEnded = 10'000;

void PutTime(Json& json, const char* name, const std::optional<WallTime>& time) {
  if (time) json[name] = Ms(*time);
}

void PutText(Json& json, const char* name, const std::string& text) {
  if (!text.empty()) json[name] = text;
}

Json SummaryOf(const SiteStore& store, const RunState& run) {
  const auto tenant = run.inputs.find("tenantId");
  Json json{{"store", store.number},
            {"migration", run.id},
            {"tenant", tenant == run.inputs.end() ? "" : tenant->second},
            {"plan", run.plan},
            {"profile", run.profile},
            {"status", NameOf(run.status)},
            {"attempt", run.attempt},
            {"started_at", Ms(run.FirstStart())},
            {"tasks", Json::object()}};
  PutTime(json, "ended_at", run.stop);
  if (run.status == RunStatus::kInProgress) json["driven"] = run.driven;
  PutText(json, "why", WhyRun(run));
  PutText(json, "error", run.error);
  return json;
}

void AddTasks(const RunView& view, Json& json) {
  std::map<TaskStatus, int> counts;
  int total = 0;
  Json current = Json::array();
  for (const RankView& rank : view.ranks) {
    for (const TaskView& task : rank.tasks) {
      ++counts[task.status];
      ++total;
    }
    if (rank.status == TaskStatus::kRunning || rank.status == TaskStatus::kBackoff) {
      current.push_back(rank.number);
    }
  }
  json["tasks"]["total"] = total;
  for (const auto& [status, count] : counts) json["tasks"][NameOf(status)] = count;
  if (!current.empty()) json["current_ranks"] = std::move(current);
  // Rounded to seconds: otherwise every reading would be a change.
  if (view.expected_end) {
    json["expected_end_at"] = Ms(std::chrono::ceil<std::chrono::seconds>(*view.expected_end));
  }
}

Json AttemptsOf(const TaskView& task) {
  Json attempts = Json::array();
  for (const plan::TaskAttempt& attempt : task.attempts) {
    Json json{{"status", NameOf(attempt.status)}, {"started_at", Ms(attempt.start)}};
    PutTime(json, "ended_at", attempt.end);
    PutTime(json, "backoff_until_at", attempt.backoff_until);
    PutText(json, "error", attempt.failure.error);
    PutText(json, "cause", attempt.failure.cause);
    attempts.push_back(std::move(json));
  }
  return attempts;
}

Json TaskOf(const TaskView& task) {
  Json json{{"phase", NameOf(task.phase)},
            {"task", task.name},
            {"rank", task.rank},
            {"status", NameOf(task.status)},
            {"max_attempts", task.max_attempts},
            {"attempts", AttemptsOf(task)}};
  PutText(json, "why", task.why);
  if (task.earlier) json["earlier"] = true;
  if (task.critical) json["critical"] = true;
  PutTime(json, "started_at", task.start);
  PutTime(json, "ended_at", task.end);
  PutTime(json, "next_try_at", task.next_try);
  if (task.rows) json["rows"] = *task.rows;
  if (task.expected_rows > 0) json["expected_rows"] = task.expected_rows;
  if (!task.reads.empty()) json["reads"] = task.reads;
  PutText(json, "target", task.target);
  return json;
}

Json RankOf(const RankView& rank) {
  Json json{{"rank", rank.number},
            {"needs", rank.needs},
            {"status", NameOf(rank.status)},
            {"tasks", Json::object()}};
  PutText(json, "name", rank.name);
  PutText(json, "group", rank.group);
  if (rank.external) json["external"] = true;
  PutText(json, "why", rank.why);
  PutTime(json, "started_at", rank.start);
  PutTime(json, "ended_at", rank.end);
  if (!rank.reconciled.is_null()) json["reconciled"] = rank.reconciled;
  if (rank.progress) {
    json["rows"] = rank.progress->rows;
    json["expected_rows"] = rank.progress->expected_rows;
    json["rows_per_second"] = rank.progress->rows_per_s;
    if (rank.progress->left_s) json["left_ms"] = static_cast<int64_t>(*rank.progress->left_s * 1e3);
  }
  for (const TaskView& task : rank.tasks) AppendMember(json["tasks"], task.Key(), TaskOf(task));
  return json;
}

Json RunActions(const SiteStore& store, const RunState& run, const Json& retry_body,
                const std::string& why_no_retry) {
  const bool runs = run.status == RunStatus::kInProgress;
  return {{"retry", Offer(ApiPath("stores", store.number, "migrations", run.id, "retry"),
                          retry_body, why_no_retry)},
          {"cancel",
           Offer(ApiPath("stores", store.number, "migrations", run.id, "cancel"), Json::object(),
                 runs ? "" : "the run has ended: " + std::string(NameOf(run.status)))}};
}

std::string WhyNoRetry(const RunState& run) {
  if (run.status == RunStatus::kCompleted) return "it is completed: nothing is left to retry";
  if (run.status == RunStatus::kInProgress && run.driven) return "it runs";
  return "";
}

// What an attempt began, and what became of it.
Json RunAttemptOf(const plan::AttemptReport& report) {
  Json json{{"attempt", report.attempt.number},
            {"status", NameOf(report.status)},
            {"done_again", report.attempt.again},
            {"tasks", Json::array()}};
  PutTime(json, "started_at", report.start);
  PutTime(json, "ended_at", report.stop);
  PutText(json, "error", report.error);
  PutText(json, "cause", report.cause);
  for (const plan::RankReport& rank : report.did.ranks) {
    for (const plan::TaskReport& task : rank.tasks) {
      Json did{{"phase", NameOf(task.phase)},
               {"task", task.name},
               {"rank", rank.number},
               {"status", NameOf(task.state)}};
      if (task.rows) did["rows"] = *task.rows;
      if (task.failure) did["error"] = task.failure->error;
      json["tasks"].push_back(std::move(did));
    }
  }
  return json;
}

}  // namespace

std::string WhyRun(const RunState& run) {
  if (run.status == RunStatus::kUnreadable) return run.cause;
  if (run.status == RunStatus::kFailed) {
    return "failed: " + run.error + (run.cause.empty() ? "" : ": " + run.cause) +
           "; a retry does what did not succeed";
  }
  if (run.status == RunStatus::kCancelled) return "cancelled; a retry continues it";
  if (run.status == RunStatus::kInProgress && !run.driven) {
    return "no process is driving it; a retry continues it";
  }
  return "";
}

Result<bool> MigrationViews::AddSummaries(const SiteStore& store, Json& into) {
  MUSTER_ASSIGN(const std::vector<RunState> runs, store.runs->List("", store::kMaxBatch));
  for (const RunState& run : runs) {
    const std::string key = store.number + "/" + run.id;
    const bool ended = run.stop.has_value();
    const std::string version = store.number + "/" + run.execution;
    if (ended) {
      const MutexLock lock(mutex_);
      if (const auto found = ended_.find(version); found != ended_.end()) {
        AppendMember(into, key, found->second);
        continue;
      }
    }
    Json summary = SummaryOf(store, run);
    if (const auto view = store.runs->View(run.id)) AddTasks(*view, summary);
    if (ended) {
      const MutexLock lock(mutex_);
      if (ended_.size() > kMaxEnded) ended_.clear();
      ended_[version] = summary;
    }
    AppendMember(into, key, std::move(summary));
  }
  return runs.size() == static_cast<size_t>(store::kMaxBatch);
}

Result<Json> MigrationViews::One(const SiteStore& store, const std::string& id) {
  MUSTER_ASSIGN(const RunState run, store.runs->Find(id));
  Json json = SummaryOf(store, run);
  json["path"] = run.path;
  json["hash"] = run.hash;
  json["inputs"] = run.inputs;
  json["execution"] = run.execution;
  PutText(json, "cause", run.cause);
  json["ranks"] = Json::object();
  json["critical_path"] = Json::array();
  const auto view = store.runs->View(id);
  if (view) {
    AddTasks(*view, json);
    for (const RankView& rank : view->ranks) {
      AppendMember(json["ranks"], std::to_string(rank.number), RankOf(rank));
    }
    json["critical_path"] = view->critical_path;
  } else {
    json["why_no_ranks"] = view.error().ToString();
  }
  json["attempts"] = Json::array();
  MUSTER_ASSIGN(const auto attempts, store.runs->Attempts(run, true));
  for (const plan::AttemptReport& attempt : attempts)
    json["attempts"].push_back(RunAttemptOf(attempt));
  json["commands"] = {CommandLine("Show it", CommandOn(store, "status " + Quoted(id))),
                      CommandLine("Show its history", CommandOn(store, "history " + Quoted(id))),
                      CommandLine("Continue it", CommandOn(store, "resume " + Quoted(id))),
                      CommandLine("End it", CommandOn(store, "cancel " + Quoted(id)))};
  json["actions"] = RunActions(store, run, Json::object(), WhyNoRetry(run));
  return json;
}

Result<Json> MigrationViews::Task(const SiteStore& store, const std::string& id, plan::Phase phase,
                                  const std::string& name) {
  MUSTER_ASSIGN(const RunView view, store.runs->View(id));
  const TaskView* task = view.Find(phase, name);
  if (task == nullptr) {
    return Error{Code::kNotFound, "migration '" + id + "' has no task '" + name + "' to " +
                                      std::string(NameOf(phase))};
  }
  Json json = TaskOf(*task);
  json["store"] = store.number;
  json["migration"] = id;
  PutText(json, "input", task->input);
  PutText(json, "output", task->output);
  if (!task->attempts.empty() && task->status != TaskStatus::kSucceeded) {
    PutText(json, "error", task->attempts.back().failure.error);
    PutText(json, "cause", task->attempts.back().failure.cause);
  }
  if (task->failure) {
    PutText(json, "likely_cause", task->failure->likely);
    PutText(json, "remedy", task->failure->remedy);
  }
  json["log"] = Json::array();
  for (const plan::TaskLogLine& line : task->log) {
    json["log"].push_back(
        {{"at", Ms(line.at)}, {"level", NameOf(line.level)}, {"text", line.text}});
  }
  json["commands"] = {
      CommandLine("Repeat it, and what did not succeed",
                  CommandOn(store, "retry " + Quoted(id) + " --task " + Quoted(name))),
      CommandLine("Show the history of the run", CommandOn(store, "history " + Quoted(id)))};
  const bool runs = view.run.status == RunStatus::kInProgress && view.run.driven;
  json["actions"] =
      RunActions(store, view.run, {{"task", name}}, runs ? "the run has not ended" : "");
  return json;
}

}  // namespace muster::serve
