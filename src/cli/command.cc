#include "cli/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>

#include "cli/context.h"
#include "cli/help.h"
#include "core/suggest.h"

namespace muster::cli {
namespace {

std::optional<double> NumberIn(const std::string& text) {
  double number = 0;
  if (!CLI::detail::lexical_cast(text, number) || !std::isfinite(number)) return std::nullopt;
  return number;
}

// CLI11's own messages print bounds in full and lists in braces.
template <class Number>
void CheckRange(CLI::Option& option, Number first, Number last) {
  option.check([first, last](const std::string& text) {
    Number number{};
    if (CLI::detail::lexical_cast(text, number) && number >= first && number <= last) {
      return std::string();
    }
    std::ostringstream what;
    what << "'" << text << "' is not a number from " << first << " to " << last;
    return what.str();
  });
}

OptionInfo DescribeOption(const CLI::Option& option) {
  OptionInfo info;
  for (const std::string& name : option.get_snames()) info.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) info.names.push_back("--" + name);
  if (option.get_positional()) info.names = {option.get_name(true, false)};
  info.description = option.get_description();
  info.optional = !option.get_required();
  if (option.get_items_expected_max() == 0) return info;
  // CLI11 appends the description of OneOf to the type: "TEXT:{auto,always,never}".
  std::string type = option.get_type_name();
  size_t open = type.find('{');
  size_t close = type.find('}');
  info.argument = type.substr(0, type.find(':'));
  if (open != type.npos && close != type.npos && open < close) {
    info.choices = CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
  }
  return info;
}

CommandInfo DescribeApp(const CLI::App& app) {
  CommandInfo info{
      app.get_name(), app.get_description(), app.get_group(), app.get_footer(), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden, in CLI11
    info.options.push_back(DescribeOption(*option));
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    info.commands.push_back(DescribeApp(*command));
  }
  info.needs_command = app.get_require_subcommand_min() > 0;
  return info;
}

// As it is typed: "muster work list".
std::string FullName(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : FullName(*parent) + " " + app.get_name();
}

// The innermost command that was named.
const CLI::App& Chosen(const CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  return chosen.empty() ? app : Chosen(*chosen.front());
}

// Explains the first unexpected argument.
Error Unexpected(const CLI::App& app) {
  const std::string word = app.remaining(true).front();
  const CLI::App& chosen = Chosen(app);
  const CommandInfo command = DescribeApp(chosen);
  std::vector<std::string> candidates;
  std::string what = "unexpected argument '" + word + "'";
  if (word.starts_with('-')) {
    what = "unknown option '" + word + "'";
    // Options of the parent commands are accepted too.
    for (const CLI::App* at = &chosen; at != nullptr; at = at->get_parent()) {
      for (const OptionInfo& option : DescribeApp(*at).options) {
        if (!option.positional()) candidates.push_back(option.names.back());
      }
    }
  } else if (&chosen == &app || command.needs_command) {
    what = "unknown command '" + word + "'";
    for (const CommandInfo& one : command.commands) candidates.push_back(one.name);
  }
  auto near = DidYouMean(word.substr(0, word.find('=')), candidates);
  return Error{Code::kInvalid, what,
               near ? "did you mean '" + *near + "'?" : "see '" + FullName(chosen) + " --help'"};
}

// A command that requires a subcommand.
Error Incomplete(const CLI::App& command) {
  std::string names;
  for (const CommandInfo& one : DescribeApp(command).commands) {
    names += (names.empty() ? "" : ", ") + one.name;
  }
  const std::string name = FullName(command);
  return Error{Code::kInvalid, "'" + name + "' needs a command: " + names,
               "'" + name + " --help' describes them"};
}

Error UsageError(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& chosen = Chosen(app);
  const bool lacks_command = &chosen != &app && chosen.get_require_subcommand_min() > 0;
  const bool extras = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  const bool required = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if ((extras || (required && lacks_command)) && !app.remaining(true).empty()) {
    return Unexpected(app);
  }
  if (required && lacks_command) return Incomplete(chosen);
  std::string hint = "see '" + FullName(chosen) + " --help'";
  if (&chosen != &app) hint += " and '" + app.get_name() + " --help'";
  // CLI11 does not name hidden options.
  std::string what = error.what();
  if (what.starts_with(": ")) what.erase(0, 2);
  return Error{Code::kInvalid, what, hint};
}

}  // namespace

Option Option::Required() {
  option_->required();
  return *this;
}

Option Option::Hidden() {
  option_->group("");
  return *this;
}

Option Option::TypeName(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Option Option::Env(const std::string& variable) {
  option_->envname(variable);
  return *this;
}

Option Option::OneValuePerUse() {
  option_->allow_extra_args(false);
  return *this;
}

Option Option::Excludes(Option other) {
  option_->excludes(other.option_);
  return *this;
}

Option Option::OneOf(const std::vector<std::string>& choices) {
  const auto is_one = [choices](const std::string& text) -> std::string {
    if (std::find(choices.begin(), choices.end(), text) != choices.end()) return {};
    return "'" + text + "' is not one of " + CLI::detail::join(choices, ", ");
  };
  // DescribeOption reads the choices from the description, as in CLI::IsMember.
  option_->check(is_one, "{" + CLI::detail::join(choices, ",") + "}");
  return *this;
}

Option Option::Range(int first, int last) {
  CheckRange(*option_, first, last);
  return *this;
}

Option Option::Range(size_t first, size_t last) {
  CheckRange(*option_, first, last);
  return *this;
}

Option Option::Range(double first, double last) {
  CheckRange(*option_, first, last);
  return *this;
}

Option Option::NonNegative() {
  option_->check([](const std::string& text) {
    const auto number = NumberIn(text);
    return number && *number >= 0 ? "" : "'" + text + "' is not a non-negative number";
  });
  return *this;
}

Option Option::Positive() {
  option_->check([](const std::string& text) {
    const auto number = NumberIn(text);
    return number && *number > 0 ? "" : "'" + text + "' is not a positive number";
  });
  return *this;
}

Option Option::Bytes() {
  option_->transform(CLI::Validator(
      [](std::string& text) -> std::string {
        const std::string given = text;
        try {
          if (CLI::AsSizeValue(false)(text).empty()) return {};
        } catch (const CLI::ValidationError&) {  // it throws instead of returning its message
        }
        return "'" + given + "' is not a size, such as 8MiB";
      },
      ""));
  return *this;
}

Command Command::AddCommand(const std::string& name, const std::string& description) {
  CLI::App* command = app_->add_subcommand(name, description);
  command->footer("");  // CLI11 inherits footers
  return Command(command);
}

Option Command::AddOption(const std::string& name, std::string& value,
                          const std::string& description) {
  return Option(app_->add_option(name, value, description));
}

Option Command::AddOption(const std::string& name, int& value, const std::string& description) {
  return Option(app_->add_option(name, value, description));
}

Option Command::AddOption(const std::string& name, int64_t& value, const std::string& description) {
  return Option(app_->add_option(name, value, description));
}

Option Command::AddOption(const std::string& name, double& value, const std::string& description) {
  return Option(app_->add_option(name, value, description));
}

Option Command::AddOption(const std::string& name, std::optional<int>& value,
                          const std::string& description) {
  return Option(app_->add_option(name, value, description));
}

Option Command::AddOption(const std::string& name, std::optional<int64_t>& value,
                          const std::string& description) {
  return Option(app_->add_option(name, value, description));
}

Option Command::AddOption(const std::string& name, std::optional<uint64_t>& value,
                          const std::string& description) {
  return Option(app_->add_option(name, value, description));
}

Option Command::AddOption(const std::string& name, std::vector<std::string>& values,
                          const std::string& description) {
  return Option(app_->add_option(name, values, description));
}

Option Command::AddFlag(const std::string& name, bool& value, const std::string& description) {
  return Option(app_->add_flag(name, value, description));
}

void Command::Group(const std::string& name) { app_->group(name); }
void Command::Footer(const std::string& text) { app_->footer(text); }
void Command::RequireCommand() { app_->require_subcommand(1); }

void Command::Action(Context& context, std::function<Result<int>()> action) {
  app_->callback([app = app_, &context, action = std::move(action)] {
    if (app->get_subcommands().empty()) context.action = action;
  });
}

bool Command::Given(const std::string& option) const { return app_->count(option) > 0; }

Status Command::CheckUse(const std::string& action, const std::vector<OptionUse>& uses) const {
  for (const auto& [option, actions] : uses) {
    if (!Given(option)) continue;
    if (std::find(actions.begin(), actions.end(), action) != actions.end()) continue;
    std::string names;
    for (const std::string& name : actions) names += (names.empty() ? "" : ", ") + name;
    return Error{Code::kInvalid, option + " is not for " + action, "it is for: " + names};
  }
  return {};
}

CommandInfo Command::Describe() const { return DescribeApp(*app_); }

Program::Program(const std::string& name, const std::string& description,
                 const std::string& version)
    : Command(new CLI::App(description, name)), owned_(app_) {
  // Commands inherit these when added.
  app_->fallthrough();
  app_->set_help_flag("-h,--help", "Print help, also for a single command");
  app_->set_version_flag("--version", version, "Print the version");
}

Program::~Program() = default;

Result<std::optional<std::string>> Program::Parse(int argc, const char* const* argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return Help();
  } catch (const CLI::CallForVersion& version) {
    return version.what() + std::string("\n");
  } catch (const CLI::ParseError& error) {
    return UsageError(*app_, error);
  }
  return std::nullopt;
}

std::string Program::Help() const {
  const CLI::App* shown = app_;
  while (!shown->get_subcommands().empty()) shown = shown->get_subcommands().front();
  const CommandInfo info = DescribeApp(*shown);
  return shown == app_ ? ProgramHelp(info) : CommandHelp(info, FullName(*shown));
}

}  // namespace muster::cli
