#pragma once

#include <ostream>

#include "base/json.h"
#include "cli/terminal.h"
#include "plan/runs.h"

namespace muster::cli {

// A migration for programs; with its report, `ranks` as well.
Json MigrationJson(const plan::RunState& run);
Json MigrationJson(const plan::RunState& run, const plan::RunReport& report);

// The same for people: how it stands, a table of its ranks, what runs and what has failed, and what
// to do next.
void PrintMigration(std::ostream& out, const plan::RunState& run, const plan::RunReport& report,
                    bool color);

Style StyleOfStatus(const std::string& status);

}  // namespace muster::cli
