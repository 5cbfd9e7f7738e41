#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/pipeline.h"

namespace muster::pipeline {

// Whether a table of this name is Muster's own: of a store, an event log or read models in the
// default namespace, or what its sinks and plans keep in a target. Sources do not list these: at a
// target they would pass for a store or a log, or for the progress of its runs.
bool IsOwnTable(std::string_view name);

// Those of `names`, to be reported; without the one that every target has.
std::vector<LeftOut> OwnTablesOf(const std::vector<std::string>& names);

}  // namespace muster::pipeline
