#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "muster/env.h"
#include "muster/events.h"
#include "muster/replica.h"
#include "replica/batch_size.h"
#include "replica/page_reader.h"
#include "replica/read_model.h"

namespace muster::replica {

struct FollowerOptions {
  int batch = 1'000;
  milliseconds batch_time{1'000};
  milliseconds idle_limit{3'000};        // the server ends transactions idle for longer, to release
                                         // their locks
  milliseconds idle_limit_most{60'000};  // for single events that take longer
  milliseconds handle_timeout{60'000};   // a processor busy for longer counts as hung
  size_t page_bytes = 8 * 1024 * 1024;   // per read, and as much again with read-ahead
  int max_attempts = 5;
  milliseconds retry_delay{200};
  bool read_ahead = false;          // on another thread
  milliseconds flush_every{5'000};  // how often positions of idle slots are stored
};

// A follower's activity, for watching from another thread: since when it has been in a processor,
// and with which events.
class FollowerPulse {
 public:
  std::atomic<int64_t> busy_since_ns = 0;  // by Env::MonoNow; 0: idle
  std::atomic<int64_t> handled = 0;        // events so far
  std::atomic<bool> sound = true;          // the last step succeeded

  void Busy(MonoTime now) { busy_since_ns = std::max<int64_t>(1, now.time_since_epoch().count()); }
  void Take(std::span<const events::Event> events);
  std::vector<int64_t> InFlight() const;  // positions of the events last dispatched

 private:
  mutable Mutex mutex_;
  std::vector<int64_t> positions_ GUARDED_BY(mutex_);
};

// Follows the log for one version of one projection: reads the events of the slots it owns, has
// them handled, and advances their checkpoints, fenced by the generation in which each slot was
// acquired.
//
// Used by one thread, except for the pulse.
class Follower {
 public:
  // Builds a processor, with side effects or without.
  using Builder = std::function<Result<std::unique_ptr<Processor>>(bool side_effects)>;

  // `active`: whether readers see this version, which decides about side effects until the read
  // model does.
  Follower(events::EventLog& log, ReadModel& model, Env& env, Instance instance, bool active,
           Builder builder, const FollowerOptions& options);

  // Acquires slots in a generation, and from then on owns exactly these. Slots owned before keep
  // their fence if `keep`. kLeaseLost: a later generation has taken over.
  Status Own(std::vector<int> slots, int64_t generation, bool keep);

  // Builds the processor for the next events, so that errors show up early.
  Status Prepare() { return UseProcessor(HasEffectsLeft()); }

  enum class Outcome { kMoved, kIdle };

  // Handles the next batch: one transaction, unless an event fails. kLeaseLost: a slot has another
  // owner; stop this follower. kIncompatible: the checkpoints were made from another log. Other
  // failures may be transient: call again after a pause.
  Result<Outcome> Step(std::stop_token stop);

  // Stores the position of slots without events. Call before an orderly stop.
  Status Flush();

  // Events in flight when a processor hung or its worker died, and how often: they are handled
  // alone, and parked after too many hangs.
  void SetSuspectEvents(std::map<int64_t, int> hangs) { hangs_ = std::move(hangs); }

  // The previous owner of these slots died, perhaps because of one of their next events. For the
  // first batches the follower records its events in flight, so that the culprit can be found if
  // this worker dies too.
  void SetOrphans(const std::vector<int>& slots);

  // Records the events about to be handled; empty: none any more.
  std::function<Status(const std::vector<int64_t>& positions)> note_in_flight = {};
  Status ClearInFlight();

  // From now on, batches are serialized across all workers, because of a deadlock. From any thread.
  // IsSerial: whether that is so, perhaps because this follower met a deadlock.
  void Serialize() { serial_ = true; }
  bool IsSerial() const { return serial_; }

  // Called when a stream is parked.
  std::function<void(const std::string& stream, const std::string& error)> on_parked = {};

  const Instance& instance() const { return instance_; }
  const FollowerPulse& pulse() const { return pulse_; }
  std::vector<int> slots() const;

 private:
  Result<Outcome> TryStep(std::stop_token stop);
  struct Owned {
    int64_t generation = 0;
    int64_t stored = 0;  // the checkpoint
    int64_t read = 0;    // the slot has no events between the checkpoint and here
    int64_t effects_until = kEffectsByVersion;
    events::EventMark mark = {};       // of the checkpoint
    events::EventMark read_mark = {};  // of the log's last event at or before `read`, if known
  };

  static constexpr int kMaxHangs = 2;
  static constexpr size_t kCarefulBatch = 32;  // for events that are recorded in flight

  // A failure unrelated to the events: the database is unreachable, a lock or statement timed out,
  // a deadlock, or the outcome of a commit is unknown. Retried indefinitely; never parks a stream.
  static bool IsTrouble(const Error& error);

  static Error SuspectError(int times);

  // For display; never empty, which would mean that the stream is already parked.
  static std::string ReasonOf(const Error& error);

  int64_t EffectsUntil(const Owned& owned) const;
  bool IsLoadedAcrossSwap() const;
  bool HasEffectsLeft() const;
  bool HasEffects(const events::Event& event) const;
  Status UseProcessor(bool side_effects);
  ParkedEvent AsParked(const events::Event& event) const;
  std::vector<events::SlotPosition> Positions(bool side_effects) const;
  Result<events::EventPage> NextPage(bool side_effects);
  bool HasRead(const events::EventPage& page, bool side_effects);
  Status Refresh();
  Result<bool> CheckLog(const events::EventMark& read);
  // follower_replay.cc
  Status ReloadParked();
  Status ReplaySome(std::stop_token stop);
  Result<std::vector<events::Event>> NextToReplay();
  Status StayParked(int64_t version, const Error& error);
  ReadModelProgress InPlace(int slot) const;
  ReadModelProgress ReplayedFor(std::span<const events::Event> events) const;
  Status ReadPage();
  bool EndPage();
  // Events for one transaction. Those of a replay wait in the read model, and leave its slot where
  // it is; all else about them is the same.
  struct Batch {
    std::span<const events::Event> events;
    bool replay = false;

    Batch First(size_t count) const { return {events.first(count), replay}; }
  };
  Batch FirstBatch(const Batch& rest) const;
  Status NoteInFlight(std::span<const events::Event> events);
  void CountOrphanEvents(const Batch& batch);
  Result<size_t> HandleNext(const Batch& rest, std::stop_token stop);
  Result<size_t> HandleTimed(const Batch& batch, std::stop_token stop);
  Status Rewind(size_t tried, const Error& error);
  Result<size_t> HandleBatch(Batch batch, std::stop_token stop);
  Result<size_t> RetryOrGiveUp(const Batch& one, Error error, std::stop_token stop);
  Result<size_t> GiveUp(const Batch& one, const Error& error);
  Status Park(const events::Event& event, const Error& error);
  ReadModelProgress ProgressFor(const Batch& batch) const;
  Result<size_t> DispatchSome(std::span<const events::Event> events, bool side_effects,
                              Transaction& transaction, std::stop_token stop);
  Status PrepareDispatch(std::span<const events::Event> events, bool side_effects,
                         Transaction& transaction);
  void NoteBusy(Transaction& transaction);
  void NoteIdle(Transaction& transaction);
  Status Commit(Transaction& transaction, const ReadModelProgress& progress);
  ReadModelProgress MovesFor(std::span<const events::Event> events) const;

  events::EventLog& log_;
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
  std::map<std::string, int, std::less<>> parked_;  // streams and their slots
  std::optional<ParkedStream> replaying_;           // with its remaining events
  std::map<int64_t, int> hangs_;
  MonoTime flushed_{};
  MonoTime looked_{};
  bool is_stale_ = false;                  // loading checkpoints and parked streams has failed
  bool log_checked_ = false;               // since the checkpoints were loaded
  events::EventMark read_ = {};            // of the last page read since then
  std::optional<events::EventPage> page_;  // in progress
  size_t next_ = 0;                        // index of its next event
  bool page_effects_ = false;              // handled with side effects
  BatchSize batch_size_;
  BatchSize replay_size_;
  milliseconds idle_limit_;
  bool patient_ = false;   // a single event ran into the usual limit of a call
  std::set<int> orphans_;  // slots whose owner died
  int care_left_ = 0;      // how many of their events still need care
  bool noted_ = false;     // that events are in flight
  std::atomic<bool> serial_ = false;
  FollowerPulse pulse_;
};

}  // namespace muster::replica
