#pragma once

#include "cli/context.h"

namespace CLI {
class App;
}

namespace muster::cli {

// Each adds one subcommand, described and with its options, which sets `context.action` when it is
// chosen. One file each.
void AddCompletionsCommand(CLI::App& app, Context& context);
void AddDemoCommand(CLI::App& app, Context& context);
void AddDoctorCommand(CLI::App& app, Context& context);
void AddEventsCommand(CLI::App& app, Context& context);
void AddMigrateCommand(CLI::App& app, Context& context);
void AddPlanCommand(CLI::App& app, Context& context);
void AddReplicaCommand(CLI::App& app, Context& context);
void AddRunCommands(CLI::App& app, Context& context);
void AddServeCommand(CLI::App& app, Context& context);
void AddSimCommand(CLI::App& app, Context& context);
void AddSnapshotCommand(CLI::App& app, Context& context);
void AddStatesCommand(CLI::App& app, Context& context);
void AddVerifyCommand(CLI::App& app, Context& context);
void AddWorkCommand(CLI::App& app, Context& context);
void AddWorkerCommand(CLI::App& app, Context& context);

}  // namespace muster::cli
