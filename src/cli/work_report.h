#pragma once

#include <ostream>

#include "cli/table.h"
#include "core/json.h"
#include "muster/work.h"

namespace muster::cli {

// Runs and items as `muster work` shows them.

Json RunJson(const work::RunInfo& run, const work::RunTotals& totals);
Json ItemJson(const work::ItemInfo& item);

Table RunTable();
void AddRun(const work::RunInfo& run, const work::RunTotals& totals, Table& table);

// One run or item, a line for each member of its JSON; reasons of failures in a table of their own.
void PrintMembers(std::ostream& out, const Json& json,
                  const std::vector<work::FailureReason>& reasons, bool color);

}  // namespace muster::cli
