#include "cli/help.h"

#include <algorithm>

#include "cli/terminal.h"

namespace muster::cli {
namespace {

constexpr size_t kTextColumn = 28;
constexpr size_t kLineColumns = 80;

constexpr std::string_view kExitCodes = R"(
Exit codes:
  0    done
  1    failed
  2    invalid input: an option, a file, a plan or a definition
  3    nothing to do, or changes are pending
  4    done, with rejected documents or objects
  5    the store, or another system, cannot be reached or used
  75   failed, and safe to run again unchanged
  130  interrupted
)";

std::string Join(const std::vector<std::string>& words, std::string_view separator) {
  std::string joined;
  for (const std::string& word : words) {
    if (!joined.empty()) joined += separator;
    joined += word;
  }
  return joined;
}

// "  --option ARG             description, wrapped and aligned"
std::string Entry(const std::string& term, const std::string& description) {
  std::string text = "  " + term;
  size_t column = DisplayWidth(text);
  if (column + 2 > kTextColumn) {
    text += "\n";
    column = 0;
  }
  text += std::string(kTextColumn - column, ' ');
  column = kTextColumn;
  for (size_t start = 0; start < description.size();) {
    size_t end = std::min(description.find(' ', start), description.size());
    std::string word = description.substr(start, end - start);
    if (column > kTextColumn && column + 1 + DisplayWidth(word) > kLineColumns) {
      text += "\n" + std::string(kTextColumn, ' ');
      column = kTextColumn;
    } else if (column > kTextColumn) {
      text += " ";
      ++column;
    }
    text += word;
    column += DisplayWidth(word);
    start = end + 1;
  }
  return text + "\n";
}

std::string OptionEntry(const OptionInfo& option) {
  std::string term = Join(option.names, ", ");
  if (option.positional()) {
    std::string choices = option.choices.empty() ? "" : ": " + Join(option.choices, ", ");
    return Entry(term, option.description + choices);
  }
  // Long names are aligned whether or not there is a short one.
  if (option.names.front().starts_with("--")) term = "    " + term;
  if (!option.choices.empty()) {
    term += " " + Join(option.choices, "|");
  } else if (!option.argument.empty()) {
    term += " " + option.argument;
  }
  return Entry(term, option.description);
}

std::string Examples(const CommandInfo& command) {
  return command.footer.empty() ? "" : "\nExamples:\n" + command.footer + "\n";
}

}  // namespace

std::string ProgramHelp(const CommandInfo& program) {
  std::string text = program.description + "\n\nUsage: " + program.name + " COMMAND [OPTIONS]\n";
  std::vector<std::string> groups;
  for (const CommandInfo& command : program.commands) {
    if (std::find(groups.begin(), groups.end(), command.group) == groups.end()) {
      groups.push_back(command.group);
    }
  }
  for (const std::string& group : groups) {
    text += "\n" + group + ":\n";
    for (const CommandInfo& command : program.commands) {
      if (command.group == group) text += Entry(command.name, command.description);
    }
  }
  text += "\nGlobal options, before or after the command:\n";
  for (const OptionInfo& option : program.options) text += OptionEntry(option);
  text += Examples(program) + std::string(kExitCodes);
  return text + "\n'" + program.name +
         " COMMAND --help' shows the help of a command. The guide is in docs/guide.\n";
}

std::string CommandHelp(const CommandInfo& command, const std::string& full_name) {
  std::string usage = full_name;
  std::string commands;
  for (const CommandInfo& one : command.commands) commands += Entry(one.name, one.description);
  std::string positionals;
  std::string options;
  for (const OptionInfo& option : command.options) {
    if (option.positional()) {
      const std::string& name = option.names.front();
      usage += option.optional ? " [" + name + "]" : " " + name;
      positionals += OptionEntry(option);
    } else {
      options += OptionEntry(option);
    }
  }
  if (!commands.empty()) usage += command.needs_command ? " COMMAND" : " [COMMAND]";
  std::string text = command.description + "\n\nUsage: " + usage + " [OPTIONS]\n";
  if (!commands.empty()) text += "\nCommands:\n" + commands;
  if (!positionals.empty()) text += "\nArguments:\n" + positionals;
  text += "\nOptions:\n" + options + Examples(command);
  if (!commands.empty())
    text += "\n'" + full_name + " COMMAND --help' shows the help of a command.";
  return text + "\n'muster --help' lists the global options and the exit codes.\n";
}

}  // namespace muster::cli
