#pragma once

#include "cli/command.h"
#include "cli/context.h"

namespace muster::cli {

// Each adds one subcommand with its options, which sets `context.action` when chosen. One file
// each.
void AddCompletionsCommand(Command& app, Context& context);
void AddDemoCommand(Command& app, Context& context);
void AddDoctorCommand(Command& app, Context& context);
void AddEventsCommand(Command& app, Context& context);
void AddMetadataCommand(Command& app, Context& context);
void AddMigrateCommand(Command& app, Context& context);
void AddPlanCommand(Command& app, Context& context);
void AddReplicaCommand(Command& app, Context& context);
void AddRunCommands(Command& app, Context& context);
void AddServeCommand(Command& app, Context& context);
void AddSimCommand(Command& app, Context& context);
void AddSnapshotCommand(Command& app, Context& context);
void AddStatesCommand(Command& app, Context& context);
void AddVerifyCommand(Command& app, Context& context);
void AddWorkCommand(Command& app, Context& context);
void AddWorkerCommand(Command& app, Context& context);

}  // namespace muster::cli
