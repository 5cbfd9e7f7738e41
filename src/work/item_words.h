#pragma once

#include <string>
#include <string_view>

#include "muster/work.h"

namespace muster {

// "open", "done", "quarantined" or "unreadable".
std::string_view ItemStateName(ItemInfo::State state);

// "preparing", "running", "finished" or "unreadable".
std::string_view RunStateName(const RunInfo& run);

// Why nobody works on the item, or who does; empty when it is done.
std::string WhyItem(const ItemInfo& item);

// "5 s", "12 min", "3 h".
std::string FormatSpan(milliseconds span);

}  // namespace muster
