#include "cli/run_report.h"

#include "cli/exit_codes.h"
#include "cli/migration_report.h"
#include "cli/table.h"
#include "core/json.h"
#include "core/timestamp.h"
#include "muster/executors.h"

namespace muster::cli {

using plan::RunState;

Result<int> ReportRun(plan::RunEngine& runs, const RunState& run, store::Store& store,
                      Context& context) {
  Migration migration{.run = run, .report = {}, .attempts = {}, .notifications = {}};
  MUSTER_ASSIGN(migration.report, runs.Report(run));
  MUSTER_ASSIGN(migration.attempts, runs.Attempts(run, true));
  MUSTER_ASSIGN(migration.notifications, task::ReadNotifications(store, run.id, context.env));
  if (context.json) {
    context.out << ToJsonText(MigrationJson(migration)) << '\n';
  } else {
    PrintMigration(context.out, migration, context.color);
  }
  if (run.status == RunStatus::kFailed || run.status == RunStatus::kCancelled) return kFailed;
  return run.status == RunStatus::kCompleted && migration.report.Unreadable() > 0 ? kDoneWithRejects
                                                                                  : kDone;
}

void SayCompleted(plan::RunEngine& runs, const std::string& id, const plan::ResumeOptions& now,
                  Context& context) {
  context.err << "migration '" << id << "' is completed";
  // On an error, the plan is missing or invalid.
  const auto changed = runs.Repeats(id, now);
  if (!changed || changed->empty()) {
    context.err << "; 'muster retry " << id << " --rank N' repeats a part of it\n";
    return;
  }
  std::string tasks;
  for (const std::string& task : *changed) tasks += (tasks.empty() ? "" : ", ") + task;
  const std::string& first = changed->front();
  context.err << ", but its plan or scripts have changed since: 'muster retry " << id << " --task "
              << first.substr(first.find('/') + 1) << " --accept-changes' runs again " << tasks
              << '\n';
}

Result<int> ShowHistory(plan::RunEngine& runs, const RunState& run, Context& context) {
  MUSTER_ASSIGN(const auto attempts, runs.Attempts(run, true));
  Json all = Json::array();
  for (const plan::AttemptReport& attempt : attempts) {
    MUSTER_ASSIGN(const std::vector<plan::RunEvent> events, runs.Events(attempt.attempt));
    if (!context.json) {
      PrintHistory(context.out, attempt, events, context.color);
      continue;
    }
    for (const plan::RunEvent& event : events) {
      all.push_back(event.json);
      all.back()["attempt"] = attempt.attempt.number;
    }
  }
  if (context.json) context.out << ToJsonText(all) << '\n';
  return kDone;
}

Result<int> ListRuns(plan::RunEngine& runs, int limit, Context& context) {
  MUSTER_ASSIGN(const auto listed, runs.List("", limit));
  Json list = Json::array();
  Table table({{"MIGRATION"},
               {"TENANT"},
               {"ENVIRONMENT", Table::Align::kLeft, Table::Importance::kLess},
               {"PLAN"},
               {"STATUS"},
               {"ATTEMPTS"},
               {"STARTED"}});
  int exit_code = kDone;
  for (const RunState& run : listed) {
    if (run.status == RunStatus::kUnreadable) {
      list.push_back(
          {{"migration_id", run.id}, {"status", NameOf(run.status)}, {"cause", run.cause}});
      exit_code = kFailed;
      table.AddRow({{run.id},
                    {""},
                    {""},
                    {""},
                    {std::string(NameOf(run.status)), StyleOfStatus(run.status)},
                    {""},
                    {""}});
      context.err << run.cause << '\n';
      continue;
    }
    MUSTER_ASSIGN(const auto attempts, runs.Attempts(run, false));
    list.push_back(MigrationJson(run));
    list.back()["attempts"] = AttemptsJson(attempts);
    table.AddRow({{run.id},
                  {run.Input("tenantId")},
                  {run.Input("environment")},
                  {run.plan},
                  {StatusText(run), StyleOfStatus(run.status)},
                  {AttemptsText(run, attempts)},
                  {FormatTimestamp(run.FirstStart())}});
  }
  PrintList(table, list, context);
  return exit_code;
}

}  // namespace muster::cli
