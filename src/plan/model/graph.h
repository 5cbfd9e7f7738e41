#pragma once

#include <string>

#include "plan/model/plan.h"

namespace muster::plan {

// The ranks of a plan and their needs as a picture: for Graphviz, browsers or terminals. Transitive
// needs are left out.
std::string DrawDot(const Plan& plan);
std::string DrawSvg(const Plan& plan);
std::string DrawText(const Plan& plan);

}  // namespace muster::plan
