#include "cli/cli.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <string_view>

#include "base/log.h"
#include "base/secrets.h"
#include "base/suggest.h"
#include "base/url.h"
#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/help.h"
#include "cli/report.h"
#include "cli/terminal.h"

namespace muster::cli {
namespace {

struct GlobalNames {
  std::string progress = "auto";
  std::string color = "auto";
  std::string log_level = "warning";
  std::string log_format = "text";
};

void AddCommands(CLI::App& app, Context& context) {
  AddMigrateCommand(app, context);
  AddPlanCommand(app, context);
  AddRunCommands(app, context);
  AddWorkerCommand(app, context);
  AddWorkCommand(app, context);
  AddServeCommand(app, context);
  AddDemoCommand(app, context);
  AddDoctorCommand(app, context);
  AddEventsCommand(app, context);
  AddReplicaCommand(app, context);
  AddSimCommand(app, context);
  AddVerifyCommand(app, context);
  AddSnapshotCommand(app, context);
  AddStatesCommand(app, context);
  AddCompletionsCommand(app, context);
}

void AddGlobalOptions(CLI::App& app, Context& context, GlobalNames& names) {
  app.set_help_flag("-h,--help", "Print help, also of a command");
  app.set_version_flag("--version", "muster " MUSTER_VERSION, "Print the version");
  app.add_option("--store", context.store,
                 "Where work is coordinated: sqlite:PATH, postgresql://USER@HOST/DB or memory:; "
                 "default $MUSTER_STORE, else sqlite:muster.db")
      ->envname("MUSTER_STORE")
      ->type_name("URL");
  app.add_flag("--json", context.json, "Print results and errors as JSON");
  app.add_option("--progress", names.progress, "How to show progress on stderr")
      ->check(CLI::IsMember({"auto", "tty", "plain", "json", "none"}));
  app.add_option("--color", names.color, "When to use colours; auto obeys NO_COLOR")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  app.add_option("--log-level", names.log_level, "What to log on stderr")
      ->check(CLI::IsMember({"debug", "info", "warning", "error", "off"}));
  app.add_option("--log-format", names.log_format, "How to log it")
      ->check(CLI::IsMember({"text", "json"}));
}

Status ApplyGlobalOptions(Context& context, const GlobalNames& names) {
  MUSTER_ASSIGN(Level level, ParseLevel(names.log_level));
  SetLogging(level, names.log_format == "json" ? LogFormat::kJson : LogFormat::kText);
  MUSTER_ASSIGN(context.progress, ParseProgressMode(names.progress, IsTerminal(STDERR_FILENO)));
  context.color = WantsColor(names.color, STDOUT_FILENO);
  return {};
}

// A password in the clear is refused later, but must not be repeated by any message until then.
void RememberPasswords(std::string_view argument) {
  if (size_t equals = argument.find('='); argument.starts_with("--") && equals != argument.npos) {
    argument.remove_prefix(equals + 1);
  }
  auto url = ParseUrl(argument);
  if (!url) return;
  if (!IsSecretReference(url->password)) RememberSecret(url->password);
  RememberSecret(url->Param("password").value_or(""));
}

// Says what was wrong with the first argument that nobody wanted.
Error Unexpected(const CLI::App& app) {
  const std::string word = app.remaining(true).front();
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  CommandInfo program = Describe(app);
  std::vector<std::string> candidates;
  std::string what = "unexpected argument '" + word + "'";
  if (word.starts_with('-')) {
    what = "unknown option '" + word + "'";
    for (const CLI::App* command : chosen) {
      for (OptionInfo& option : Describe(*command).options) program.options.push_back(option);
    }
    for (const OptionInfo& option : program.options) {
      if (!option.positional()) candidates.push_back(option.names.back());
    }
  } else if (chosen.empty()) {
    what = "unknown command '" + word + "'";
    for (const CommandInfo& command : program.commands) candidates.push_back(command.name);
  }
  auto near = DidYouMean(word.substr(0, word.find('=')), candidates);
  const std::string help =
      "muster " + (chosen.empty() ? "" : chosen[0]->get_name() + " ") + "--help";
  return Error{Code::kInvalid, what,
               near ? "did you mean '" + *near + "'?" : "'" + help + "' lists what there is"};
}

Error UsageError(const CLI::App& app, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !app.remaining(true).empty()) {
    return Unexpected(app);
  }
  std::string hint = "see 'muster --help'";
  for (const CLI::App* command : app.get_subcommands()) {
    hint = "see 'muster " + command->get_name() + " --help' and 'muster --help'";
  }
  return Error{Code::kInvalid, error.what(), hint};
}

Result<int> ParseAndRun(int argc, const char* const* argv, Context& context) {
  CLI::App app("Muster moves data from one system to another, and keeps it moving.", "muster");
  GlobalNames names;
  app.formatter_fn([](const CLI::App* shown, const std::string&, CLI::AppFormatMode) {
    CommandInfo info = Describe(*shown);
    return shown->get_parent() == nullptr ? ProgramHelp(info) : CommandHelp(info);
  });
  app.fallthrough();
  app.footer(
      "  muster doctor --store sqlite:work.db\n"
      "  muster doctor --store 'postgresql://me:${env:PGPASSWORD}@db/app' --json\n"
      "  source <(muster completions bash)");
  AddGlobalOptions(app, context, names);
  AddCommands(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    context.out << app.help();
    return kDone;
  } catch (const CLI::CallForVersion& version) {
    context.out << version.what() << '\n';
    return kDone;
  } catch (const CLI::ParseError& error) {
    return UsageError(app, error);
  }
  if (!context.action) {
    context.err << app.help();
    return kUsage;
  }
  MUSTER_TRY(ApplyGlobalOptions(context, names));
  return context.action();
}

Result<int> RunGuarded(int argc, const char* const* argv, Context& context) {
  try {
    return ParseAndRun(argc, argv, context);
  } catch (const std::exception& error) {
    return Error{Code::kInternal, std::string("unexpected error: ") + error.what(),
                 "this is a bug: report it with the command that showed it"};
  }
}

}  // namespace

int RunCli(int argc, const char* const* argv, std::ostream& out, std::ostream& err, Env& env) {
  Context context{env, out, err};
  for (int i = 1; i < argc; ++i) {
    RememberPasswords(argv[i]);
    // Known before the rest is understood, so that errors of usage are JSON as well.
    if (std::string_view(argv[i]) == "--json") context.json = true;
  }
  Result<int> code = RunGuarded(argc, argv, context);
  out.flush();
  if (code && !out) {
    code = Error{Code::kFull, "cannot write the output", "check where it is redirected to"};
  }
  if (code) return *code;
  ReportError(err, code.error(), context.json);
  return ExitCodeFor(code.error().code);
}

}  // namespace muster::cli
