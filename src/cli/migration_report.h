#pragma once

#include <ostream>

#include "cli/terminal.h"
#include "core/json.h"
#include "muster/executors.h"
#include "muster/runs.h"

namespace muster::cli {

// Everything to report about a migration.
struct Migration {
  plan::RunState run;
  plan::RunReport report;
  std::vector<plan::AttemptReport> attempts;
  std::vector<task::SentNotification> notifications;
};

// A migration as JSON; with its report also `ranks` and `notifications`.
Json MigrationJson(const plan::RunState& run);
Json MigrationJson(const Migration& migration);

Json AttemptsJson(const std::vector<plan::AttemptReport>& attempts);

// "attempt 1: FAILED after 3s: RankFailed: …; 4 tasks done, transform/posts failed"
std::string TextOf(const plan::AttemptReport& attempt);

// "3: FAILED, CANCELLED, COMPLETED"
std::string AttemptsText(const plan::RunState& run,
                         const std::vector<plan::AttemptReport>& attempts);

// An attempt's history, event by event.
void PrintHistory(std::ostream& out, const plan::AttemptReport& attempt,
                  const std::vector<plan::RunEvent>& events, bool color);

// The status, and whether a run in progress has no process driving it.
std::string StatusText(const plan::RunState& run);

// The same for people: status, a table of ranks, running and failed tasks, undelivered
// notifications, and what to do next.
void PrintMigration(std::ostream& out, const Migration& migration, bool color);

// "attempt 1 of 3 has failed (Copy.Unavailable); the next one begins at 2026-01-01T10:00:00.000Z"
std::string RetryText(const plan::RetryReport& retry);

Style StyleOfStatus(RunStatus status);

}  // namespace muster::cli
