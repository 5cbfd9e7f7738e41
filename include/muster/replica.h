#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "muster/env.h"
#include "muster/events.h"
#include "muster/result.h"
#include "muster/store.h"

namespace muster::replica {

// An SQL value as text; none: NULL.
using SqlValue = std::optional<std::string>;

// A transaction on the read model's database, in which a batch of events is handled and its
// checkpoint written atomically. Parameters are $1, $2, … in the SQL. Used by one thread, within
// the call it was passed to.
class Transaction {
 public:
  virtual ~Transaction() = default;

  // Runs a statement, perhaps only at commit: a failure then fails the batch.
  virtual Status Execute(const std::string& sql, std::vector<SqlValue> params = {}) = 0;

  // Runs a query, after everything before it.
  virtual Result<std::vector<std::vector<SqlValue>>> Query(const std::string& sql,
                                                           std::vector<SqlValue> params = {}) = 0;
};

// The part of the log a processor is built for, in one generation.
struct ReplicaPartition {
  int key = 0;               // PartitionKey: 0 … total - 1
  int total = 1;             // TotalPartitions
  int64_t generation = 0;    // of the replica set
  int version = 1;           // of the projection's read model; see Projection
  bool side_effects = true;  // false: a rebuild, or an old version kept to go back to; change
                             // nothing outside the read model
};

// A call of Processor::HandleSome, from the follower's side.
class Turn {
 public:
  virtual ~Turn() = default;

  // Whether to return with what is handled so far: a stop was requested, or the time for one batch
  // (ReplicaOptions::batch_time) is used up.
  virtual bool Over() const = 0;

  // Reports progress: ReplicaOptions::handle_timeout counts from the last call.
  virtual void Progress() = 0;
};

// Handles events of one partition. Used by one thread.
class Processor {
 public:
  virtual ~Processor() = default;

  // Handles events in order. Changes made through `transaction` are committed with the whole batch
  // or not at all. A failure (or an exception) rolls the batch back; it is retried, finally event
  // by event, and the stream of an event that keeps failing is parked. Only failures caused by the
  // event itself lead there: for an unavailable service, return kUnavailable, which is retried
  // indefinitely.
  virtual Status Handle(std::span<const events::Event> events, Transaction& transaction) = 0;

  // Handles the first of `events`, and as many more as it can before its turn is over; returns how
  // many, at least one. Exactly these are committed, the others come again. By default, all.
  virtual Result<size_t> HandleSome(std::span<const events::Event> events, Transaction& transaction,
                                    Turn& /*turn*/) {
    MUSTER_TRY(Handle(events, transaction));
    return events.size();
  }
};

// A read model built from events. A rebuild creates a new version of it beside the one in use:
// tables of several versions coexist, and one version is active.
//
// Build is called from any thread; the others from one at a time.
class MUSTER_EXPORT Projection {
 public:
  virtual ~Projection() = default;

  // The name of its checkpoints: must never change.
  virtual const std::string& name() const = 0;

  virtual Result<std::unique_ptr<Processor>> Build(const ReplicaPartition& partition) = 0;

  // What it does with events, as text such as its statements, or the version of its code. It is
  // stored with each version of the read model, and a version only runs with the definition it was
  // built from. Empty: not stated, so not compared.
  virtual std::string Definition() const { return {}; }
  // The projection with another definition: a worker may have been started with an older or newer
  // one than a version has.
  virtual Result<std::shared_ptr<Projection>> WithDefinition(const std::string& definition) const;

  // Creates what a version needs, if missing.
  virtual Status SetUp(Transaction&, int /*version*/) { return {}; }
  // Clears it: all events will come again.
  virtual Status Clear(Transaction&, int /*version*/) {
    return Error{Code::kInvalid, "projection '" + name() + "' cannot be cleared",
                 "rebuild it beside the old one instead"};
  }
  // Hides it from readers; another version is activated in the same transaction.
  virtual Status Deactivate(Transaction&, int /*version*/) { return {}; }
  // Makes it the one that readers see.
  virtual Status Activate(Transaction&, int /*version*/) { return {}; }
  // Removes a version that is no longer active.
  virtual Status Drop(Transaction&, int /*version*/) { return {}; }
};

// What happens to the other workers when some join or leave.
enum class Strategy {
  kRecreate,     // all pause, reconfigure and continue together
  kIncremental,  // only workers whose slots move pause
};

// What happens to a worker, for its observer.
struct ReplicaEvent {
  enum class Kind {
    kRegistered,    // pending, under a new id
    kReady,         // stopped, and prepared for a generation
    kRunning,       // started in a generation
    kStandby,       // alive, but not part of the generation
    kReconfigured,  // with `pauses`
    kParked,        // a stream, because of `error`
    kLost,          // declared dead, or unable to renew in time: starts over
    kTrouble,       // `error`; retries
    kStopped,
  };
  Kind kind = Kind::kTrouble;
  std::string worker = {};
  int64_t generation = 0;
  int partition = 0;
  int partitions = 0;
  std::string projection = {};
  std::string error = {};
  // How long each slot it now owns had no owner, by the store's clock.
  std::vector<std::pair<int, milliseconds>> pauses = {};
};

// Notified by a worker, from several threads.
class ReplicaObserver {
 public:
  virtual ~ReplicaObserver() = default;
  virtual void Happened(const ReplicaEvent& /*event*/) {}
};

// The defaults give a join in under a second and a takeover in under five.
struct ReplicaOptions {
  std::string set;          // letters, digits, '-', '_' and '.'
  std::string worker = {};  // for display; empty: the host's name
  Strategy strategy = Strategy::kRecreate;
  milliseconds heartbeat_interval{750};
  milliseconds heartbeat_timeout{3'000};
  milliseconds barrier_timeout{10'000};  // not ready by then, and not finishing a batch: dead
  milliseconds quiet{200};               // a new generation after this long without changes
  milliseconds quiet_most{2'000};        // or after this long, however many changes keep coming
  milliseconds handle_timeout{60'000};   // a longer batch counts as hung
  milliseconds batch_time{1'000};        // target duration of a batch
  int batch = 1'000;                     // maximum events per batch
  int max_attempts = 5;                  // for a failing event, before its stream is parked
  milliseconds retry_delay{200};         // before the second attempt; doubles with each further one
};

// Runs the projections of a replica set as one of its workers: registers, gets a partition, handles
// its events, and takes part in every change of generation.
class Orchestrator {
 public:
  virtual ~Orchestrator() = default;

  // Runs until a stop is requested; then finishes the current batch, leaves, and returns. Server
  // outages are waited out. Errors are final: kIncompatible (the set does not fit this worker, or
  // the log is not the one that its checkpoints were made from), kInvalid.
  virtual Status Run(std::stop_token stop) = 0;
};

// A worker of the set `options.set`. `read_model` is the URL of the database that the projections
// write to and that stores their checkpoints; URLs are as for OpenStore. Everything passed by
// reference must outlive it.
MUSTER_EXPORT Result<std::unique_ptr<Orchestrator>> NewOrchestrator(
    store::Store& store, events::EventLog& events, const std::string& read_model,
    std::vector<std::shared_ptr<Projection>> projections, const ReplicaOptions& options,
    ReplicaObserver& observer, Env& env);

// Operations on a set. They are state in the store or the read model, which workers apply when they
// next look or start.

// Where a set lives. `read_model` is a URL, as for NewOrchestrator.
struct ReplicaSet {
  std::string name;
  store::Store& store;
  events::EventLog& events;
  std::string read_model;
  Env& env;
  milliseconds call_timeout{10'000};  // per call to the read model
};

// Pauses a projection, or resumes it. Workers stop after their current batch.
MUSTER_EXPORT Status PauseProjection(store::Store& store, const std::string& set,
                                     const std::string& projection, bool paused);

// One version of a projection.
struct ProjectionStatus {
  std::string projection;
  int version = 1;
  bool active = true;  // readers see it
  bool paused = false;
  bool held = false;            // stopped until versions are swapped
  bool serialized = false;      // workers handle its batches one at a time, because of deadlocks
  std::string definition = {};  // its hash; empty: unknown
  int64_t handled = 0;          // excluding parked and skipped
  int64_t parked_events = 0;    // passed over, but not handled
  int64_t skipped = 0;          // by an operator
  int64_t unread = 0;           // after the checkpoints
  bool lag_estimated = false;   // too many to count
  int64_t lag_events = 0;       // all unhandled events: unread or parked
  milliseconds lag_time{0};     // age of the oldest unhandled event
  // kIncompatible: the log is not the one it was built from.
  Status same_log = {};
  // Not empty: the log is another library's table, and ends before what was handled.
  std::string log_warning = {};
};

// The hash of a projection's definition; empty: it has none.
MUSTER_EXPORT std::string DefinitionHash(const Projection& projection);

// All versions of the named projections.
MUSTER_EXPORT Result<std::vector<ProjectionStatus>> ReadStatus(
    const ReplicaSet& set, const std::vector<std::string>& projections);

// Notified by RebuildProjection, on its thread.
class RebuildObserver {
 public:
  virtual ~RebuildObserver() = default;
  // How many events are left.
  virtual void Advanced(int64_t /*left*/) {}
};

// Builds a new version of a projection beside the active one, without side effects, and makes it
// the one that readers see once it has caught up. Returns its number. Requires running workers.
// Every step is durable: after a failure or a stop request, call it again.
MUSTER_EXPORT Result<int> RebuildProjection(const ReplicaSet& set,
                                            std::shared_ptr<Projection> projection,
                                            RebuildObserver& observer, std::stop_token stop = {});

// The previous version is kept up to date. The first goes back to it, the second drops the inactive
// version and returns its number.
MUSTER_EXPORT Status RollBackRebuild(const ReplicaSet& set, std::shared_ptr<Projection> projection,
                                     std::stop_token stop = {});
MUSTER_EXPORT Result<int> FinishRebuild(const ReplicaSet& set,
                                        std::shared_ptr<Projection> projection);

}  // namespace muster::replica
