#pragma once

#include <string>

#include "cli/command_tree.h"

namespace muster::cli {

// What `muster --help` prints: commands by group, global options, exit codes, where to read on.
std::string ProgramHelp(const CommandInfo& program);

// What `muster COMMAND --help` prints; `full_name` is "muster COMMAND".
std::string CommandHelp(const CommandInfo& command, const std::string& full_name);

}  // namespace muster::cli
