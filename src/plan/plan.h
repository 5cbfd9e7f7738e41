// What other modules may use of plan, beside its public headers: views of runs for the dashboard,
// and for the simulator what runs are made of.
#pragma once

#include "plan/compile/compile.h"  // IWYU pragma: export
#include "plan/model/plan_json.h"  // IWYU pragma: export
#include "plan/run/run_body.h"     // IWYU pragma: export
#include "plan/run/runs.h"         // IWYU pragma: export
