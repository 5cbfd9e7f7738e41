#pragma once

#include <string>

#include "cli/command_tree.h"

namespace muster::cli {

// Scripts that complete commands, options and their fixed values; other arguments complete to
// files.
std::string BashCompletions(const CommandInfo& program);
std::string ZshCompletions(const CommandInfo& program);
std::string FishCompletions(const CommandInfo& program);

}  // namespace muster::cli
