#pragma once

#include <ostream>

#include "muster/env.h"

namespace muster::cli {

// The whole program: parses the command line, runs the command, reports failures. Returns the exit
// code. `out` and `err` are stdout and stderr.
int RunCli(int argc, const char* const* argv, std::ostream& out, std::ostream& err, Env& env);

}  // namespace muster::cli
