#pragma once

#include <string>

#include "core/json.h"
#include "muster/runs.h"

namespace muster::plan {

// Where the states of a compiled plan leave what is read back from the history of a run: the
// compiler writes these paths, and the log of a run reads them.

// "$.results['NAME']", where a task's result goes; its error, if it has failed.
std::string ResultPathOf(const std::string& task);
// Of a task, in what its state has left; null: none.
const Json& ResultIn(const Json& data, const std::string& task);

// What a reconciliation leaves: {"failed": [], "result": COUNTS} here, or its error there.
inline constexpr char kReconcilePath[] = "$.reconcile";
inline constexpr char kUnreconciledPath[] = "$.unreconciled";
inline constexpr char kReconcileResult[] = "result";
// What it has counted, and its error; null: none.
const Json& ReconciledIn(const Json& data);
const Json& UnreconciledIn(const Json& data);

bool IsError(const Json& result);
CaughtError ErrorIn(const Json& result);

}  // namespace muster::plan
