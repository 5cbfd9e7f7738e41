#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/enum_names.h"
#include "muster/result.h"
#include "muster/store.h"
#include "replica/assignment.h"

namespace muster::replica {

// What a replica set keeps in the store: records of kind "replica" whose keys begin with "SET/", so
// that one scan reads them all.
inline constexpr char kReplicaKind[] = "replica";
inline constexpr char kReplicaQueue[] = "replica";

std::string SetKey(const std::string& set);  // SET/set: the generation
std::string MemberKey(const std::string& set, const std::string& id);
std::string ProjectionKey(const std::string& set, const std::string& projection);
std::string ScaleKey(const std::string& set);
std::string SignalKey(const std::string& set);  // touched to wake the others
std::string SuspectKey(const std::string& set, const std::string& projection, int version,
                       const std::string& worker);

// As in records and in a set's file.
inline constexpr EnumNames<Strategy, 2> kStrategies{{{
    {Strategy::kRecreate, "recreate"},
    {Strategy::kIncremental, "incremental"},
}}};

// Every change of the generation is one compare-and-swap of this record.
struct Generation {
  enum class Phase { kPreparing, kRunning };
  int64_t number = 0;  // 0: none yet
  Phase phase = Phase::kPreparing;
  Strategy strategy = Strategy::kRecreate;
  int slots = 0;
  Assignment assignment = {};
  std::vector<std::string> projections = {};  // that ever ran in the set
  std::vector<int> orphans = {};              // slots whose owner died; see Follower::SetOrphans
  std::string reason = {};                    // for display
  int64_t since_ms = 0;                       // creation time, by the store's clock

  std::string ToBody() const;
  static Result<Generation> FromBody(const std::string& body);
};

// "preparing" or "running".
std::string_view PhaseName(Generation::Phase phase);

// A worker's state. Its record is due at its heartbeat's deadline or, once dead or stopped, when it
// can be deleted.
struct MemberState {
  enum class Phase { kPending, kReady, kRunning, kStopping, kStopped, kDead };
  Phase phase = Phase::kPending;
  int64_t generation = 0;                     // that it is ready for or running in
  std::string name = {};                      // for display
  int64_t handled = 0;                        // events since registration
  std::string error = {};                     // its latest failure, or why it is dead
  int64_t pause_ms = 0;                       // longest pause of a slot in the last reconfiguration
  std::vector<std::string> projections = {};  // it was started with
  std::vector<std::string> stopped = {};      // what it stopped for an operator: StoppedName
  std::vector<std::string> serial = {};       // projections with serialized batches
  bool busy = false;  // finishing a batch before it can be ready for the next generation

  bool Alive() const { return phase <= Phase::kRunning; }
  // Ready or beyond: a running worker was ready before.
  bool ReadyFor(int64_t wanted) const;

  std::string ToBody() const;
  static Result<MemberState> FromBody(const std::string& body);
};
std::string_view PhaseName(MemberState::Phase phase);
std::string StoppedName(const std::string& projection, int version);

// An operator's desired state of a projection; applied by every worker when it starts.
struct DesiredState {
  bool paused = false;
  int active = 1;                   // the version that readers see
  std::vector<int> versions = {1};  // that are kept up to date
  std::vector<int> held = {};       // of those, the ones briefly stopped
  std::vector<int> dropping = {};   // no longer among those, but not removed yet
  int highest = 1;                  // version numbers are never reused
  // By version: the hash of the definition it was built from. Missing: not known yet.
  std::map<std::string, std::string> definitions = {};
  // Its checkpoints were removed, its tables were not: no worker may start it from the first event
  // until it is reset.
  bool forgotten = false;
  int64_t touched = 0;  // grows when checkpoints were moved, so that followers reload them

  // Of a version; empty: unknown.
  std::string Definition(int version) const;

  std::string ToBody() const;
  static Result<DesiredState> FromBody(const std::string& body);
};

// A worker's events in flight: recorded before they are handled if the previous owner died, and
// afterwards if a processor hangs. If the worker dies they are suspect, and the next owner takes
// care.
struct Suspect {
  std::string projection = {};
  int version = 1;
  std::string worker = {};              // its id
  std::vector<int64_t> positions = {};  // in one transaction
  int hangs = 0;                        // of a processor handling it

  std::string ToBody() const;
  static Result<Suspect> FromBody(const std::string& body);
};

// All records of a set, as one scan saw them.
struct SetView {
  struct Member {
    store::Record record;
    MemberState state;
  };
  store::Record set_record;  // version 0: does not exist yet
  Generation generation;
  std::map<std::string, Member, std::less<>> members;  // by id
  std::map<std::string, DesiredState> projections;     // those that were ever changed
  std::vector<std::pair<store::Record, Suspect>> suspects;
  std::optional<int> scale;  // maximum number of members

  // Whether the processor of these events hung, or its worker is dead. Those of a living worker are
  // merely in flight.
  bool Counts(const Suspect& suspect) const;

  // Events of a projection that were in flight when a processor hung or its worker died, and how
  // often that counts against each; 0: it was not alone in a death.
  std::map<int64_t, int> SuspectEvents(const std::string& projection, int version) const;

  // Projections whose batches the living workers handle one at a time, because of deadlocks.
  std::set<std::string> Serialized() const;

  // kIncompatible: one of these projections was removed from the set.
  Status CheckNotForgotten(const std::vector<std::string>& names) const;

  // Whether a worker has ever joined.
  bool Exists() const { return set_record.version > 0 || !members.empty(); }
};

// The body of the record ScaleKey; 0: no limit.
std::string ScaleBody(int workers);

// The names of the sets in a store.
Result<std::vector<std::string>> ListSets(store::Store& store);

// Marks workers with expired heartbeats as dead, as the next live worker will if there is one.
// For display only.
void ShowExpired(SetView& view, WallTime now);
int CountAlive(const SetView& view);

// `known` saves time: an earlier view, from which the states of unchanged members and an unchanged
// generation are taken.
Result<SetView> ReadSet(store::Store& store, const std::string& set, SetView known = {});

// kInvalid: the name cannot be part of a key.
Status CheckReplicaName(std::string_view what, std::string_view name);

}  // namespace muster::replica
