#pragma once

#include <string>
#include <string_view>

#include "muster/work.h"
#include "work/run_summary.h"

namespace muster::work {

// "open", "done", "quarantined" or "unreadable".
std::string_view ItemStateName(ItemInfo::State state);

// "preparing", "running" (a worker holds an item), "waiting" (none does), "finished" or
// "unreadable".
std::string_view RunStateName(const RunInfo& run, const RunSummary& sum);

// Why no worker is active, and what to do; empty if one is, or if nothing is left to do.
std::string WhyRun(const RunInfo& run, const RunSummary& sum);

// Why the item has no holder, or who holds it; empty when done.
std::string WhyItem(const ItemInfo& item);

// "5 s", "12 min", "3 h".
std::string FormatSpan(milliseconds span);

}  // namespace muster::work
