#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"
#include "muster/store.h"
#include "replica/assignment.h"

namespace muster {

// What a replica set keeps in the store: records of the kind "replica" whose keys begin with
// "SET/", so that one scan reads all of it.
inline constexpr char kReplicaKind[] = "replica";
inline constexpr char kReplicaQueue[] = "replica";

std::string SetKey(const std::string& set);  // SET/set: the generation
std::string MemberKey(const std::string& set, const std::string& id);
std::string ProjectionKey(const std::string& set, const std::string& projection);
std::string ScaleKey(const std::string& set);
std::string SignalKey(const std::string& set);  // touched to wake the others
std::string SuspectKey(const std::string& set, const std::string& projection, int version,
                       const std::string& worker);

// Every change of the generation is one compare-and-swap of this record.
struct Generation {
  enum class Phase { kPreparing, kRunning };
  int64_t number = 0;  // 0: there is none yet
  Phase phase = Phase::kPreparing;
  Strategy strategy = Strategy::kRecreate;
  int slots = 0;
  Assignment assignment = {};
  std::vector<std::string> projections = {};  // that have ever run in the set
  std::vector<int> orphans = {};              // slots whose owner died; see Follower::SetOrphans
  std::string reason = {};                    // for people
  int64_t since_ms = 0;                       // when it was made, by the store's clock

  std::string ToBody() const;
  static Result<Generation> FromBody(const std::string& body);
};

// A worker's life. Its record is due at its heartbeat's deadline; once it is dead or stopped, when
// nobody needs to see it any more.
struct MemberState {
  enum class Phase { kPending, kReady, kRunning, kStopping, kStopped, kDead };
  Phase phase = Phase::kPending;
  int64_t generation = 0;                     // that it is ready for or running in
  std::string name = {};                      // for people
  int64_t handled = 0;                        // events since it registered
  std::string error = {};                     // its latest trouble, or why it is dead
  int64_t pause_ms = 0;                       // the longest of a slot in the last reconfiguration
  std::vector<std::string> projections = {};  // that it was started with
  std::vector<std::string> stopped = {};      // what it has stopped for an operator: StoppedName
  std::vector<std::string> serial = {};       // projections whose workers take turns
  bool busy = false;  // it ends a batch before it can be ready for the next generation

  bool Alive() const { return phase <= Phase::kRunning; }
  // Ready or beyond: whoever is running was ready before.
  bool ReadyFor(int64_t wanted) const;

  std::string ToBody() const;
  static Result<MemberState> FromBody(const std::string& body);
};
std::string_view PhaseName(MemberState::Phase phase);
std::string StoppedName(const std::string& projection, int version);

// What an operator wants of a projection; honoured by every worker whenever it starts.
struct DesiredState {
  bool paused = false;
  int active = 1;                   // the version that readers see
  std::vector<int> versions = {1};  // that are kept up to date
  std::vector<int> held = {};       // of those, the ones that stand still for a moment
  std::vector<int> dropping = {};   // not among those any more, but not removed yet
  int highest = 1;                  // a number is given to a version once
  // By version: the hash of the definition that it was built from. Not there: not known yet.
  std::map<std::string, std::string> definitions = {};
  int64_t touched = 0;  // grows when checkpoints were moved: whoever follows reads them again

  // Of a version; empty: not known.
  std::string Definition(int version) const;

  std::string ToBody() const;
  static Result<DesiredState> FromBody(const std::string& body);
};

// Events that a worker has in hand: written down before they are handled where the owner before has
// died, and afterwards where a processor hangs. Should their worker die they are suspect, and the
// next owner takes care.
struct Suspect {
  std::string projection = {};
  int version = 1;
  std::string worker = {};              // its id
  std::vector<int64_t> positions = {};  // in one transaction
  int hangs = 0;                        // of a processor in it

  std::string ToBody() const;
  static Result<Suspect> FromBody(const std::string& body);
};

// All records of a set, as one scan saw them.
struct SetView {
  struct Member {
    Record record;
    MemberState state;
  };
  Record set_record;  // version 0: not there yet
  Generation generation;
  std::map<std::string, Member> members;            // by id
  std::map<std::string, DesiredState> projections;  // those that somebody has changed
  std::vector<std::pair<Record, Suspect>> suspects;
  std::optional<int> scale;  // at most so many members

  // Events of a projection that were in hand when a processor hung or its worker died, and how
  // often that counts against each; 0: it was not alone in a death.
  std::map<int64_t, int> SuspectEvents(const std::string& projection, int version) const;

  // Whether a worker has ever come.
  bool Exists() const { return set_record.version > 0 || !members.empty(); }
};

// The names of the sets in a store.
Result<std::vector<std::string>> ListSets(Store& store);

// Shows a worker whose heartbeat has stopped as dead, as the next one that looks will declare it:
// with no worker left, none would. For displays only, not for workers.
void ShowExpired(SetView& view, WallTime now);
int CountAlive(const SetView& view);

Result<SetView> ReadSet(Store& store, const std::string& set);

// kInvalid, unless the name can be part of a key.
Status CheckReplicaName(std::string_view what, std::string_view name);

}  // namespace muster
