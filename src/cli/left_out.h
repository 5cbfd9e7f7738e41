#pragma once

#include <ostream>
#include <vector>

#include "core/json.h"
#include "muster/migrate.h"

namespace muster::cli {

// What the source leaves out although the patterns include it. A failure is logged, and does not
// stop the migration.
std::vector<pipeline::LeftOut> LeftOutOf(pipeline::Source& source,
                                         const pipeline::CollectionFilter& allowed);

// "Left out: a, b (hidden: …)", a line for each reason.
void PrintLeftOut(std::ostream& out, const std::vector<pipeline::LeftOut>& left_out);

// Adds it to a report, if there is any.
void AddLeftOut(const std::vector<pipeline::LeftOut>& left_out, Json& report);

}  // namespace muster::cli
