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
#include "replica/read_model.h"
#include "replica/set_records.h"

namespace muster {

// What operators do to a replica set. All of it is state in the store or the read model, which
// workers honour whenever they look or start: no worker has to run, and any may be dead.

// Changes what is wanted of a projection. kUnavailable: others kept changing it, too.
Status ChangeDesired(Store& store, const std::string& set, const std::string& projection,
                     const std::function<Status(DesiredState&)>& change);

Status PauseProjection(Store& store, const std::string& set, const std::string& projection,
                       bool paused);

// The workers, by name, that may still handle events of versions which are to stand still.
Result<std::vector<std::string>> NotStoppedYet(Store& store, const std::string& set,
                                               const std::string& projection,
                                               const std::vector<int>& versions);
// The same for a projection that was paused.
Result<std::vector<std::string>> NotPausedYet(Store& store, const std::string& set,
                                              const std::string& projection);

// At most so many workers have a part in the set, the others stand by; none: all have.
Status ScaleSet(Store& store, const std::string& set, std::optional<int> workers);

// Empties the active version and starts it from the first event, in one transaction. kConflict: it
// was built by another definition.
Status ResetProjection(Store& store, EventLog& log, ReadModel& model, const std::string& set,
                       Projection& projection);

// Lets workers run the active version by the definition of `projection` from now on. What it has
// handled stays as it is. False: it is the one already.
Result<bool> AdoptDefinition(Store& store, const std::string& set, const Projection& projection);

// Leaves one event out, which is parked or the next of its slot: what comes before it is not
// skipped by the way. It is counted as skipped.
Status SkipEvent(Store& store, EventLog& log, ReadModel& model, const Instance& instance,
                 int64_t position);

// Leaves out all events that wait in a parked stream. How many.
Result<int64_t> SkipStream(Store& store, EventLog& log, ReadModel& model, const Instance& instance,
                           const std::string& stream);

// Removes a projection from the set, with its checkpoints; its tables stay. kConflict: a worker
// that lives has it, and would start it from the first event.
Status ForgetProjection(Store& store, ReadModel& model, const std::string& set,
                        const std::string& projection);

// How one version of a projection stands.
struct InstanceStatus {
  std::string projection;
  int version = 1;
  bool active = true;
  bool paused = false;
  bool held = false;          // it stands still until versions are swapped
  std::string definition;     // the hash of it; empty: not known
  int64_t handled = 0;        // without those that are parked or skipped
  int64_t parked_events = 0;  // passed by, but not handled
  int64_t skipped = 0;        // left out by an operator
  int64_t unread = 0;         // beyond the checkpoints
  // The end of a log that ends before a checkpoint; -1: it does not.
  int64_t log_cut_at = -1;
  bool lag_estimated = false;  // there are too many to count
  int64_t lag_events = 0;      // all that are not handled: unread or parked
  milliseconds lag_time{0};    // the age of the oldest event that is not handled
  std::vector<ParkedStream> parked;
  std::map<std::string, int64_t> parked_at;  // positions of the first events of the first of them
  std::vector<SlotState> slots;
  std::vector<SlotLag> lags;  // per slot
};

struct SetStatus {
  SetView view;
  WallTime now{};  // the store's
  std::vector<InstanceStatus> instances;
};

// kCorrupt: the log has lost events that a version has handled. New ones would get their positions,
// and be skipped.
Status CheckLogIsWhole(const SetStatus& status);
Result<SetStatus> StatusOf(Store& store, EventLog& log, ReadModel& model, const std::string& set,
                           const std::vector<std::string>& projections);

// Asks for parked streams of a version to be tried again; empty: for all. An event in which
// processors have hung or died gets its chances anew. The number of streams.
Result<int64_t> ReplayParked(Store& store, ReadModel& model, const Instance& instance,
                             const std::string& stream);

// Counts and hashes what was passed by, slot by slot, against the log.
struct AuditResult {
  int64_t events = 0;   // of the log, up to the checkpoints
  int64_t handled = 0;  // of these
  int64_t parked = 0;   // of these: waiting
  int64_t skipped = 0;  // of these: left out, so that events = handled + parked + skipped
  std::vector<int> wrong_slots = {};
};
Result<AuditResult> Audit(EventLog& log, ReadModel& model, const Instance& instance);

// Wakes the workers of a set, so that they look at once.
void SignalSet(Store& store, const std::string& set);

// The version that readers see. A projection that nobody has changed has only the first.
Result<DesiredState> DesiredFor(Store& store, const std::string& set,
                                const std::string& projection);

}  // namespace muster
