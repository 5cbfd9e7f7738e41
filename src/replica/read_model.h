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

namespace muster::replica {

// One version of a projection's read model.
struct Instance {
  std::string set;
  std::string projection;
  int version = 1;
};

// The position up to which a version handles a slot's events with side effects. A swap of versions
// hands over at one position: the old version has them up to there, the new one from there on.
inline constexpr int64_t kEffectsByVersion = -1;  // no swap yet: all, if it is the active version
inline constexpr int64_t kEffectsAlways = std::numeric_limits<int64_t>::max();

// The checkpoint of a slot.
struct SlotState {
  int slot = 0;
  int64_t generation = 0;  // the fence: older generations can change nothing
  int64_t position = 0;    // all events of the slot up to here are processed
  int64_t handled = 0;     // their number, including parked ones
  int64_t digest = 0;      // their digest; see DigestOf
  int64_t skipped = 0;     // how many of them an operator skipped
  int64_t effects_until = kEffectsByVersion;
  events::EventMark mark = {};  // of the log's last event at or before `position`; none: not known

  bool operator==(const SlotState&) const = default;
};

// An event's contribution to a digest, combined by XOR: order does not matter, a missing event
// does.
int64_t DigestOf(const events::Event& event);

struct SlotMove {
  int slot = 0;
  int64_t generation = 0;  // in which the slot was acquired
  int64_t from = 0;        // its required position
  int64_t to = 0;
  int64_t handled = 0;
  int64_t digest = 0;
  int64_t effects_until = kEffectsByVersion;  // must match the slot's
  int64_t skipped = 0;
  events::EventMark mark = {};  // of the event at `to`, or the last one before; none: keeps the old
};

struct ParkedEvent {
  int slot = 0;
  std::string stream;
  int64_t version = 0;       // of the event in its stream
  bool side_effects = true;  // to be handled with side effects, whenever that is
};

struct ParkedStream {
  int slot = 0;
  std::string stream;
  std::string error;
  bool replay = false;            // being replayed, at an operator's request
  std::vector<int64_t> versions;  // of its waiting events, in order
  std::set<int64_t> quiet = {};   // of these, to be handled without side effects
};

// Replaces the error of a stream whose failed event was skipped.
inline std::string SkippedError(int64_t version) {
  return "event " + std::to_string(version) +
         " of the stream was skipped; those behind it wait for 'muster replica replay'";
}

// Committed together with a transaction.
struct ReadModelProgress {
  std::vector<SlotMove> moves = {};
  std::vector<ParkedEvent> parked = {};  // idempotent
  // The reason; parks their streams. Empty: the streams must already be parked.
  std::string error = {};
  std::vector<ParkedEvent> failed = {};    // must be parked; ends their replays with the error
  std::vector<ParkedEvent> replayed = {};  // must be parked; the last of a stream unparks it
};

// The database of read models: projections' tables, their checkpoints and parked events, changed
// together. This is where the fence is.
//
// Thread-safe. After a Commit with kUnknownOutcome, TakeOver finds the outcome.
class ReadModel {
 public:
  virtual ~ReadModel() = default;

  // Fences off all earlier generations from the slots, and returns their positions (0: the start).
  // Idempotent. kLeaseLost: a later generation was here; nothing was changed.
  virtual Result<std::vector<SlotState>> TakeOver(const Instance& instance, int64_t generation,
                                                  std::span<const int> slots) = 0;

  // Nothing is locked until the first statement.
  virtual Result<std::unique_ptr<Transaction>> Begin() = 0;

  // Makes the server end `transaction`, one of ours, once it has been idle for this long: a
  // sleeping process with row locks must not stall the slots' next owner. Only for databases with
  // such locks.
  virtual void LimitIdle(Transaction& /*transaction*/, milliseconds /*limit*/) {}

  // Lets the calls of `transaction`, one of ours and still empty, take as long as
  // CallLimits::longest.
  virtual void AllowLongCalls(Transaction& /*transaction*/) {}

  // No later call of `transaction`, one of ours, lasts beyond `deadline`, by the real clock. It
  // fails like any call that takes too long.
  virtual void EndCallsBy(Transaction& /*transaction*/, MonoTime /*deadline*/) {}

  // Whether the error is a deadlock between two transactions, of which this one was aborted.
  virtual bool IsDeadlock(const Error& /*error*/) const { return false; }

  // Makes `transaction`, one of ours and still empty, wait for any other serialized transaction of
  // the instance.
  virtual Status Serialize(Transaction& /*transaction*/, const Instance& /*instance*/) {
    return {};
  }

  // Commits `transaction`, one of ours, together with `progress`. kLeaseLost: a slot is no longer
  // at `from` or in its generation, its side effects were handed over, or what should be parked is
  // not; nothing was changed.
  virtual Status Commit(Transaction& transaction, const Instance& instance,
                        const ReadModelProgress& progress) = 0;

  // Commits a transaction that moves no slot.
  virtual Status Commit(Transaction& transaction) = 0;

  // Commits `transaction`, which makes `to` the version that readers see, and hands the side
  // effects of all slots over from version `from` at `to`'s position: a commit that either owner
  // has begun fails. Idempotent. kConflict: `to` is behind `from`, lacks slots, or is `from`;
  // nothing was changed.
  virtual Status Swap(Transaction& transaction, const Instance& from, int to, int slots) = 0;

  // Skips a parked event. kNotFound: no longer parked.
  virtual Status SkipParked(const Instance& instance, const ParkedEvent& event) = 0;

  // The existing checkpoints.
  virtual Result<std::vector<SlotState>> Slots(const Instance& instance) = 0;

  // The highest generation that ever took over a slot of the set; 0: none.
  virtual Result<int64_t> HighestGeneration(const std::string& set) = 0;

  // Parked streams of some slots.
  virtual Result<std::vector<ParkedStream>> Parked(const Instance& instance,
                                                   std::span<const int> slots) = 0;

  // Requests a replay of a parked stream; empty: all. Returns their number.
  virtual Result<int64_t> RequestReplay(const Instance& instance, const std::string& stream) = 0;

  // For operators, within a transaction: sets slots to positions, in any generation and from any
  // position. The owner's next commit fails with kLeaseLost, and it continues from there. Marks
  // are removed. `forget` also clears counts and parked events.
  virtual Status Put(Transaction& transaction, const Instance& instance,
                     std::span<const events::SlotPosition> slots, bool forget) = 0;

  // Removes the checkpoints and parked events of a version. kConflict, with `unless_swapped_in`: a
  // swap has made it the version that readers see.
  virtual Status Forget(Transaction& transaction, const Instance& instance,
                        bool unless_swapped_in) = 0;
};

inline Error SwappedIn(const Instance& instance) {
  return {Code::kConflict,
          "version " + std::to_string(instance.version) + " of '" + instance.projection +
              "' has become the active one",
          "'muster replica status' shows which version is active"};
}

// How long a call to the server may take. A short limit notices a silent server early.
struct CallLimits {
  milliseconds usual{10'000};
  milliseconds longest = usual;  // of transactions with AllowLongCalls
};

// Opens a read model by database URL. `env` must outlive it.
Result<std::unique_ptr<ReadModel>> OpenReadModel(const std::string& url, Env& env,
                                                 const CallLimits& limits = {});

Result<std::unique_ptr<ReadModel>> OpenSqliteReadModel(const std::string& path,
                                                       const std::string& space);
Result<std::unique_ptr<ReadModel>> OpenPostgresReadModel(const std::string& uri,
                                                         const std::string& space,
                                                         const CallLimits& limits);

}  // namespace muster::replica
