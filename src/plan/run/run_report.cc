#include "plan/run/run_report.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/json_fields.h"
#include "core/number.h"
#include "core/task_counts.h"
#include "core/timestamp.h"
#include "plan/explain/troubleshooting.h"
#include "plan/model/data_flow.h"

namespace muster::plan {
namespace {

std::optional<int64_t> CountIn(const Json& counts, std::string_view field) {
  const Json& value = MemberIn(counts, field);
  return value.is_number_integer() ? std::optional(value.get<int64_t>()) : std::nullopt;
}

// "2 rows of A cannot be read, …"
int64_t UnreadableIn(std::string_view cause) {
  return ParseNumber<int64_t>(cause.substr(0, cause.find(' '))).value_or(0);
}

std::optional<int64_t> RowsOf(const Json& result) {
  if (const auto loaded = CountIn(result, counts::kLoaded))
    return *loaded + CountIn(result, counts::kRejected).value_or(0);
  if (const auto rows = CountIn(result, counts::kRows)) return rows;
  return CountIn(result, counts::kAppFlowRecords);
}

FailureReport FailureOf(const CaughtError& error) {
  FailureReport failure;
  failure.error = error.error;
  failure.cause = error.cause;
  if (auto remedy = RemedyFor(failure.error, failure.cause)) {
    failure.likely = std::move(remedy->likely);
    failure.remedy = std::move(remedy->remedy);
  }
  return failure;
}

class ReportMaker {
 public:
  ReportMaker(const Plan& plan, const ExecutionLog& log, const Json& done, bool ended)
      : plan_(plan), log_(log), done_(done), ended_(ended) {}

  RunReport Make() const {
    RunReport report;
    for (const Rank& rank : plan_.ranks) {
      if (!rank.external) report.ranks.push_back(ReportOf(rank));
    }
    return report;
  }

 private:
  RankReport ReportOf(const Rank& rank) const {
    RankReport made{.number = rank.number, .name = rank.name};
    for (const Reference& object : rank.extract)
      made.tasks.push_back(ReportOf(rank, Phase::kExtract, object.name));
    for (const Reference& script : rank.transform)
      made.tasks.push_back(ReportOf(rank, Phase::kTransform, script.name));
    for (TaskReport& task : made.tasks) {
      task.expected_rows = task.phase == Phase::kExtract ? plan_.objects.at(task.name).rows
                                                         : RowsToRead(task.name, rank, made);
    }
    made.reconciled = MemberIn(done_, ReconcileKey(rank.number));
    const RankLog* log = log_.Find(rank.number);
    if (log != nullptr && !log->reconciled.is_null()) made.reconciled = log->reconciled;
    if (log != nullptr && log->unreconciled) made.failure = FailureOf(*log->unreconciled);
    made.state = StateOf(made, log != nullptr && log->done);
    return made;
  }

  TaskReport ReportOf(const Rank& rank, Phase phase, const std::string& name) const {
    TaskReport task{.phase = phase, .name = name};
    if (const Json& earlier = MemberIn(done_, KeyOf(phase, name)); !earlier.is_null())
      Succeed(task, earlier);
    if (const TaskLog* log = log_.Find(rank.number, phase, name)) Apply(*log, task);
    return task;
  }

  void Apply(const TaskLog& log, TaskReport& task) const {
    task.first_state = log.first_state;
    if (log.state == PartState::kWaiting) return;
    // A result from an earlier attempt may only be in `done`.
    if (log.state == PartState::kSucceeded && !log.result.is_null()) Succeed(task, log.result);
    task.state = ended_ && log.state == PartState::kRunning ? PartState::kStopped : log.state;
    task.start = log.start;
    task.stop = log.stop;
    if (log.failure) {
      task.failure = FailureOf(*log.failure);
      // Its cause begins with their number: a failure has no other result.
      if (log.failure->error == "Copy.Unreadable")
        task.unreadable = UnreadableIn(log.failure->cause);
    }
    if (task.state == PartState::kRunning) task.retry = RetryOf(log, task);
  }

  static void Succeed(TaskReport& task, const Json& result) {
    task.state = PartState::kSucceeded;
    task.rows = RowsOf(result);
    task.unreadable = NumberIn(result, counts::kUnreadable);
  }

  PartState StateOf(const RankReport& rank, bool done) const {
    bool begun = false;
    bool failed = rank.failure.has_value();
    for (const TaskReport& task : rank.tasks) {
      begun = begun || task.state != PartState::kWaiting;
      failed = failed || task.state == PartState::kFailed;
    }
    if (failed) return PartState::kFailed;
    if (done) return PartState::kSucceeded;
    if (!begun) return PartState::kWaiting;
    return ended_ ? PartState::kStopped : PartState::kRunning;
  }

  // A task whose last event is a failure waits for its next attempt.
  std::optional<RetryReport> RetryOf(const TaskLog& log, const TaskReport& task) const {
    const RetryRule& rule = task.phase == Phase::kExtract ? plan_.objects.at(task.name).rules.retry
                                                          : plan_.scripts.at(task.name).rules.retry;
    if (!log.failed_at || log.failed_calls > rule.attempts) return std::nullopt;
    const double wait = static_cast<double>(rule.interval_s) *
                        std::pow(rule.backoff, static_cast<double>(log.failed_calls - 1));
    return RetryReport{
        .failed = log.failed_calls,
        .of = rule.attempts + 1,
        .next = *log.failed_at + std::chrono::milliseconds(static_cast<int64_t>(1'000 * wait)),
        .why = FailureOf(log.attempts.empty() ? CaughtError() : log.attempts.back().failure)};
  }

  // The actual or expected rows of the objects that a script reads.
  int64_t RowsToRead(const std::string& script, const Rank& rank, const RankReport& made) const {
    int64_t rows = 0;
    for (const std::string& object : plan_.ReadBy(plan_.scripts.at(script), rank)) {
      const auto task = std::find_if(made.tasks.begin(), made.tasks.end(), [&](const auto& one) {
        return one.phase == Phase::kExtract && one.name == object;
      });
      rows += task == made.tasks.end() ? plan_.objects.at(object).rows
                                       : task->rows.value_or(task->expected_rows);
    }
    return rows;
  }

  const Plan& plan_;
  const ExecutionLog& log_;
  const Json& done_;
  const bool ended_;
};

Json FailureJson(const FailureReport& failure) {
  Json json = ToJson(CaughtError{failure.error, failure.cause});
  if (!failure.likely.empty()) {
    json["likely_cause"] = failure.likely;
    json["remedy"] = failure.remedy;
  }
  return json;
}

Json TaskJson(const TaskReport& task) {
  Json json{{"task", task.name}, {"phase", NameOf(task.phase)}, {"status", NameOf(task.state)}};
  if (task.rows) json["rows"] = *task.rows;
  if (task.rows && task.phase == Phase::kExtract) json["unreadable"] = task.unreadable;
  if (task.start) json["started_at"] = FormatTimestamp(*task.start);
  if (task.start && task.stop)
    json["seconds"] = std::chrono::duration<double>(*task.stop - *task.start).count();
  if (task.failure) json["error"] = FailureJson(*task.failure);
  if (!task.waits_for.empty()) json["waits_for"] = task.waits_for;
  if (task.retry) {
    json["retry"] = {{"attempt", task.retry->failed + 1},
                     {"of", task.retry->of},
                     {"at", FormatTimestamp(task.retry->next)},
                     {"error", FailureJson(task.retry->why)}};
  }
  return json;
}

}  // namespace

int64_t RankReport::Unreadable() const {
  int64_t rows = 0;
  for (const TaskReport& task : tasks) rows += task.unreadable;
  return rows;
}

ReconciledCounts RankReport::Counts() const {
  return {.extracted = CountIn(reconciled, counts::kExtracted),
          .staged = CountIn(reconciled, counts::kStaged),
          .loaded = CountIn(reconciled, counts::kLoaded),
          .rejected = CountIn(reconciled, counts::kRejected),
          .foreign_keys = CountIn(reconciled, counts::kForeignKeys)};
}

int64_t RunReport::Unreadable() const {
  int64_t rows = 0;
  for (const RankReport& rank : ranks) rows += rank.Unreadable();
  return rows;
}

void SetWaits(RunReport& report, const std::map<std::string, std::string>& waits) {
  for (RankReport& rank : report.ranks) {
    for (TaskReport& task : rank.tasks) {
      const auto found = waits.find(task.first_state);
      if (found != waits.end() && task.state == PartState::kRunning) task.waits_for = found->second;
    }
  }
}

void KeepBegun(RunReport& report) {
  for (RankReport& rank : report.ranks)
    std::erase_if(rank.tasks, [](const TaskReport& task) { return !task.start; });
  std::erase_if(report.ranks, [](const RankReport& rank) { return rank.tasks.empty(); });
}

RunReport MakeReport(const Plan& plan, const ExecutionLog& log, const Json& done, bool ended) {
  return ReportMaker(plan, log, done, ended).Make();
}

Json BegunExtracts(const RunReport& report, const ExecutionLog& log) {
  Json begun = Json::array();
  for (const RankReport& rank : report.ranks) {
    for (const TaskReport& task : rank.tasks) {
      const TaskLog* did = log.Find(rank.number, task.phase, task.name);
      const bool goes_on = task.state == PartState::kRunning || task.state == PartState::kStopped;
      if (task.phase != Phase::kExtract || !goes_on || did == nullptr || !did->answered) continue;
      begun.push_back({{"asked", did->asked ? *did->asked : Json()}, {"answered", *did->answered}});
    }
  }
  return begun;
}

Json ToJson(const RunReport& report) {
  Json ranks = Json::array();
  for (const RankReport& rank : report.ranks) {
    Json tasks = Json::array();
    for (const TaskReport& task : rank.tasks) tasks.push_back(TaskJson(task));
    Json json{{"rank", rank.number},
              {"name", rank.name},
              {"status", NameOf(rank.state)},
              {"unreadable", rank.Unreadable()},
              {"reconciled", rank.reconciled}};
    if (rank.failure) json["error"] = FailureJson(*rank.failure);
    json["tasks"] = std::move(tasks);
    ranks.push_back(std::move(json));
  }
  return ranks;
}

}  // namespace muster::plan
