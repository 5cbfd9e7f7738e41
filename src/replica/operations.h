#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/events.h"
#include "muster/replica.h"
#include "muster/store.h"
#include "replica/read_model.h"   // IWYU pragma: export
#include "replica/set_records.h"  // IWYU pragma: export

namespace muster::replica {

// Operator actions on a replica set. All of it is state in the store or the read model, which
// workers apply when they next look or start: no worker has to be running.

// Updates the desired state of a projection. kUnavailable: too many concurrent updates.
Status ChangeDesired(store::Store& store, const std::string& set, const std::string& projection,
                     const std::function<Status(DesiredState&)>& change);

// The workers, by name, that may still handle events of versions that should be stopped.
Result<std::vector<std::string>> NotStoppedYet(store::Store& store, const std::string& set,
                                               const std::string& projection,
                                               const std::vector<int>& versions);
// The same for a paused projection.
Result<std::vector<std::string>> NotPausedYet(store::Store& store, const std::string& set,
                                              const std::string& projection);

// Limits the number of active workers, the others stand by; none: no limit.
Status ScaleSet(store::Store& store, const std::string& set, std::optional<int> workers);

// Clears the active version and restarts it from the first event, in one transaction. kConflict: it
// was built from another definition.
Status ResetProjection(store::Store& store, events::EventLog& log, ReadModel& model,
                       const std::string& set, Projection& projection);

// Makes workers run the active version with the definition of `projection` from now on. Existing
// results stay. False: it already does.
Result<bool> AdoptDefinition(store::Store& store, const std::string& set,
                             const Projection& projection);

// Skips one event, which must be parked or the next of its slot, so that earlier ones are not
// skipped by accident. It is counted as skipped.
Status SkipEvent(store::Store& store, events::EventLog& log, ReadModel& model,
                 const Instance& instance, int64_t position);

// Skips all waiting events of a parked stream. Returns how many.
Result<int64_t> SkipStream(store::Store& store, events::EventLog& log, ReadModel& model,
                           const Instance& instance, const std::string& stream);

// Removes a projection from the set, with its checkpoints; its tables stay. Workers that have it
// are refused until it is reset. kConflict: a live worker runs it. After a failure, call it again.
Status ForgetProjection(store::Store& store, ReadModel& model, const std::string& set,
                        const std::string& projection);

// With details.
struct InstanceStatus : ProjectionStatus {
  std::vector<ParkedStream> parked = {};
  // Position of the first event, for the first of these streams.
  std::map<std::string, int64_t> parked_at = {};
  std::vector<SlotState> slots = {};
  std::vector<events::SlotLag> lags = {};  // per slot
};

struct SetStatus {
  SetView view;
  WallTime now{};  // by the store's clock
  std::vector<InstanceStatus> instances;
};

// kIncompatible: the log is not the one that a version was built from; see CheckLogIsSame.
Status CheckSameLog(const SetStatus& status);
Result<SetStatus> StatusOf(store::Store& store, events::EventLog& log, ReadModel& model,
                           const std::string& set, const std::vector<std::string>& projections);

// Requests a replay of a version's parked streams; empty: all. Events that hung or killed
// processors start over. Returns the number of streams.
Result<int64_t> ReplayParked(store::Store& store, ReadModel& model, const Instance& instance,
                             const std::string& stream);

// Counts and hashes the processed events, slot by slot, and compares with the log.
struct AuditResult {
  int64_t events = 0;   // of the log, up to the checkpoints
  int64_t handled = 0;  // of these
  int64_t parked = 0;   // of these: waiting
  int64_t skipped = 0;  // of these, so that events = handled + parked + skipped
  std::vector<int> wrong_slots = {};
};
Result<AuditResult> Audit(events::EventLog& log, ReadModel& model, const Instance& instance);

// Wakes the workers of a set.
void SignalSet(store::Store& store, const std::string& set);

// The desired state of a projection. One that was never changed has only the first version.
Result<DesiredState> DesiredFor(store::Store& store, const std::string& set,
                                const std::string& projection);

}  // namespace muster::replica
