#pragma once

#include <ostream>
#include <string>

#include "base/json.h"

namespace muster::cli {

// Seconds as people say them: "45 s", "12 min", "2 h 30 min".
std::string ForPeople(double seconds);

// Prints what `muster plan explain` found, as tables and sentences.
void PrintOutlook(std::ostream& out, const Json& outlook, bool color);

// Prints what a change makes of it: what was, and what would be.
void PrintChange(std::ostream& out, const Json& before, const Json& after, bool color);

}  // namespace muster::cli
