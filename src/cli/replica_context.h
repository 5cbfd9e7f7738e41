#pragma once

#include <memory>
#include <string>

#include "cli/context.h"
#include "cli/serve_options.h"
#include "muster/events.h"
#include "muster/store.h"
#include "replica/replica.h"  // IWYU pragma: export

namespace muster::cli {

// The command-line options of `muster replica`.
struct ReplicaCommandOptions {
  std::string action;
  std::string file;
  std::string target;    // a projection, or a number for scale
  std::string stream;    // replay only this one
  int64_t position = 0;  // skip this event
  int version = 0;       // of the projection; 0: the active one
  int workers = 1;       // of this process
  std::string name;      // of its workers
  int timeout = 10;      // seconds per database call; not for run
  bool until_caught_up = false;
  bool slots = false;
  bool rollback = false;
  bool finish = false;
  ServeBesideOptions serve;  // for run
};

// A replica set's file with everything it names, opened.
struct OpenReplica {
  replica::ReplicaFile file;
  std::unique_ptr<store::Store> store;
  std::unique_ptr<events::EventLog> log;
  std::unique_ptr<replica::ReadModel> model;

  static Result<OpenReplica> Open(const ReplicaCommandOptions& options, Context& context);
};

Result<int> RunReplicaWorkers(const ReplicaCommandOptions& options, Context& context);
Result<int> ShowReplicaStatus(const ReplicaCommandOptions& options, Context& context);
Result<int> OperateReplica(const ReplicaCommandOptions& options, Context& context);

}  // namespace muster::cli
