#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/events.h"
#include "muster/replica.h"
#include "replica/batch_size.h"
#include "replica/page_reader.h"
#include "replica/read_model.h"

namespace muster {

struct FollowerOptions {
  int batch = 1'000;
  milliseconds batch_time{1'000};
  milliseconds idle_limit{3'000};        // a transaction that waits for us: its locks are released
  milliseconds idle_limit_most{60'000};  // where a single event takes longer
  size_t page_bytes = 8 * 1024 * 1024;   // read at once, and perhaps as much ahead
  int max_attempts = 5;
  milliseconds retry_delay{200};
  bool read_ahead = false;          // by another thread
  milliseconds flush_every{5'000};  // stores positions of slots in which nothing happens
};

// What a follower is doing, for whoever watches from another thread: since when it has been in a
// processor's hands, and where.
class FollowerPulse {
 public:
  std::atomic<int64_t> busy_since_ns = 0;  // by Env::MonoNow; 0: it is not
  std::atomic<int64_t> handled = 0;        // events so far
  std::atomic<bool> sound = true;          // the last step has ended without a failure

  void Busy(MonoTime now) { busy_since_ns = std::max<int64_t>(1, now.time_since_epoch().count()); }
  void Take(std::span<const Event> events);
  std::vector<int64_t> InFlight() const;  // the positions of the events last handed over

 private:
  mutable std::mutex mutex_;
  std::vector<int64_t> positions_;
};

// Follows the log for one version of one projection: reads events of the slots that it owns, has
// them handled, and moves their checkpoints, all fenced by the generation in which each slot was
// taken over.
//
// Used by one thread, the pulse aside.
class Follower {
 public:
  // Builds a processor, with side effects or without.
  using Builder = std::function<Result<std::unique_ptr<Processor>>(bool side_effects)>;

  // `active`: whether the version is the one that readers see, which decides about side effects as
  // long as the read model does not.
  Follower(EventLog& log, ReadModel& model, Env& env, Instance instance, bool active,
           Builder builder, const FollowerOptions& options);

  // Takes slots over in a generation, and from then on owns exactly these. Slots that it owned
  // before keep their fence if `keep`. kLeaseLost: a later generation has been there.
  Status Own(std::vector<int> slots, int64_t generation, bool keep);

  // Builds the processor that the next events need, so that a failure is known early.
  Status Prepare() { return UseProcessor(HasEffectsLeft()); }

  enum class Outcome { kMoved, kIdle };

  // Handles the next batch: one transaction, unless an event fails. kLeaseLost: a slot has
  // another owner; to be stopped. Other failures pass, or stay visible: ask again after a pause.
  Result<Outcome> Step(std::stop_token stop);

  // Stores how far slots without events have come. To be called before it is stopped in good order.
  Status Flush();

  // Events that were in hand when a processor hung or its worker died, and how often: they are
  // handled alone, or not at all.
  void SetSuspectEvents(std::map<int64_t, int> hangs) { hangs_ = std::move(hangs); }

  // The owner of these slots died, perhaps in one of their next events. For the first batches it
  // writes down what it has in hand, so that the events can be found out should this worker die
  // too.
  void SetOrphans(const std::vector<int>& slots);

  // Writes down which events are about to be handled; none: they are no longer.
  std::function<Status(const std::vector<int64_t>& positions)> note_in_flight = {};
  Status ClearInFlight();

  // From now on one batch at a time among all workers: they wait for rows of each other. From any
  // thread. Whether it is so, perhaps because this follower met a deadlock.
  void Serialize() { serial_ = true; }
  bool IsSerial() const { return serial_; }

  // Told when a stream is parked.
  std::function<void(const std::string& stream, const std::string& error)> on_parked = {};

  const Instance& instance() const { return instance_; }
  const FollowerPulse& pulse() const { return pulse_; }
  std::vector<int> slots() const;

 private:
  Result<Outcome> TryStep(std::stop_token stop);
  struct Owned {
    int64_t generation = 0;
    int64_t stored = 0;  // the checkpoint
    int64_t read = 0;    // nothing of the slot lies between it and here
    int64_t effects_until = kEffectsByVersion;
  };

  static constexpr int kMaxHangs = 2;
  static constexpr size_t kCarefulBatch = 32;  // of events that are written down

  // A failure that says nothing about the events: the database is away, a lock or a statement took
  // too long, two transactions blocked each other, or it cannot be told what became of a commit. It
  // is tried again for as long as it takes, and never parks a stream.
  static bool IsTrouble(const Error& error);

  static Error SuspectError(int times);

  // For people; never empty, which would say that the stream is parked already.
  static std::string ReasonOf(const Error& error);

  int64_t EffectsUntil(const Owned& owned) const;
  bool HasEffectsLeft() const;
  bool HasEffects(const Event& event) const;
  Status UseProcessor(bool side_effects);
  ParkedEvent AsParked(const Event& event) const;
  std::vector<SlotPosition> Positions(bool side_effects) const;
  Result<EventPage> NextPage(bool side_effects);
  bool HasRead(int64_t position, bool side_effects);
  Status Refresh();
  // follower_replay.cc
  Status ReloadParked();
  Status ReplaySome(std::stop_token stop);
  Result<std::vector<Event>> NextToReplay();
  Status ReplayOneByOne(std::span<const Event> events, std::stop_token stop);
  Status Replayed(std::span<const Event> events);
  Status StayParked(int64_t version, const Error& error);
  Status AfterTrouble(const Error& error);
  ReadModelProgress InPlace(int slot) const;
  Status ReadPage();
  bool EndPage();
  std::span<const Event> NextBatch() const;
  Status NoteInFlight(std::span<const Event> events);
  void CountOrphanEvents(std::span<const Event> events);
  Status HandleNext(std::stop_token stop);
  Status Rewind(size_t tried, const Error& error);
  Result<size_t> HandleBatch(std::span<const Event> events, std::stop_token stop);
  Status RetryOrPark(const Event& event, Error error, std::stop_token stop);
  Status Park(const Event& event, const Error& error);
  Status Dispatch(std::span<const Event> events, bool side_effects, Transaction& transaction);
  Result<size_t> DispatchSome(std::span<const Event> events, bool side_effects,
                              Transaction& transaction, std::stop_token stop);
  Status PrepareDispatch(std::span<const Event> events, bool side_effects);
  Status Commit(Transaction& transaction, const ReadModelProgress& progress);
  ReadModelProgress MovesFor(std::span<const Event> events) const;

  EventLog& log_;
  PageReader pages_;
  ReadModel& model_;
  Env& env_;
  const Instance instance_;
  const bool active_;
  const Builder builder_;
  std::unique_ptr<Processor> processor_;  // with side effects or without
  bool side_effects_ = false;
  const FollowerOptions options_;
  std::map<int, Owned> owned_;
  std::map<std::string, int, std::less<>> parked_;  // streams, with their slots
  std::optional<ParkedStream> replaying_;           // with the events that are left
  std::map<int64_t, int> hangs_;
  MonoTime flushed_{};
  MonoTime looked_{};
  std::optional<EventPage> page_;  // being handled
  size_t next_ = 0;                // of its events
  bool page_effects_ = false;      // whether it is handled with side effects
  BatchSize batch_size_;
  milliseconds idle_limit_;
  std::set<int> orphans_;  // slots to take care of
  int care_left_ = 0;      // for so many of their events
  bool noted_ = false;     // that events are in hand
  std::atomic<bool> serial_ = false;
  FollowerPulse pulse_;
};

}  // namespace muster
