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
  std::vector<task::Letter> letters;  // what people were to be told
};

// A migration for programs; with its report, `ranks` and `notifications` as well.
Json MigrationJson(const plan::RunState& run);
Json MigrationJson(const Migration& migration);

// The same for people: how it stands, a table of its ranks, what runs and what has failed, who
// could not be told, and what to do next.
void PrintMigration(std::ostream& out, const Migration& migration, bool color);

// "attempt 1 of 3 has failed (Copy.Unavailable); the next one begins at 2026-01-01T10:00:00.000Z"
std::string RetryText(const plan::RetryReport& retry);

Style StyleOfStatus(const std::string& status);

}  // namespace muster::cli
