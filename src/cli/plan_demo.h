#pragma once

#include "cli/context.h"

namespace muster::cli {

// Migrates a made-up tenant by the plan of examples/simpplr, with this program as anybody would use
// it: the first process is killed on the way, the one that resumes meets a comment on a post that
// is not there, and when that is mended the last one completes the migration. Everything is in a
// temporary folder, which stays with `keep`.
Result<int> RunPlanDemo(bool keep, Context& context);

}  // namespace muster::cli
