#pragma once

#include <string>

#include "core/json.h"
#include "muster/runs.h"

namespace muster::plan {

// Where the states of a compiled plan leave what is later read from a run's history: written by the
// compiler, read by the run log.

// "$.results['NAME']", where a task's result goes, or its error.
std::string ResultPathOf(const std::string& task);
// A task's result in the output of its state; null: none.
const Json& ResultIn(const Json& data, const std::string& task);

// A reconciliation leaves {"failed": [], "result": COUNTS} here, or its error there.
inline constexpr char kReconcilePath[] = "$.reconcile";
inline constexpr char kUnreconciledPath[] = "$.unreconciled";
inline constexpr char kReconcileResult[] = "result";
// Its counts, and its error; null: none.
const Json& ReconciledIn(const Json& data);
const Json& UnreconciledIn(const Json& data);

bool IsError(const Json& result);
CaughtError ErrorIn(const Json& result);

}  // namespace muster::plan
