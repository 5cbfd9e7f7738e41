#include "plan/run/run_report.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/enum_names.h"
#include "core/json_fields.h"
#include "core/timestamp.h"
#include "plan/compile/history_states.h"
#include "plan/explain/troubleshooting.h"
#include "plan/model/data_flow.h"

namespace muster::plan {
namespace {

std::optional<int64_t> RowsOf(const Json& result) {
  const auto number = [&](const char* field) -> std::optional<int64_t> {
    const Json& value = MemberIn(result, field);
    return value.is_number_integer() ? std::optional(value.get<int64_t>()) : std::nullopt;
  };
  if (const auto loaded = number("loaded")) return *loaded + number("rejected").value_or(0);
  if (const auto rows = number("rows")) return rows;
  return number("RecordsProcessed");
}

FailureReport FailureOf(const Json& result) {
  FailureReport failure;
  failure.error = TextIn(result, "Error");
  failure.cause = TextIn(result, "Cause");
  if (auto remedy = RemedyFor(failure.error, failure.cause)) {
    failure.likely = std::move(remedy->likely);
    failure.remedy = std::move(remedy->remedy);
  }
  return failure;
}

Json ResultIn(const Json& data, const std::string& task) {
  return MemberIn(MemberIn(data, "results"), task);
}

// Goes through a history once, and knows which state speaks of which task.
class ReportMaker {
 public:
  ReportMaker(const Plan& plan, const StateTable& states, const Json& done) : plan_(plan) {
    for (const Rank& rank : plan.ranks) {
      if (rank.external) continue;
      report_.ranks.push_back({.number = rank.number, .name = rank.name});
      RankReport& made = report_.ranks.back();
      for (const Reference& object : rank.extract)
        AddTask(made, Phase::kExtract, object.name, done);
      for (const Reference& script : rank.transform)
        AddTask(made, Phase::kTransform, script.name, done);
      made.reconciled = MemberIn(done, ReconcileKey(rank.number));
    }
    // Nothing moves from here on.
    for (const auto& [name, state] : states) Place(name, state);
  }

  RunReport Make(const Json& history, bool ended) {
    HistoryStates states;
    for (const Json& event : history) {
      const std::string type = TextIn(event, "type");
      const std::string& state = states.Of(event);
      if (type.starts_with("Task") && !type.ends_with("Exited")) {
        last_[state] = &event;
        failures_[state] += IsFailure(event) ? 1 : 0;
      }
      const auto time = ParseTimestamp(TextIn(event, "timestamp"));
      if (!time) continue;
      if (type.ends_with("StateEntered")) {
        Entered(type, MemberIn(event, "stateEnteredEventDetails"), time->ToWallTime());
      } else if (type.ends_with("StateExited")) {
        Exited(MemberIn(event, "stateExitedEventDetails"), time->ToWallTime());
      }
    }
    for (RankReport& rank : report_.ranks) Conclude(rank, ended);
    return std::move(report_);
  }

 private:
  void AddTask(RankReport& rank, Phase phase, const std::string& name, const Json& done) {
    TaskReport task{.phase = phase, .name = name};
    if (phase == Phase::kExtract) task.expected_rows = plan_.objects.at(name).rows;
    const std::string key = KeyOf(phase, name);
    if (done.contains(key)) Succeed(task, done[key]);
    rank.tasks.push_back(std::move(task));
  }

  static void Succeed(TaskReport& task, const Json& result) {
    task.state = PartState::kSucceeded;
    task.rows = RowsOf(result);
    task.unreadable = NumberIn(result, "failed");
  }

  struct Part {
    RankReport* rank = nullptr;
    TaskReport* task = nullptr;  // null: it is the rank's own
    const PlanState* state = nullptr;
  };

  // States of ranks and tasks that the plan does not have are left out.
  void Place(const std::string& name, const PlanState& state) {
    for (RankReport& rank : report_.ranks) {
      if (rank.number != state.rank) continue;
      if (!state.phase) {
        parts_[name] = {&rank, nullptr, &state};
        return;
      }
      TaskReport* task = FindTask(rank, *state.phase, state.task);
      if (task == nullptr) return;
      // One that an earlier attempt has done has only its last state.
      if (state.Begins() || (state.Ends() && task->first_state.empty())) task->first_state = name;
      parts_[name] = {&rank, task, &state};
      return;
    }
  }

  static TaskReport* FindTask(RankReport& rank, Phase phase, const std::string& name) {
    for (TaskReport& task : rank.tasks) {
      if (task.phase == phase && task.name == name) return &task;
    }
    return nullptr;
  }

  void Entered(const std::string& type, const Json& details, WallTime time) {
    const auto found = parts_.find(TextIn(details, "name"));
    if (found == parts_.end() || found->second.task == nullptr) return;
    TaskReport& task = *found->second.task;
    // What an earlier attempt has done is a Pass.
    if (found->second.state->Begins() && type.starts_with("Task")) {
      task.state = PartState::kRunning;
      if (!task.start) task.start = time;
    } else if (found->second.state->role == StateRole::kNotify) {
      task.state = PartState::kFailed;
      task.stop = time;
      const Json input = Json::parse(TextIn(details, "input"), nullptr, false);
      task.failure = FailureOf(details.contains("input") ? ResultIn(input, task.name)
                                                         : AnswerOf(task.first_state));
    }
  }

  void Exited(const Json& details, WallTime time) {
    const std::string name = TextIn(details, "name");
    const auto found = parts_.find(name);
    if (found == parts_.end()) return;
    const Part& part = found->second;
    if (part.state->role == StateRole::kRankDone) part.rank->state = PartState::kSucceeded;
    const bool reconciles = part.state->role == StateRole::kReconcile;
    if (!reconciles && (part.task == nullptr || !part.state->Ends())) return;
    const bool kept = details.contains("output");
    const Json output = Json::parse(TextIn(details, "output"), nullptr, false);
    if (reconciles) {
      Reconciled(*part.rank, kept ? output : FromAnswer(AnswerOf(name)));
    } else {
      Ended(*part.task, kept ? ResultIn(output, part.task->name) : AnswerOf(name), time);
    }
  }

  static void Ended(TaskReport& task, const Json& result, WallTime time) {
    // A failure is reported when the state that follows is entered.
    if (result.is_object() && result.contains("Error")) return;
    // What an earlier attempt has done may stand in `done` only.
    if (!result.is_null() || task.state != PartState::kSucceeded) Succeed(task, result);
    if (task.start) task.stop = time;
  }

  // What the last call of a state has answered, or {Error, Cause}; null: neither is known. A
  // history keeps no large outputs, and those of states have all that was done before in them.
  Json AnswerOf(const std::string& state) const {
    const auto last = last_.find(state);
    if (last == last_.end()) return {};
    const Json& details = DetailsOf(*last->second);
    const std::string error = TextIn(details, "error");
    if (!error.empty()) return {{"Error", error}, {"Cause", TextIn(details, "cause")}};
    if (!details.contains("output")) return {};
    return Json::parse(TextIn(details, "output"), nullptr, false);
  }

  // As the state would have left it.
  static Json FromAnswer(const Json& answer) {
    if (!answer.is_object()) return Json::object();
    if (answer.contains("Error")) return {{"unreconciled", answer}};
    return {{"reconcile", {{"result", answer}}}};
  }

  static void Reconciled(RankReport& rank, const Json& output) {
    const Json& result = MemberIn(output, "reconcile");
    if (result.contains("result")) rank.reconciled = MemberIn(result, "result");
    if (output.contains("unreconciled")) rank.failure = FailureOf(MemberIn(output, "unreconciled"));
  }

  void Conclude(RankReport& rank, bool ended) {
    bool begun = false;
    bool failed = rank.failure.has_value();
    for (TaskReport& task : rank.tasks) {
      if (task.phase == Phase::kTransform) task.expected_rows = RowsToRead(task.name, rank);
      if (ended && task.state == PartState::kRunning) task.state = PartState::kStopped;
      if (task.state == PartState::kRunning) task.retry = RetryOf(task);
      begun = begun || task.state != PartState::kWaiting;
      failed = failed || task.state == PartState::kFailed;
    }
    if (failed) {
      rank.state = PartState::kFailed;
    } else if (begun && rank.state != PartState::kSucceeded) {
      rank.state = ended ? PartState::kStopped : PartState::kRunning;
    }
  }

  static bool IsFailure(const Json& event) {
    const std::string type = TextIn(event, "type");
    return type == "TaskFailed" || type == "TaskTimedOut";
  }

  // Where the last thing that is known of a task is a failure, it waits for its next try.
  std::optional<RetryReport> RetryOf(const TaskReport& task) const {
    const auto last = last_.find(task.first_state);
    if (last == last_.end() || !IsFailure(*last->second)) return std::nullopt;
    const RetryRule& rule = task.phase == Phase::kExtract ? plan_.objects.at(task.name).rules.retry
                                                          : plan_.scripts.at(task.name).rules.retry;
    const auto at = ParseTimestamp(TextIn(*last->second, "timestamp"));
    const int64_t failed = failures_.at(task.first_state);
    if (!at || failed > rule.attempts) return std::nullopt;
    const double wait = static_cast<double>(rule.interval_s) *
                        std::pow(rule.backoff, static_cast<double>(failed - 1));
    return RetryReport{
        .failed = failed,
        .of = rule.attempts + 1,
        .next = at->ToWallTime() + std::chrono::milliseconds(static_cast<int64_t>(1'000 * wait)),
        .why = FailureOf(AnswerOf(task.first_state))};
  }

  // What the objects of a script have, or are expected to have.
  int64_t RowsToRead(const std::string& script, RankReport& made) const {
    const Rank& rank = plan_.ranks[*plan_.FindRank(made.number)];
    int64_t rows = 0;
    for (const std::string& object : plan_.ReadBy(plan_.scripts.at(script), rank)) {
      const TaskReport* task = FindTask(made, Phase::kExtract, object);
      rows += task == nullptr ? plan_.objects.at(object).rows
                              : task->rows.value_or(task->expected_rows);
    }
    return rows;
  }

  const Plan& plan_;
  RunReport report_;
  std::map<std::string, const Json*> last_;  // events of calls, by state
  std::map<std::string, int64_t> failures_;  // of calls, by state
  std::map<std::string, Part> parts_;        // by state
};

Json FailureJson(const FailureReport& failure) {
  Json json{{"Error", failure.error}, {"Cause", failure.cause}};
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

std::string NameOf(PartState state) {
  static constexpr EnumNames<PartState, 5> kNames{{{
      {PartState::kWaiting, "WAITING"},
      {PartState::kRunning, "RUNNING"},
      {PartState::kSucceeded, "SUCCEEDED"},
      {PartState::kFailed, "FAILED"},
      {PartState::kStopped, "STOPPED"},
  }}};
  return std::string(kNames.NameOf(state));
}

int64_t RankReport::Unreadable() const {
  int64_t rows = 0;
  for (const TaskReport& task : tasks) rows += task.unreadable;
  return rows;
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

RunReport MakeReport(const Plan& plan, const StateTable& states, const Json& history,
                     const Json& done, bool ended) {
  return ReportMaker(plan, states, done).Make(history, ended);
}

Json BegunExtracts(const RunReport& report, const Json& history) {
  HistoryStates history_states;
  std::map<std::string, Json> asked;  // by state
  std::map<std::string, Json> answered;
  for (const Json& event : history) {
    const std::string type = TextIn(event, "type");
    const std::string& state = history_states.Of(event);
    if (type == "TaskStateEntered") {
      answered.erase(state);
    } else if (type == "TaskScheduled") {
      asked[state] = Json::parse(TextIn(DetailsOf(event), "parameters"), nullptr, false);
    } else if (type == "TaskSucceeded") {
      answered[state] = Json::parse(TextIn(DetailsOf(event), "output"), nullptr, false);
    }
  }
  Json begun = Json::array();
  for (const RankReport& rank : report.ranks) {
    for (const TaskReport& task : rank.tasks) {
      const auto answer = answered.find(task.first_state);
      const bool goes_on = task.state == PartState::kRunning || task.state == PartState::kStopped;
      if (task.phase != Phase::kExtract || !goes_on || answer == answered.end()) continue;
      begun.push_back({{"asked", asked[task.first_state]}, {"answered", answer->second}});
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
