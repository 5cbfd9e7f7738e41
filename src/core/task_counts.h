#pragma once

// The counts in the results of tasks, by name: executors write them, and reconciliation and reports
// read them.
namespace muster::counts {

// Of an extract.
inline constexpr char kRows[] = "rows";          // staged
inline constexpr char kUnreadable[] = "failed";  // what the source could not give as rows
// The same of one by AppFlow, which has its own name for them.
inline constexpr char kAppFlowRecords[] = "RecordsProcessed";

// Of a transform, and of a rank's reconciliation.
inline constexpr char kRead[] = "read";
inline constexpr char kLoaded[] = "loaded";
inline constexpr char kRejected[] = "rejected";

// Of a reconciliation.
inline constexpr char kExtracted[] = "extracted";
inline constexpr char kReconciledUnreadable[] = "unreadable";
inline constexpr char kStaged[] = "staged";
inline constexpr char kForeignKeys[] = "foreign_keys";

}  // namespace muster::counts
