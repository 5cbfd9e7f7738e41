#pragma once

#include <ostream>
#include <string>

#include "core/json.h"

namespace muster::cli {

// Seconds for display: "45 s", "12 min", "2 h 30 min".
std::string ForPeople(double seconds);

// Prints the result of `muster plan explain` as tables and sentences.
void PrintOutlook(std::ostream& out, const Json& outlook, bool color);

// Prints a change: before and after.
void PrintChange(std::ostream& out, const Json& before, const Json& after, bool color);

}  // namespace muster::cli
