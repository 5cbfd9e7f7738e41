#pragma once

#include <string>
#include <vector>

namespace muster::cli {

// The command line as data, read from the parser itself: what help and completions say is
// what the parser takes.
struct OptionInfo {
  std::vector<std::string> names;  // "-h", "--help"; a positional has its bare name
  std::string argument;            // what it takes: "URL"; empty: nothing
  std::vector<std::string> choices;
  std::string description;

  bool positional() const { return names.front()[0] != '-'; }
};

struct CommandInfo {
  std::string name;
  std::string description;
  std::string group;
  std::string footer;  // examples
  std::vector<OptionInfo> options;
  std::vector<CommandInfo> commands;
  bool needs_command = false;  // it is nothing without one of these
};

}  // namespace muster::cli
