#pragma once

#include <string>
#include <vector>

namespace muster::cli {

// The command line as data, taken from the parser: help and completions match what is accepted.
struct OptionInfo {
  std::vector<std::string> names;  // "-h", "--help"; a positional has its bare name
  std::string argument;            // its value's name: "URL"; empty: none
  std::vector<std::string> choices;
  std::string description;
  bool optional = false;  // of a positional

  bool positional() const { return names.front()[0] != '-'; }
};

struct CommandInfo {
  std::string name;
  std::string description;
  std::string group;
  std::string footer;  // examples
  std::vector<OptionInfo> options;
  std::vector<CommandInfo> commands;
  bool needs_command = false;  // requires one of these
};

}  // namespace muster::cli
