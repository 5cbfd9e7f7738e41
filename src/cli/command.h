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

// The parser of the command line. CLI11 does the work; only command.cc includes it, as it takes a
// compiler many seconds.

// An option or argument of a command. A handle: valid as long as the program that it belongs to.
// Each function changes the option and returns it, so that calls can be chained.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option Required();
  // Neither help nor completions name it.
  Option Hidden();
  // What help calls its value: "URL".
  Option TypeName(const std::string& name);
  // The environment variable that is read where the option is not given.
  Option Env(const std::string& variable);
  // Of a list: one value for each use of the option, which can be repeated.
  Option OneValuePerUse();
  // Not together with `other`.
  Option Excludes(Option other);

  // Other values are refused.
  Option OneOf(const std::vector<std::string>& choices);
  Option Range(int first, int last);
  Option Range(size_t first, size_t last);
  Option Range(double first, double last);
  Option NonNegative();
  Option Positive();
  // Takes units as well: "8 MiB". A Range that comes after it is one of bytes.
  Option Bytes();

 private:
  CLI::Option* option_;
};

// An option or argument of a command that only some of its actions have.
struct OptionUse {
  std::string option;
  std::vector<std::string> actions;
};

// A command, with its options and commands of its own. A handle: valid as long as its program.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  Command AddCommand(const std::string& name, const std::string& description);

  // An option if `name` starts with "--", else the next argument. `value` keeps what it has if the
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

  // Under which heading the program's help lists the command.
  void Group(const std::string& name);
  // Examples, at the end of its help.
  void Footer(const std::string& text);
  // It is nothing without one of its own commands.
  void RequireCommand();
  // What `context.action` becomes if this is the command that was named, and none of its own.
  void Action(Context& context, std::function<Result<int>()> action);

  // Whether the option was given, on the command line or by its environment variable. For actions.
  bool Given(const std::string& option) const;
  // kInvalid: an option of `uses` was given that `action` does not have. To ignore it would do
  // something else than was asked for.
  Status CheckUse(const std::string& action, const std::vector<OptionUse>& uses) const;
  CommandInfo Describe() const;

 protected:
  CLI::App* app_;
};

// The whole command line. Its own options are global: they are taken before and after a command.
class Program : public Command {
 public:
  // `version` is what --version prints.
  Program(const std::string& name, const std::string& description, const std::string& version);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Sets the values of options and the action of the command that was named. Returns what to print
  // instead of running anything, if help or the version was asked for. Wrong usage is kInvalid,
  // with a hint at what was meant or at the help.
  Result<std::optional<std::string>> Parse(int argc, const char* const* argv);

  // The help of the command that was named, or of the program.
  std::string Help() const;

 private:
  std::unique_ptr<CLI::App> owned_;
};

}  // namespace muster::cli
