#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_tree.h"
#include "muster/result.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace muster::cli {

struct Context;

// The command-line parser, on top of CLI11; only command.cc includes that, since it takes many
// seconds to compile.

// An option or argument of a command. A handle: valid as long as its program. Each function changes
// the option and returns it, for chaining.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option Required();
  // Omitted from help and completions.
  Option Hidden();
  // Its value's name in help: "URL".
  Option TypeName(const std::string& name);
  // The environment variable to use if the option is not given.
  Option Env(const std::string& variable);
  // For a list: one value per use; the option can be repeated.
  Option OneValuePerUse();
  // Mutually exclusive with `other`.
  Option Excludes(Option other);

  // Other values are rejected.
  Option OneOf(const std::vector<std::string>& choices);
  Option Range(int first, int last);
  Option Range(size_t first, size_t last);
  Option Range(double first, double last);
  Option NonNegative();
  Option Positive();
  // Accepts units too: "8 MiB". A Range that follows is in bytes.
  Option Bytes();

 private:
  CLI::Option* option_;
};

// An option or argument that only some of a command's actions have.
struct OptionUse {
  std::string option;
  std::vector<std::string> actions;
};

// A command with its options and subcommands. A handle: valid as long as its program.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  Command AddCommand(const std::string& name, const std::string& description);

  // An option if `name` starts with "--", else the next argument. `value` is unchanged if the
  // option is not given; it must live as long as the program.
  Option AddOption(const std::string& name, std::string& value,
                   const std::string& description = "");
  Option AddOption(const std::string& name, int& value, const std::string& description);
  Option AddOption(const std::string& name, int64_t& value, const std::string& description);
  Option AddOption(const std::string& name, double& value, const std::string& description);
  Option AddOption(const std::string& name, std::optional<int>& value,
                   const std::string& description);
  Option AddOption(const std::string& name, std::optional<int64_t>& value,
                   const std::string& description);
  Option AddOption(const std::string& name, std::optional<uint64_t>& value,
                   const std::string& description);
  Option AddOption(const std::string& name, std::vector<std::string>& values,
                   const std::string& description);
  Option AddFlag(const std::string& name, bool& value, const std::string& description);

  // The command's heading in the program's help.
  void Group(const std::string& name);
  // Examples, at the end of its help.
  void Footer(const std::string& text);
  // Requires a subcommand.
  void RequireCommand();
  // Sets `context.action` if this command, and no subcommand, was named.
  void Action(Context& context, std::function<Result<int>()> action);

  // Whether the option was given, on the command line or in the environment. For actions.
  bool Given(const std::string& option) const;
  // kInvalid: an option of `uses` was given that `action` does not have. Ignoring it would do
  // something other than requested.
  Status CheckUse(const std::string& action, const std::vector<OptionUse>& uses) const;
  CommandInfo Describe() const;

 protected:
  CLI::App* app_;
};

// The whole command line. Its own options are global: accepted before and after a command.
class Program : public Command {
 public:
  // `version` is what --version prints.
  Program(const std::string& name, const std::string& description, const std::string& version);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Sets option values and the named command's action. Returns the text to print instead of running
  // anything, for help or the version. Wrong usage is kInvalid, with a suggestion or a pointer to
  // the help.
  Result<std::optional<std::string>> Parse(int argc, const char* const* argv);

  // The help of the named command, or of the program.
  std::string Help() const;

 private:
  std::unique_ptr<CLI::App> owned_;
};

}  // namespace muster::cli
