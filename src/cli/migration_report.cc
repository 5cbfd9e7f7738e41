#include "cli/migration_report.h"

#include <algorithm>
#include <map>
#include <utility>

#include "cli/progress.h"
#include "cli/table.h"
#include "core/secrets.h"
#include "core/timestamp.h"

namespace muster::cli {
namespace {

using plan::PartState;
using plan::Phase;
using plan::RankReport;
using plan::TaskReport;

Style StyleOf(PartState state) {
  if (state == PartState::kSucceeded) return Style::kGood;
  return state == PartState::kFailed || state == PartState::kStopped ? Style::kBad : Style::kNone;
}

std::string TextOf(const std::optional<int64_t>& count) {
  return count ? std::to_string(*count) : "";
}

// The tasks' own numbers, if nothing was reconciled.
std::string RowsOf(const RankReport& rank, Phase phase) {
  std::optional<int64_t> rows;
  for (const TaskReport& task : rank.tasks) {
    if (task.phase == phase && task.rows) rows = rows.value_or(0) + *task.rows;
  }
  return rows ? std::to_string(*rows) : "";
}

std::string UnreadableOf(const RankReport& rank) {
  const int64_t unreadable = rank.Unreadable();
  const bool known = unreadable > 0 || !RowsOf(rank, Phase::kExtract).empty();
  return known ? std::to_string(unreadable) : "";
}

std::string TimeOf(const RankReport& rank) {
  std::optional<WallTime> start;
  std::optional<WallTime> stop;
  for (const TaskReport& task : rank.tasks) {
    if (task.start) start = std::min(start.value_or(*task.start), *task.start);
    if (task.stop) stop = std::max(stop.value_or(*task.stop), *task.stop);
  }
  if (!start || !stop || *stop < *start) return "";
  using std::chrono::seconds;
  return FormatSeconds(static_cast<uint64_t>(std::chrono::ceil<seconds>(*stop - *start).count()));
}

void AddRank(Table& table, const RankReport& rank) {
  const bool reconciled = rank.reconciled.is_object();
  const plan::ReconciledCounts counts = rank.Counts();
  const auto done = std::count_if(rank.tasks.begin(), rank.tasks.end(), [](const TaskReport& task) {
    return task.state == PartState::kSucceeded;
  });
  table.AddRow({{std::to_string(rank.number)},
                {rank.name},
                {std::string(NameOf(rank.state)), StyleOf(rank.state)},
                {std::to_string(done) + "/" + std::to_string(rank.tasks.size())},
                {reconciled ? TextOf(counts.extracted) : RowsOf(rank, Phase::kExtract)},
                {UnreadableOf(rank), rank.Unreadable() > 0 ? Style::kWarn : Style::kNone},
                {TextOf(counts.staged)},
                {reconciled ? TextOf(counts.loaded) : RowsOf(rank, Phase::kTransform)},
                {TextOf(counts.rejected)},
                {TextOf(counts.foreign_keys)},
                {TimeOf(rank)}});
}

void PrintFailure(std::ostream& out, const std::string& what, const plan::FailureReport& failure) {
  out << what << ": " << failure.error << ": " << failure.cause << '\n';
  if (failure.likely.empty()) return;
  out << "  likely cause: " << failure.likely << "\n  remedy: " << failure.remedy << '\n';
}

void PrintTasks(std::ostream& out, const RankReport& rank) {
  const std::string label = "rank " + std::to_string(rank.number);
  for (const TaskReport& task : rank.tasks) {
    const std::string what =
        label + (task.phase == Phase::kExtract ? ", extract " : ", transform ") + task.name;
    if (task.failure) PrintFailure(out, what, *task.failure);
    if (task.retry) {
      out << what << ": " << RetryText(*task.retry) << ": " << task.retry->why.cause << '\n';
    } else if (task.state == PartState::kRunning) {
      out << what << ": running"
          << (task.waits_for.empty() ? "" : ", waits for " + Redact(task.waits_for)) << '\n';
    }
  }
  if (rank.failure) PrintFailure(out, label + ", reconciliation", *rank.failure);
}

void PrintUnreadable(std::ostream& out, const plan::RunReport& report) {
  for (const RankReport& rank : report.ranks) {
    for (const TaskReport& task : rank.tasks) {
      // A failed extraction's error already says so.
      if (task.unreadable == 0 || task.failure) continue;
      out << task.unreadable << (task.unreadable == 1 ? " row of " : " rows of ") << task.name
          << " could not be read: see unreadable/" << task.name << ".jsonl in the staging folder\n";
    }
  }
}

// For a repeated transform that had more rows before. Only a count by key could find out how many
// of those are left in the target.
void PrintFewerRows(std::ostream& out, const std::vector<plan::AttemptReport>& attempts) {
  std::map<std::string, std::pair<int64_t, int64_t>> most;  // rows, and the attempt that had them
  for (const plan::AttemptReport& attempt : attempts) {
    for (const RankReport& rank : attempt.did.ranks) {
      for (const TaskReport& task : rank.tasks) {
        if (task.phase != Phase::kTransform || task.state != PartState::kSucceeded || !task.rows)
          continue;
        const int64_t number = attempt.attempt.number;
        const auto [found, is_first] = most.try_emplace(task.name, *task.rows, number);
        if (is_first) continue;
        const auto [rows, earlier] = found->second;
        if (*task.rows >= rows) {
          found->second = {*task.rows, number};
        } else if (&attempt == &attempts.back()) {
          out << task.name << ": " << *task.rows << (*task.rows == 1 ? " row" : " rows")
              << ", after " << rows << " in attempt " << earlier
              << ": rows that are gone from the source may still be in the target, since a load "
                 "replaces rows by key and deletes none\n";
        }
      }
    }
  }
}

Json TaskJson(const RankReport& rank, const TaskReport& task) {
  Json json{{"rank", rank.number},
            {"phase", NameOf(task.phase)},
            {"task", task.name},
            {"status", NameOf(task.state)}};
  if (task.rows) json["rows"] = *task.rows;
  if (task.failure)
    json["error"] = ToJson(plan::CaughtError{task.failure->error, task.failure->cause});
  return json;
}

}  // namespace

std::string RetryText(const plan::RetryReport& retry) {
  return "attempt " + std::to_string(retry.failed) + " of " + std::to_string(retry.of) +
         " has failed (" + retry.why.error + "); the next one begins at " +
         FormatTimestamp(retry.next);
}

Style StyleOfStatus(RunStatus status) {
  if (status == RunStatus::kCompleted) return Style::kGood;
  return status == RunStatus::kInProgress ? Style::kNone : Style::kBad;
}

Json MigrationJson(const plan::RunState& run) {
  Json json{{"tenant_id", run.Input("tenantId")},
            {"migration_id", run.Input("migrationId")},
            {"status", NameOf(run.status)},
            {"started_at", FormatTimestamp(run.FirstStart())}};
  if (run.stop) json["completed_at"] = FormatTimestamp(*run.stop);
  json["environment"] = run.Input("environment");
  json["id"] = run.id;
  json["plan"] = run.plan;
  json["path"] = run.path;
  if (!run.folder.empty()) json["folder"] = run.folder;
  json["hash"] = run.hash;
  json["profile"] = run.profile;
  json["attempt"] = run.attempt;
  json["execution"] = run.execution;
  if (run.status == RunStatus::kInProgress) json["driven"] = run.driven;
  if (!run.error.empty()) json["error"] = ToJson(plan::CaughtError{run.error, run.cause});
  if (!run.output.empty()) json["output"] = Json::parse(run.output, nullptr, false);
  return json;
}

Json AttemptsJson(const std::vector<plan::AttemptReport>& attempts) {
  Json list = Json::array();
  for (const plan::AttemptReport& attempt : attempts) {
    Json json = ToJson(attempt);
    json["tasks"] = Json::array();
    for (const RankReport& rank : attempt.did.ranks) {
      for (const TaskReport& task : rank.tasks) json["tasks"].push_back(TaskJson(rank, task));
    }
    list.push_back(std::move(json));
  }
  return list;
}

std::string TextOf(const plan::AttemptReport& attempt) {
  std::string text = "attempt " + std::to_string(attempt.attempt.number) + ": " +
                     std::string(NameOf(attempt.status));
  if (attempt.start && attempt.stop && *attempt.stop >= *attempt.start) {
    using std::chrono::seconds;
    text += " after " + FormatSeconds(static_cast<uint64_t>(
                            std::chrono::ceil<seconds>(*attempt.stop - *attempt.start).count()));
  }
  if (!attempt.error.empty() || !attempt.cause.empty()) {
    text += ": " + attempt.error + (attempt.error.empty() || attempt.cause.empty() ? "" : ": ") +
            attempt.cause;
  }
  int64_t succeeded = 0;
  std::string others;
  for (const RankReport& rank : attempt.did.ranks) {
    for (const TaskReport& task : rank.tasks) {
      if (task.state == PartState::kSucceeded) {
        ++succeeded;
        continue;
      }
      std::string state(NameOf(task.state));
      for (char& c : state) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      others += ", " + KeyOf(task.phase, task.name) + " " + state;
    }
  }
  if (!attempt.did.ranks.empty())
    text +=
        "; " + std::to_string(succeeded) + (succeeded == 1 ? " task" : " tasks") + " done" + others;
  for (const std::string& task : attempt.attempt.again)
    text += (&task == &attempt.attempt.again.front() ? "; done again: " : ", ") + task;
  return text;
}

std::string AttemptsText(const plan::RunState& run,
                         const std::vector<plan::AttemptReport>& attempts) {
  std::string text = std::to_string(run.attempt);
  if (attempts.size() < 2) return text;
  text += ": ";
  constexpr size_t kMostTold = 4;
  size_t begin = 0;
  if (attempts.size() > kMostTold) begin = attempts.size() - kMostTold;
  if (begin > 0) text += "…, ";
  for (size_t i = begin; i < attempts.size(); ++i)
    text.append(i == begin ? "" : ", ").append(NameOf(attempts[i].status));
  return text;
}

void PrintHistory(std::ostream& out, const plan::AttemptReport& attempt,
                  const std::vector<plan::RunEvent>& events, bool color) {
  out << Redact(TextOf(attempt)) << '\n';
  Table table({{"TIME"}, {"STATE"}, {"EVENT"}, {"ERROR"}});
  for (const plan::RunEvent& event : events) {
    if (event.state.empty() && event.error.empty()) continue;
    table.AddRow({{FormatTimestamp(event.time)}, {event.state}, {event.type}, {event.error}});
  }
  table.Print(out, color);
}

std::string StatusText(const plan::RunState& run) {
  const bool left = run.status == RunStatus::kInProgress && !run.driven;
  return std::string(NameOf(run.status)) + (left ? " (no process is driving it)" : "");
}

Json MigrationJson(const Migration& migration) {
  Json json = MigrationJson(migration.run);
  json["ranks"] = ToJson(migration.report);
  json["attempts"] = AttemptsJson(migration.attempts);
  json["notifications"] = Json::array();
  for (const task::SentNotification& sent : migration.notifications) {
    Json one{{"target", Redact(sent.target)},
             {"subject", sent.subject},
             {"dedupe", sent.dedupe},
             {"delivered", sent.delivered}};
    if (!sent.error.empty()) one["error"] = sent.error;
    json["notifications"].push_back(std::move(one));
  }
  return json;
}

void PrintMigration(std::ostream& out, const Migration& migration, bool color) {
  const plan::RunState& run = migration.run;
  const plan::RunReport& report = migration.report;
  out << run.id << ": " << Styled(NameOf(run.status), StyleOfStatus(run.status), color)
      << (run.attempt > 1 ? ", attempt " + std::to_string(run.attempt) : "");
  if (run.status == RunStatus::kInProgress && !run.driven)
    out << " (no process is driving it; resume with 'muster resume " << run.id << "')";
  out << '\n';
  constexpr auto kRight = Table::Align::kRight;
  constexpr auto kLess = Table::Importance::kLess;
  Table table({{"RANK", kRight},
               {"NAME"},
               {"STATUS"},
               {"TASKS", kRight},
               {"EXTRACTED", kRight},
               {"UNREADABLE", kRight},
               {"STAGED", kRight, kLess},
               {"LOADED", kRight},
               {"REJECTED", kRight},
               {"KEYS CHECKED", kRight, kLess},
               {"TIME", kRight}});
  for (const RankReport& rank : report.ranks) AddRank(table, rank);
  if (!report.ranks.empty()) table.Print(out, color);
  for (const RankReport& rank : report.ranks) PrintTasks(out, rank);
  if (!run.error.empty()) out << run.error << ": " << run.cause << '\n';
  for (const task::SentNotification& sent : migration.notifications) {
    if (sent.delivered) continue;
    out << "not delivered yet to " << Redact(sent.target) << ": '" << sent.subject << "'"
        << (sent.error.empty() ? "" : ": " + sent.error) << '\n';
  }
  PrintUnreadable(out, report);
  PrintFewerRows(out, migration.attempts);
  for (const plan::AttemptReport& attempt : migration.attempts) {
    if (migration.attempts.size() > 1) out << Redact(TextOf(attempt)) << '\n';
  }
  if (run.status == RunStatus::kFailed || run.status == RunStatus::kCancelled)
    out << "'muster resume " << run.id << "' reruns what did not succeed\n";
}

}  // namespace muster::cli
