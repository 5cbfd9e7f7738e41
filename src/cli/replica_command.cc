#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/replica_context.h"

namespace muster::cli {

Result<OpenReplica> OpenReplica::Open(const ReplicaCommandOptions& options, Context& context) {
  OpenReplica open;
  MUSTER_ASSIGN(open.file, ReadReplicaFile(options.file));
  MUSTER_ASSIGN(open.store, OpenStore(open.file.store.value_or(context.store), context.env));
  MUSTER_ASSIGN(open.log, OpenEventLog(open.file.events, context.env, open.file.event_options));
  MUSTER_ASSIGN(open.model, OpenReadModel(open.file.read_model, context.env));
  return open;
}

void AddReplicaCommand(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "replica", "Run projections of an event log in sets of workers that scale together");
  command->group("Keep data moving");
  auto options = std::make_shared<ReplicaCommandOptions>();
  command->add_option("ACTION", options->action, "What to do")
      ->required()
      ->check(CLI::IsMember({"run", "status", "pause", "resume", "reset", "rebuild", "scale",
                             "skip", "replay", "audit", "forget"}));
  command->add_option("FILE", options->file, "The set's YAML file")->required();
  command->add_option("TARGET", options->target,
                      "A projection; for scale, how many workers may have a part, or all");
  command->add_option("--workers", options->workers, "How many workers this process runs; for run")
      ->type_name("N")
      ->check(CLI::Range(1, 256));
  command->add_option("--name", options->name, "What its workers are called; for run")
      ->type_name("NAME");
  command->add_flag("--until-caught-up", options->until_caught_up,
                    "End when everything in the log has been handled or parked; for run");
  command->add_flag("--slots", options->slots, "Show every slot; for status");
  command->add_option("--position", options->position, "Which event to leave out; for skip")
      ->type_name("N");
  command->add_option("--stream", options->stream, "Only this stream; for replay")
      ->type_name("NAME");
  command->add_flag("--rollback", options->rollback, "Back to the version before; for rebuild");
  command->add_flag("--finish", options->finish,
                    "Drop the version that is not active; for rebuild");
  AddServeOption(*command, options->serve);
  command->footer(
      "  muster replica run orders.yaml --workers 2\n"
      "  muster replica status orders.yaml\n"
      "  muster replica pause orders.yaml order-totals\n"
      "  muster replica rebuild orders.yaml order-totals\n"
      "  muster replica scale orders.yaml 3");
  command->callback([options, &context] {
    context.action = [options, &context]() -> Result<int> {
      if (options->action == "run") return RunReplicaWorkers(*options, context);
      if (options->action == "status") return ShowReplicaStatus(*options, context);
      return OperateReplica(*options, context);
    };
  });
}

}  // namespace muster::cli
