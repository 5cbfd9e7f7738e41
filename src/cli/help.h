#pragma once

#include <string>

#include "cli/command_tree.h"

namespace muster::cli {

// The output of `muster --help`: commands by group, global options, exit codes, documentation.
std::string ProgramHelp(const CommandInfo& program);

// The output of `muster COMMAND --help`; `full_name` is "muster COMMAND".
std::string CommandHelp(const CommandInfo& command, const std::string& full_name);

}  // namespace muster::cli
