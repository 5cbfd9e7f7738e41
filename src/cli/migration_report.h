#pragma once

#include <ostream>

#include "base/json.h"
#include "cli/terminal.h"
#include "plan/runs.h"
#include "task/outbox.h"

namespace muster::cli {

// Everything that there is to say of a migration.
struct Migration {
  plan::RunState run;
  plan::RunReport report;
  std::vector<plan::AttemptReport> attempts;
  std::vector<task::Letter> letters;  // what people were to be told
};

// A migration for programs; with its report, `ranks` and `notifications` as well.
Json MigrationJson(const plan::RunState& run);
Json MigrationJson(const Migration& migration);

Json AttemptsJson(const std::vector<plan::AttemptReport>& attempts);

// "attempt 1: FAILED after 3s: RankFailed: …; 4 tasks done, transform/posts failed"
std::string TextOf(const plan::AttemptReport& attempt);

// "3: FAILED, CANCELLED, COMPLETED"
std::string AttemptsText(const plan::RunState& run,
                         const std::vector<plan::AttemptReport>& attempts);

// What an attempt did, event by event.
void PrintHistory(std::ostream& out, const plan::AttemptReport& attempt, const Json& history,
                  bool color);

// The status, and whether no process drives a run that is in progress.
std::string StatusText(const plan::RunState& run);

// The same for people: how it stands, a table of its ranks, what runs and what has failed, who
// could not be told, and what to do next.
void PrintMigration(std::ostream& out, const Migration& migration, bool color);

// "attempt 1 of 3 has failed (Copy.Unavailable); the next one begins at 2026-01-01T10:00:00.000Z"
std::string RetryText(const plan::RetryReport& retry);

Style StyleOfStatus(RunStatus status);

}  // namespace muster::cli
