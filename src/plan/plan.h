// What other modules may use of plan, beside its public headers.
#pragma once

#include "plan/compile/arrangement.h"     // IWYU pragma: export
#include "plan/compile/compile.h"         // IWYU pragma: export
#include "plan/compile/deployment.h"      // IWYU pragma: export
#include "plan/compile/profile_states.h"  // IWYU pragma: export
#include "plan/explain/explain.h"         // IWYU pragma: export
#include "plan/explain/past_runs.h"       // IWYU pragma: export
#include "plan/explain/prices.h"          // IWYU pragma: export
#include "plan/model/graph.h"             // IWYU pragma: export
#include "plan/model/order.h"             // IWYU pragma: export
#include "plan/model/plan_json.h"         // IWYU pragma: export
#include "plan/run/run_body.h"            // IWYU pragma: export
#include "plan/run/run_engine.h"          // IWYU pragma: export
#include "plan/run/run_progress.h"        // IWYU pragma: export
#include "plan/run/runs.h"                // IWYU pragma: export
