#pragma once

#include <string>

#include "plan/model/plan.h"

namespace muster::plan {

// The ranks of a plan and what needs what, as a picture: for Graphviz, for browsers, for terminals.
// Needs that follow from others are left out.
std::string DrawDot(const Plan& plan);
std::string DrawSvg(const Plan& plan);
std::string DrawText(const Plan& plan);

}  // namespace muster::plan
