#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/events.h"
#include "muster/result.h"
#include "muster/store.h"

namespace muster {

// A value in SQL, as text; none: NULL.
using SqlValue = std::optional<std::string>;

// A transaction of the read model's database, in which a batch of events is handled and its
// checkpoint written: both or neither. Parameters are $1, $2, … in the SQL. Used by one thread,
// within the call that it was given to.
class Transaction {
 public:
  virtual ~Transaction() = default;

  // Runs a statement, perhaps only together with the commit: its failure then fails the batch.
  virtual Status Execute(const std::string& sql, std::vector<SqlValue> params = {}) = 0;

  // Runs a query, after everything before it.
  virtual Result<std::vector<std::vector<SqlValue>>> Query(const std::string& sql,
                                                           std::vector<SqlValue> params = {}) = 0;
};

// Which part of the log a processor is built for, all from one generation.
struct ReplicaPartition {
  int key = 0;               // PartitionKey: 0 … total - 1
  int total = 1;             // TotalPartitions
  int64_t generation = 0;    // of the replica set
  int version = 1;           // of the projection's read model; see Projection
  bool side_effects = true;  // false: a rebuild, or an old version kept to go back to; change
                             // nothing outside the read model
};

// One call of Processor::HandleSome, as its follower sees it.
class Turn {
 public:
  virtual ~Turn() = default;

  // Whether to return with what is handled so far: a stop is wanted, or the time for one batch
  // (ReplicaOptions::batch_time) is used up.
  virtual bool Over() const = 0;

  // Shows that it gets on: ReplicaOptions::handle_timeout counts from the last call.
  virtual void Progress() = 0;
};

// Handles events of one partition. Used by one thread.
class Processor {
 public:
  virtual ~Processor() = default;

  // Handles events in order. Whatever it does through `transaction` counts if and only if all of
  // the batch does. A failure (or an exception) undoes the batch; it comes again, in the end event
  // by event, and the stream of an event that fails for good is parked. Only failures that the
  // event itself causes lead there: for a service that is away, return kUnavailable, which is tried
  // again for as long as it takes.
  virtual Status Handle(std::span<const Event> events, Transaction& transaction) = 0;

  // Handles the first of `events`, and as many more as it can before its turn is over; how many
  // that were, at least one. Exactly these are committed, the others come again. By default, all.
  virtual Result<size_t> HandleSome(std::span<const Event> events, Transaction& transaction,
                                    Turn& /*turn*/) {
    MUSTER_TRY(Handle(events, transaction));
    return events.size();
  }
};

// A read model made of events. A rebuild makes a new version of it beside the one in use: tables
// of several versions exist at the same time, and one of them is active.
//
// Build is called from any thread; the others from one at a time.
class Projection {
 public:
  virtual ~Projection() = default;

  // The name of its checkpoints: never to be changed.
  virtual const std::string& name() const = 0;

  virtual Result<std::unique_ptr<Processor>> Build(const ReplicaPartition& partition) = 0;

  // What it does with events, as a text such as its statements, or the version of its code. It is
  // kept with each version of the read model, and a version is only run by the definition that it
  // was built from. Empty: not stated, so not compared.
  virtual std::string Definition() const { return {}; }
  // The projection by another definition: a worker may have been started with an older or a newer
  // one than a version has.
  virtual Result<std::shared_ptr<Projection>> WithDefinition(const std::string& definition) const;

  // Creates what a version needs, if it is not there.
  virtual Status SetUp(Transaction&, int /*version*/) { return {}; }
  // Empties it: all events will come again.
  virtual Status Clear(Transaction&, int /*version*/) {
    return Error{Code::kInvalid, "projection '" + name() + "' cannot be cleared",
                 "rebuild it beside the old one instead"};
  }
  // Takes it from readers; another version is activated in the same transaction.
  virtual Status Deactivate(Transaction&, int /*version*/) { return {}; }
  // Makes it the one that readers see.
  virtual Status Activate(Transaction&, int /*version*/) { return {}; }
  // Removes a version that is no longer active.
  virtual Status Drop(Transaction&, int /*version*/) { return {}; }
};

// What happens to the others when workers join or leave.
enum class Strategy {
  kRecreate,     // all pause, reconfigure and go on together
  kIncremental,  // only workers whose slots move pause
};

// What a worker tells whoever watches it.
struct ReplicaEvent {
  enum class Kind {
    kRegistered,    // pending, under a new id
    kReady,         // stopped, and prepared for a generation
    kRunning,       // started in a generation
    kStandby,       // alive, but with no part in the generation
    kReconfigured,  // with `pauses`
    kParked,        // a stream, because of `error`
    kLost,          // declared dead, or unable to renew in time: starts anew
    kTrouble,       // `error`; tries again
    kStopped,
  };
  Kind kind = Kind::kTrouble;
  std::string worker = {};
  int64_t generation = 0;
  int partition = 0;
  int partitions = 0;
  std::string projection = {};
  std::string error = {};
  // For how long each slot it now owns was nobody's, by the store's clock.
  std::vector<std::pair<int, milliseconds>> pauses = {};
};

// Everything has a default that gives a join in under a second and a takeover in under five.
struct ReplicaOptions {
  std::string set;          // letters, digits, '-', '_' and '.'
  std::string worker = {};  // for people; empty: the host's name
  Strategy strategy = Strategy::kRecreate;
  milliseconds heartbeat_interval{750};
  milliseconds heartbeat_timeout{3'000};
  milliseconds barrier_timeout{10'000};  // not ready by then, and not ending a batch: dead
  milliseconds quiet{200};               // no change for so long: a new generation
  milliseconds quiet_most{2'000};        // however many changes keep coming
  milliseconds handle_timeout{60'000};   // a batch that takes longer hangs
  milliseconds batch_time{1'000};        // batches are sized so that one takes about this long
  int batch = 1'000;                     // events of a batch at most
  int max_attempts = 5;                  // of an event that fails, before its stream is parked
  milliseconds retry_delay{200};         // before the second attempt; doubles with each further one
  std::function<void(const ReplicaEvent&)> observer = {};  // called from the worker's threads
};

// Runs the projections of a replica set as one of its workers: registers, is given a partition,
// handles its events, and takes part in every change of generation.
class Orchestrator {
 public:
  virtual ~Orchestrator() = default;

  // Until a stop is requested; then ends the batch in hand, leaves, and returns. Trouble with a
  // server is waited out. Errors are final: kIncompatible, kInvalid.
  virtual Status Run(std::stop_token stop) = 0;
};

// A worker of the set `options.set`. `read_model` is the URL of the database that the projections
// write to and that keeps their checkpoints; the forms are those of OpenStore. All that is passed
// by reference must outlive it.
Result<std::unique_ptr<Orchestrator>> NewOrchestrator(
    Store& store, EventLog& events, const std::string& read_model,
    std::vector<std::shared_ptr<Projection>> projections, const ReplicaOptions& options, Env& env);

}  // namespace muster
