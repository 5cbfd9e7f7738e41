#pragma once

#include "cli/context.h"

namespace muster::cli {

// Migrates a generated tenant with the plan of examples/simpplr, running this program as a user
// would: the first process is killed halfway, the one that resumes finds a comment on a missing
// post, and once that is fixed the last one completes the migration. Everything is in a temporary
// folder, kept with `keep`.
Result<int> RunPlanDemo(bool keep, Context& context);

}  // namespace muster::cli
