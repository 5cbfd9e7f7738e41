#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_tree.h"

namespace muster::cli {

// What `muster --help` prints: commands by group, global options, exit codes, where to read on.
std::string ProgramHelp(const CommandInfo& program);

// What `muster COMMAND --help` prints.
std::string CommandHelp(const CommandInfo& command);

// The candidate that `word` was most likely meant to be, if one is near enough.
std::optional<std::string> DidYouMean(std::string_view word,
                                      const std::vector<std::string>& candidates);

}  // namespace muster::cli
