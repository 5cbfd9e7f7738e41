#include "cli/cli.h"

#include <unistd.h>

#include <optional>
#include <string_view>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "core/log.h"
#include "core/secrets.h"
#include "core/url.h"

namespace muster::cli {
namespace {

struct GlobalNames {
  std::string progress = "auto";
  std::string color = "auto";
  std::string log_level = "warning";
  std::string log_format = "text";
};

void AddCommands(Command& app, Context& context) {
  AddMigrateCommand(app, context);
  AddWorkerCommand(app, context);
  AddWorkCommand(app, context);
  AddVerifyCommand(app, context);
  AddMetadataCommand(app, context);
  AddSnapshotCommand(app, context);
  AddPlanCommand(app, context);
  AddRunCommands(app, context);
  AddStatesCommand(app, context);
  AddEventsCommand(app, context);
  AddReplicaCommand(app, context);
  AddServeCommand(app, context);
  AddDoctorCommand(app, context);
  AddCompletionsCommand(app, context);
  AddDemoCommand(app, context);
  AddSimCommand(app, context);
}

void AddGlobalOptions(Command& app, Context& context, GlobalNames& names) {
  app.AddOption("--store", context.store,
                "Where work is coordinated: sqlite:PATH, postgresql://USER@HOST/DB, "
                "opensearch+https://HOST, dynamodb://REGION/TABLE or memory:; "
                "default $MUSTER_STORE, else sqlite:muster.db")
      .Env("MUSTER_STORE")
      .TypeName("URL");
  app.AddFlag("--json", context.json, "Print results and errors as JSON");
  app.AddOption("--progress", names.progress, "How to show progress on stderr")
      .OneOf({"auto", "tty", "plain", "json", "none"});
  app.AddOption("--color", names.color, "When to use colours; auto obeys NO_COLOR")
      .OneOf({"auto", "always", "never"});
  app.AddOption("--log-level", names.log_level, "What to log on stderr")
      .OneOf({"debug", "info", "warning", "error", "off"});
  app.AddOption("--log-format", names.log_format, "How to log it").OneOf({"text", "json"});
}

Status ApplyGlobalOptions(Context& context, const GlobalNames& names) {
  MUSTER_ASSIGN(Level level, ParseLevel(names.log_level));
  SetLogging(level, names.log_format == "json" ? LogFormat::kJson : LogFormat::kText);
  MUSTER_ASSIGN(context.progress, ParseProgressMode(names.progress, IsTerminal(STDERR_FILENO)));
  context.color = WantsColor(names.color, STDOUT_FILENO);
  return {};
}

// A plain-text password is rejected later, but no message may repeat it until then.
void RememberPasswords(std::string_view argument) {
  if (size_t equals = argument.find('='); argument.starts_with("--") && equals != argument.npos) {
    argument.remove_prefix(equals + 1);
  }
  auto url = ParseUrl(argument);
  if (!url) return;
  if (!IsSecretReference(url->password)) RememberSecret(url->password);
  RememberSecret(url->Param("password").value_or(""));
}

Result<int> ParseAndRun(int argc, const char* const* argv, Context& context) {
  Program program("muster", "Muster moves data from one system to another, and keeps it moving.",
                  "muster " MUSTER_VERSION);
  GlobalNames names;
  program.Footer(
      "  muster doctor --store sqlite:work.db\n"
      "  muster doctor --store 'postgresql://me:${env:PGPASSWORD}@db/app' --json\n"
      "  source <(muster completions bash)");
  AddGlobalOptions(program, context, names);
  AddCommands(program, context);
  MUSTER_ASSIGN(const std::optional<std::string> text, program.Parse(argc, argv));
  if (text) {
    context.out << *text;
    return kDone;
  }
  if (!context.action) {
    context.err << program.Help();
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
    // Set before parsing the rest, so that usage errors are JSON too.
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
