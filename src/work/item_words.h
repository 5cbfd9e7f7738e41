#pragma once

#include <string>
#include <string_view>

#include "muster/work.h"

namespace muster {

// "open", "done" or "quarantined".
std::string_view ItemStateName(ItemInfo::State state);

// Why nobody works on the item, or who does; empty when it is done.
std::string WhyItem(const ItemInfo& item);

// "5 s", "12 min", "3 h".
std::string FormatSpan(milliseconds span);

}  // namespace muster
