#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "muster/pipeline.h"

namespace muster::pipeline {

// Whether a table of this name is Muster's own: of a store, an event log or read models in the
// default namespace, or what its sinks and plans keep in a target. Sources do not list these: at a
// target they would pass for a store or a log, or for the progress of its runs.
bool IsOwnTable(std::string_view name);

// Muster's own tables among `names`, all tables of a schema or file: by their names, and those of a
// store, an event log or read models in any namespace by their layout. `columns_of` is asked only
// for tables whose names could be those of one.
using ColumnsOf = std::function<Result<std::vector<std::string>>(const std::string& table)>;
Result<std::set<std::string>> OwnTablesAmong(const std::vector<std::string>& names,
                                             const ColumnsOf& columns_of);

// Own tables, to be reported; without the one that every target has.
std::vector<LeftOut> ReportOwnTables(const std::set<std::string>& own);

}  // namespace muster::pipeline
