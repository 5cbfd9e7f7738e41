#include <memory>

#include "cli/commands.h"
#include "cli/replica_context.h"

namespace muster::cli {
namespace {

std::vector<OptionUse> Uses() {
  const std::vector<std::string> target = {"pause", "resume", "reset", "rebuild", "scale",
                                           "skip",  "replay", "audit", "adopt",   "forget"};
  // A worker's call timeout is well below its takeover time.
  std::vector<std::string> timeout = target;
  timeout.emplace_back("status");
  return {{"TARGET", target},
          {"--workers", {"run"}},
          {"--name", {"run"}},
          {"--until-caught-up", {"run"}},
          {"--serve", {"run"}},
          {"--slots", {"status"}},
          {"--position", {"skip"}},
          {"--stream", {"replay", "skip"}},
          {"--version", {"replay", "skip", "audit"}},
          {"--timeout", timeout},
          {"--rollback", {"rebuild"}},
          {"--finish", {"rebuild"}}};
}

}  // namespace

Result<OpenReplica> OpenReplica::Open(const ReplicaCommandOptions& options, Context& context) {
  OpenReplica open;
  MUSTER_ASSIGN(open.file, replica::ReadReplicaFile(options.file, context.env));
  MUSTER_ASSIGN(open.store, store::OpenStore(open.file.store.value_or(context.store), context.env));
  const std::chrono::seconds timeout(options.timeout);
  open.file.event_options.call_timeout = timeout;
  MUSTER_ASSIGN(open.log,
                events::OpenEventLog(open.file.events, open.file.event_options, context.env));
  MUSTER_ASSIGN(open.model,
                replica::OpenReadModel(open.file.read_model, context.env, {.usual = timeout}));
  return open;
}

void AddReplicaCommand(Command& app, Context& context) {
  Command command = app.AddCommand(
      "replica", "Run projections of an event log in sets of workers that scale together");
  command.Group("Follow changes");
  auto options = std::make_shared<ReplicaCommandOptions>();
  command.AddOption("ACTION", options->action, "What to do")
      .Required()
      .OneOf({"run", "status", "pause", "resume", "reset", "rebuild", "scale", "skip", "replay",
              "audit", "adopt", "forget"});
  command.AddOption("FILE", options->file, "The set's YAML file").Required();
  command.AddOption("TARGET", options->target,
                    "A projection; for scale, the maximum number of workers, or all");
  command.AddOption("--workers", options->workers, "How many workers this process runs; for run")
      .TypeName("N")
      .Range(1, 256);
  command.AddOption("--name", options->name, "The name of its workers; for run").TypeName("NAME");
  command.AddFlag("--until-caught-up", options->until_caught_up,
                  "End when everything in the log has been handled or parked; for run");
  command.AddFlag("--slots", options->slots, "Show every slot; for status");
  command.AddOption("--position", options->position, "The event to skip; for skip").TypeName("N");
  command.AddOption("--stream", options->stream, "Only this stream; for replay and skip")
      .TypeName("NAME");
  command
      .AddOption("--version", options->version,
                 "The projection's version, by default the active one; for replay, skip and audit")
      .TypeName("N")
      .Range(1, 1'000'000);
  command
      .AddOption("--timeout", options->timeout,
                 "How long one call to the log or the read model may take; not for run")
      .TypeName("SECONDS")
      .Range(1, 86'400);
  command.AddFlag("--rollback", options->rollback, "Go back to the previous version; for rebuild");
  command.AddFlag("--finish", options->finish, "Drop the inactive version; for rebuild");
  AddServeOption(command, options->serve);
  command.Footer(
      "  muster replica run orders.yaml --workers 2\n"
      "  muster replica status orders.yaml\n"
      "  muster replica pause orders.yaml order-totals\n"
      "  muster replica rebuild orders.yaml order-totals\n"
      "  muster replica scale orders.yaml 3");
  command.Action(context, [command, options, &context]() -> Result<int> {
    MUSTER_TRY(command.CheckUse(options->action, Uses()));
    if (options->action == "run") return RunReplicaWorkers(*options, context);
    if (options->action == "status") return ShowReplicaStatus(*options, context);
    return OperateReplica(*options, context);
  });
}

}  // namespace muster::cli
