#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/completions.h"
#include "cli/exit_codes.h"

namespace muster::cli {

void AddCompletionsCommand(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("completions", "Print completions for a shell");
  command->group("Set up and check");
  command->footer(
      "  source <(muster completions bash)           # in ~/.bashrc\n"
      "  source <(muster completions zsh)            # in ~/.zshrc, after compinit\n"
      "  muster completions fish > ~/.config/fish/completions/muster.fish");
  auto shell = std::make_shared<std::string>();
  command->add_option("SHELL", *shell, "Which one")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([shell, &app, &context] {
    context.action = [shell, &app, &context]() -> Result<int> {
      const CommandInfo program = Describe(app);
      context.out << (*shell == "bash"  ? BashCompletions(program)
                      : *shell == "zsh" ? ZshCompletions(program)
                                        : FishCompletions(program));
      return kDone;
    };
  });
}

}  // namespace muster::cli
