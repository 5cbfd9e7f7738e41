#include <memory>

#include "cli/commands.h"
#include "cli/completions.h"
#include "cli/exit_codes.h"

namespace muster::cli {

void AddCompletionsCommand(Command& app, Context& context) {
  Command command = app.AddCommand("completions", "Print completions for a shell");
  command.Group("Operate");
  command.Footer(
      "  source <(muster completions bash)           # in ~/.bashrc\n"
      "  source <(muster completions zsh)            # in ~/.zshrc, after compinit\n"
      "  muster completions fish > ~/.config/fish/completions/muster.fish");
  auto shell = std::make_shared<std::string>();
  command.AddOption("SHELL", *shell, "The shell").Required().OneOf({"bash", "zsh", "fish"});
  command.Action(context, [shell, &app, &context]() -> Result<int> {
    const CommandInfo program = app.Describe();
    context.out << (*shell == "bash"  ? BashCompletions(program)
                    : *shell == "zsh" ? ZshCompletions(program)
                                      : FishCompletions(program));
    return kDone;
  });
}

}  // namespace muster::cli
