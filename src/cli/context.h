#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "cli/progress.h"
#include "muster/env.h"
#include "muster/result.h"

namespace muster::cli {

// Passed to every command: the environment and the global options. Lives until the program ends.
struct Context {
  Env& env;
  std::ostream& out;  // results, for people or, with `json`, for programs
  std::ostream& err;  // progress and errors

  std::string store = "sqlite:muster.db";
  bool json = false;
  bool color = false;  // on `out`
  ProgressMode progress = ProgressMode::kNone;

  // Set by the named command. Its value is the exit code; an error is printed, and its code
  // determines the exit code.
  std::function<Result<int>()> action = {};
};

}  // namespace muster::cli
