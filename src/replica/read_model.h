#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "muster/events.h"
#include "muster/replica.h"
#include "muster/result.h"

namespace muster {

// One version of a projection's read model.
struct Instance {
  std::string set;
  std::string projection;
  int version = 1;
};

// Up to which position a version handles the events of a slot with side effects. A swap of versions
// hands over at one position: the old version has them up to there, the new one from there on.
inline constexpr int64_t kEffectsByVersion = -1;  // no swap yet: all if it is the active one
inline constexpr int64_t kEffectsAlways = std::numeric_limits<int64_t>::max();

// The checkpoint of a slot.
struct SlotState {
  int slot = 0;
  int64_t generation = 0;  // the fence: older ones can change nothing any more
  int64_t position = 0;    // all events of the slot up to here have been dealt with
  int64_t handled = 0;     // how many that were, parked ones among them
  int64_t digest = 0;      // of which; see DigestOf
  int64_t skipped = 0;     // how many of them an operator has left out
  int64_t effects_until = kEffectsByVersion;

  bool operator==(const SlotState&) const = default;
};

// What an event adds to a digest, by exclusive or: the order does not matter, a missing one does.
int64_t DigestOf(const Event& event);

struct SlotMove {
  int slot = 0;
  int64_t generation = 0;  // in which the slot was taken over
  int64_t from = 0;        // where it must be
  int64_t to = 0;
  int64_t handled = 0;
  int64_t digest = 0;
  int64_t effects_until = kEffectsByVersion;  // must be that of the slot
  int64_t skipped = 0;
};

struct ParkedEvent {
  int slot = 0;
  std::string stream;
  int64_t version = 0;       // of the event in its stream
  bool side_effects = true;  // it is to be handled with them, whenever that is
};

struct ParkedStream {
  int slot = 0;
  std::string stream;
  std::string error;
  bool replay = false;            // it is being replayed: an operator asked for it
  std::vector<int64_t> versions;  // of its events that wait, in order
  std::set<int64_t> quiet = {};   // of these, to be handled without side effects
};

// What is committed together with a transaction.
struct ReadModelProgress {
  std::vector<SlotMove> moves = {};
  std::vector<ParkedEvent> parked = {};  // a repeat changes nothing
  // Why; parks their streams. Empty: the streams must be parked already.
  std::string error = {};
  std::vector<ParkedEvent> failed = {};    // must be parked; ends their replays, with the error
  std::vector<ParkedEvent> replayed = {};  // must be parked; the last of a stream frees it
};

// The database of read models: what projections write, their checkpoints and what they have parked,
// changed together. This is where the fence is.
//
// Thread-safe. The outcome of a Commit that fails with kUnknownOutcome is found out by TakeOver.
class ReadModel {
 public:
  virtual ~ReadModel() = default;

  // Closes the slots to all generations before this one, and says where each is (0: at the start).
  // May be repeated. kLeaseLost: a later generation has been here; nothing was changed.
  virtual Result<std::vector<SlotState>> TakeOver(const Instance& instance, int64_t generation,
                                                  std::span<const int> slots) = 0;

  // Nothing is locked until the first statement.
  virtual Result<std::unique_ptr<Transaction>> Begin() = 0;

  // Ends `transaction`, one of ours, on the server when it has waited for us for so long: a process
  // that sleeps with rows locked does not stall the slots' next owner. Where there are such locks.
  virtual void LimitIdle(Transaction& /*transaction*/, milliseconds /*limit*/) {}

  // Whether two transactions waited for rows of each other, and this one was ended for it.
  virtual bool IsDeadlock(const Error& /*error*/) const { return false; }

  // Lets `transaction`, one of ours with nothing in it, wait until no other of the instance that
  // was serialized is open.
  virtual Status Serialize(Transaction& /*transaction*/, const Instance& /*instance*/) {
    return {};
  }

  // Commits what was done in `transaction`, one of ours, together with `progress`. kLeaseLost: a
  // slot is not at `from` or not in its generation any more, its side effects were handed over, or
  // what should be parked is not; nothing was changed.
  virtual Status Commit(Transaction& transaction, const Instance& instance,
                        const ReadModelProgress& progress) = 0;

  // Commits a transaction that moves no slot.
  virtual Status Commit(Transaction& transaction) = 0;

  // Commits `transaction`, which makes version `to` the one that readers see, and with it hands the
  // side effects of all slots of the log over from the version `from` at where `to` is: a commit
  // that either of their owners has begun fails. May be repeated: what was handed over stays.
  // kConflict: `to` is behind `from`, lacks slots, or is `from`; nothing was changed.
  virtual Status Swap(Transaction& transaction, const Instance& from, int to, int slots) = 0;

  // Leaves out a parked event. kNotFound: it is not parked any more.
  virtual Status SkipParked(const Instance& instance, const ParkedEvent& event) = 0;

  // The checkpoints there are.
  virtual Result<std::vector<SlotState>> Slots(const Instance& instance) = 0;

  // The highest generation that has ever taken over a slot of the set; 0: none.
  virtual Result<int64_t> HighestGeneration(const std::string& set) = 0;

  // Parked streams of some slots.
  virtual Result<std::vector<ParkedStream>> Parked(const Instance& instance,
                                                   std::span<const int> slots) = 0;

  // Asks for a parked stream to be tried again; empty: for all. The number asked for.
  virtual Result<int64_t> RequestReplay(const Instance& instance, const std::string& stream) = 0;

  // For operators, within a transaction: puts slots to positions, whatever they were and whoever
  // owns them. The owner's next commit fails with kLeaseLost, and it goes on from there.
  // `forget` also clears what was counted and parked.
  virtual Status Put(Transaction& transaction, const Instance& instance,
                     std::span<const SlotPosition> slots, bool forget) = 0;

  // Removes the checkpoints and parked events of a version. kConflict, where `unless_swapped_in`: a
  // swap has made it the one that readers see.
  virtual Status Forget(Transaction& transaction, const Instance& instance,
                        bool unless_swapped_in) = 0;
};

inline Error SwappedIn(const Instance& instance) {
  return {Code::kConflict,
          "version " + std::to_string(instance.version) + " of '" + instance.projection +
              "' has become the active one",
          "'muster replica status' shows which version is active"};
}

// Opens one by the URL of its database. `env` must outlive it. `call_timeout` is that of one call
// to a server.
Result<std::unique_ptr<ReadModel>> OpenReadModel(const std::string& url, Env& env,
                                                 milliseconds call_timeout = milliseconds(10'000));

Result<std::unique_ptr<ReadModel>> OpenSqliteReadModel(const std::string& path,
                                                       const std::string& space);
Result<std::unique_ptr<ReadModel>> OpenPostgresReadModel(const std::string& uri,
                                                         const std::string& space,
                                                         milliseconds call_timeout);

}  // namespace muster
