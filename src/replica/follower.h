#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/events.h"
#include "muster/replica.h"
#include "replica/page_reader.h"
#include "replica/read_model.h"

namespace muster {

struct FollowerOptions {
  int batch = 1'000;
  int max_attempts = 5;
  milliseconds retry_delay{200};
  bool read_ahead = false;          // by another thread
  milliseconds flush_every{5'000};  // stores positions of slots in which nothing happens
};

// What a follower is doing, for whoever watches from another thread: since when it has been in a
// processor's hands, and where.
struct FollowerPulse {
  std::atomic<int64_t> busy_since_ns = 0;  // by Env::MonoNow; 0: it is not
  std::atomic<int64_t> position = 0;       // of the first event in its hands
  std::atomic<int64_t> handled = 0;        // events so far
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

  // Handles the next batch. kLeaseLost: a slot is somebody else's; to be stopped. Other failures
  // pass, or stay visible: ask again after a pause.
  Result<Outcome> Step(std::stop_token stop);

  // Stores how far slots without events have come. To be called before it is stopped in good order.
  Status Flush();

  // Events in which a processor has hung, so that they are handled alone, or not at all.
  void Beware(std::map<int64_t, int> hangs) { hangs_ = std::move(hangs); }

  // Told when a stream is parked.
  std::function<void(const std::string& stream, const std::string& error)> on_parked = {};

  const Instance& instance() const { return instance_; }
  const FollowerPulse& pulse() const { return pulse_; }
  std::vector<int> slots() const;

 private:
  struct Owned {
    int64_t generation = 0;
    int64_t stored = 0;  // the checkpoint
    int64_t read = 0;    // nothing of the slot lies between it and here
    int64_t effects_until = kEffectsByVersion;
  };

  static constexpr int kMaxHangs = 2;

  // A failure that says nothing about the events: the database is away, or it cannot be told what
  // became of a commit.
  static bool IsTrouble(const Error& error);

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
  Status LookAtParked();
  Status ReplaySome(std::stop_token stop);
  Result<std::vector<Event>> NextToReplay();
  Status ReplayOneByOne(std::span<const Event> events, std::stop_token stop);
  Status Replayed(std::span<const Event> events);
  Status StayParked(int64_t version, const Error& error);
  Status AfterTrouble(const Error& error);
  ReadModelProgress InPlace(int slot) const;

  Status HandleBatch(std::span<const Event> events);
  Status HandleOneByOne(std::span<const Event> events, std::stop_token stop);
  Status HandleOne(const Event& event);
  Status HandleWithRetries(const Event& event, std::stop_token stop);
  Status Park(const Event& event, const Error& error);
  Status Hand(std::span<const Event> events, bool side_effects, Transaction& transaction);
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
  int troubles_ = 0;  // batches in a row whose outcome was nobody's fault in particular
  FollowerPulse pulse_;
};

}  // namespace muster
