#pragma once

#include <ostream>
#include <vector>

#include "core/json.h"
#include "muster/work.h"

namespace muster::cli {

// Why documents failed: how many, the reason, and one of them. Nothing if there are none.
void PrintReasons(std::ostream& out, const std::vector<work::FailureReason>& reasons, bool color);

Json ReasonsJson(const std::vector<work::FailureReason>& reasons);

Json CountsJson(const pipeline::Counts& counts);

}  // namespace muster::cli
