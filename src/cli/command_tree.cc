#include "cli/command_tree.h"

#include <CLI/CLI.hpp>

namespace muster::cli {
namespace {

OptionInfo DescribeOption(const CLI::Option& option) {
  OptionInfo info;
  for (const std::string& name : option.get_snames()) info.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) info.names.push_back("--" + name);
  if (option.get_positional()) info.names = {option.get_name(true, false)};
  info.description = option.get_description();
  if (option.get_items_expected_max() == 0) return info;
  // CLI11 writes the values that IsMember allows behind the type: "TEXT:{auto,always,never}".
  std::string type = option.get_type_name();
  size_t open = type.find('{');
  size_t close = type.find('}');
  info.argument = type.substr(0, type.find(':'));
  if (open != type.npos && close != type.npos && open < close) {
    info.choices = CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
  }
  return info;
}

}  // namespace

CommandInfo Describe(const CLI::App& app) {
  CommandInfo info{
      app.get_name(), app.get_description(), app.get_group(), app.get_footer(), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // CLI11's way to hide one
    info.options.push_back(DescribeOption(*option));
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    info.commands.push_back(Describe(*command));
  }
  return info;
}

}  // namespace muster::cli
