// Handles a page of events in batches: their size, failing events, and precautions against events
// that may have killed a process.

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>

#include "core/backoff.h"
#include "core/guard.h"
#include "core/log.h"
#include "core/planted_bug.h"
#include "replica/follower.h"

namespace muster::replica {
namespace {

constexpr milliseconds kLongestDelay{60'000};
constexpr size_t kMaxParked = 100;             // beyond this the events are not the cause
constexpr size_t kMaxBytes = 8 * 1024 * 1024;  // of a batch, except for its last event

class BatchTurn final : public Turn {
 public:
  BatchTurn(Env& env, std::function<void()> progress, milliseconds time, std::stop_token stop)
      : env_(env),
        progress_(std::move(progress)),
        end_(env.MonoNow() + time),
        stop_(std::move(stop)) {}

  bool Over() const override { return stop_.stop_requested() || env_.MonoNow() >= end_; }
  void Progress() override { progress_(); }

 private:
  Env& env_;
  const std::function<void()> progress_;
  const MonoTime end_;
  const std::stop_token stop_;
};

// Calls a processor. Running out of resources is not blamed on the events.
template <class Call>
std::invoke_result_t<Call> Caught(Call&& call) {
  const auto threw = [](Code code, const std::string& words) {
    return Error{code, "the processor threw: " + words};
  };
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return threw(Code::kUnavailable, "out of memory");
  } catch (const std::system_error& error) {
    const int value = error.code().value();
    const bool lacks = value == EMFILE || value == ENFILE || value == ENOMEM || value == EAGAIN;
    return threw(lacks ? Code::kUnavailable : Code::kInternal, error.what());
  } catch (const std::exception& error) {
    return threw(Code::kInternal, error.what());
  } catch (const ProcessEnd&) {
    throw;
  } catch (...) {
    return threw(Code::kInternal, "an exception without a message");
  }
}

}  // namespace

Error Follower::SuspectError(int times) {
  return {Code::kInternal, "its worker died or hung in it " + std::to_string(times) + " times"};
}

// As many of these events as one transaction takes. A suspect event is handled alone.
Follower::Batch Follower::FirstBatch(const Batch& rest) const {
  const BatchSize& size = rest.replay ? replay_size_ : batch_size_;
  size_t most = std::min(rest.events.size(), size.size());
  if (care_left_ > 0) most = std::min(most, kCarefulBatch);
  const size_t most_bytes = std::min(kMaxBytes, options_.page_bytes);
  size_t count = 0;
  for (size_t bytes = 0; count < most && bytes < most_bytes;) {
    const events::Event& event = rest.events[count];
    if (hangs_.contains(event.position)) return rest.First(std::max<size_t>(count, 1));
    bytes += event.payload.size() + event.metadata.size();
    ++count;
  }
  return rest.First(count);
}

// Handles the first of these events; returns how many are settled. None: they come in smaller
// batches, or are loaded again.
Result<size_t> Follower::HandleNext(const Batch& rest, std::stop_token stop) {
  const Batch batch = FirstBatch(rest);
  const events::Event& first = batch.events.front();
  const auto hung = hangs_.find(first.position);
  const bool passed_over = !batch.replay && parked_.contains(first.stream);
  Result<size_t> settled = size_t{0};
  size_t tried = 1;
  if (hung != hangs_.end() && hung->second >= kMaxHangs && !passed_over) {
    settled = GiveUp(batch, SuspectError(hung->second));
  } else {
    // Parked events may have killed processes before.
    if (care_left_ > 0 || hung != hangs_.end() || batch.replay) {
      MUSTER_TRY(NoteInFlight(batch.events));
    } else {
      MUSTER_TRY(ClearInFlight());
    }
    settled = HandleTimed(batch, stop);
    if (!settled) tried = batch.events.size();
    const bool poison = !settled && !IsTrouble(settled.error());
    // Smaller batches isolate the failing event.
    if (poison && tried > 1) return 0;
    if (poison) settled = RetryOrGiveUp(batch, settled.error(), std::move(stop));
  }
  if (settled) {
    CountOrphanEvents(batch.First(*settled));
    return settled;
  }
  MUSTER_TRY(Rewind(tried, settled.error()));
  return 0;
}

// The duration decides about the size of the next batch.
Result<size_t> Follower::HandleTimed(const Batch& batch, std::stop_token stop) {
  BatchSize& size = batch.replay ? replay_size_ : batch_size_;
  const MonoTime began = env_.MonoNow();
  auto handled = HandleBatch(batch, std::move(stop));
  if (!handled) {
    size.Failed(batch.events.size());
    return handled;
  }
  const auto took = env_.MonoNow() - began;
  size.Handled(*handled, took);
  patient_ = patient_ && took > options_.batch_time;
  idle_limit_ = options_.idle_limit;
  return handled;
}

void Follower::SetOrphans(const std::vector<int>& slots) {
  orphans_.clear();
  for (const int slot : slots) {
    if (owned_.contains(slot)) orphans_.insert(slot);
  }
  care_left_ = orphans_.empty() ? 0 : options_.batch;
}

// The last owner had the next events of its slots in flight, at most one batch.
void Follower::CountOrphanEvents(const Batch& batch) {
  if (batch.replay) return;
  for (const events::Event& event : batch.events) {
    if (care_left_ > 0 && orphans_.contains(event.slot)) --care_left_;
  }
}

Status Follower::NoteInFlight(std::span<const events::Event> events) {
  if (!note_in_flight || PLANTED_BUG(deaths_are_not_counted)) return {};
  std::vector<int64_t> positions;
  for (const events::Event& event : events) positions.push_back(event.position);
  noted_ = true;  // maybe even if it fails
  return note_in_flight(positions);
}

Status Follower::ClearInFlight() {
  if (!noted_) return {};
  MUSTER_TRY(note_in_flight({}));
  noted_ = false;
  return {};
}

// The outcome is unknown, or unrelated to the events: continues from the checkpoints.
Status Follower::Rewind(size_t tried, const Error& error) {
  if (error.code == Code::kCancelled) return error;
  if (model_.IsDeadlock(error) && !serial_.exchange(true)) {
    Log(Level::kWarning,
        "workers deadlocked on each other's rows; from now on they handle one batch at a time",
        {{"projection", instance_.projection}, {"error", error.message}});
  }
  MUSTER_TRY(Refresh());
  // Still ours, but at another position: an operator moved the slot.
  if (error.code == Code::kLeaseLost) return {};
  // A single event may exceed the usual limits: of a transaction that is idle, in case its process
  // is gone, and of a call.
  if (tried == 1) {
    idle_limit_ = std::min(idle_limit_ * 2, options_.idle_limit_most);
    patient_ = true;
  }
  return error;
}

// Passes the events to a processor, under watch.
Result<size_t> Follower::DispatchSome(std::span<const events::Event> events, bool side_effects,
                                      Transaction& transaction, std::stop_token stop) {
  BatchTurn turn(
      env_, [&] { NoteBusy(transaction); }, options_.batch_time, std::move(stop));
  MUSTER_TRY(PrepareDispatch(events, side_effects, transaction));
  auto handled = Caught([&] { return processor_->HandleSome(events, transaction, turn); });
  NoteIdle(transaction);
  if (!handled || (*handled >= 1 && *handled <= events.size())) return handled;
  return Error{Code::kInternal, "the processor reported that it handled " +
                                    std::to_string(*handled) + " of " +
                                    std::to_string(events.size()) + " events"};
}

Status Follower::PrepareDispatch(std::span<const events::Event> events, bool side_effects,
                                 Transaction& transaction) {
  if (const Status built = UseProcessor(side_effects); !built) {
    return Error{Code::kUnavailable, built.error().message};  // not the events' fault
  }
  pulse_.Take(events);
  NoteBusy(transaction);
  return {};
}

// Starts the hang watch. The processor's calls to the read model time out well before the watch
// reports a hang, or an unresponsive database would be blamed on the events; but after the four
// fifths at which the server itself ends a statement.
void Follower::NoteBusy(Transaction& transaction) {
  const MonoTime now = env_.MonoNow();
  pulse_.Busy(now);
  model_.EndCallsBy(transaction, now + options_.handle_timeout * 9 / 10);
}

// The commit is not watched.
void Follower::NoteIdle(Transaction& transaction) {
  pulse_.busy_since_ns = 0;
  model_.EndCallsBy(transaction, MonoTime::max());
}

// Handles a batch, or its first events, in one transaction; returns how many. Events of parked
// streams are parked too, unless they are replayed.
Result<size_t> Follower::HandleBatch(Batch batch, std::stop_token stop) {
  MUSTER_ASSIGN(const auto transaction, model_.Begin());
  model_.LimitIdle(*transaction, idle_limit_);
  if (patient_) model_.AllowLongCalls(*transaction);
  if (serial_) MUSTER_TRY(model_.Serialize(*transaction, instance_));
  std::vector<events::Event> free;
  std::span<const events::Event> to_handle = batch.events;
  if (!batch.replay && !parked_.empty()) {
    for (const events::Event& event : batch.events) {
      if (!parked_.contains(event.stream)) free.push_back(event);
    }
    to_handle = free;
  }
  if (!to_handle.empty()) {
    const events::Event& first = to_handle.front();
    const bool side_effects =
        batch.replay ? !replaying_->quiet.contains(first.version) : HasEffects(first);
    MUSTER_ASSIGN(const size_t handled,
                  DispatchSome(to_handle, side_effects, *transaction, std::move(stop)));
    if (handled < to_handle.size()) {
      const int64_t next = to_handle[handled].position;
      const auto end =
          std::find_if(batch.events.begin(), batch.events.end(),
                       [&](const events::Event& event) { return event.position == next; });
      batch = batch.First(static_cast<size_t>(end - batch.events.begin()));
    }
  }
  MUSTER_TRY(Commit(*transaction, ProgressFor(batch)));
  return batch.events.size();
}

ReadModelProgress Follower::ProgressFor(const Batch& batch) const {
  if (batch.replay) return ReplayedFor(batch.events);
  ReadModelProgress progress = MovesFor(batch.events);
  for (const events::Event& event : batch.events) {
    if (parked_.contains(event.stream)) progress.parked.push_back(AsParked(event));
  }
  return progress;
}

// For a single failing event. Transient failures are not attempts.
Result<size_t> Follower::RetryOrGiveUp(const Batch& one, Error error, std::stop_token stop) {
  const events::Event& event = one.events.front();
  const milliseconds longest = std::max(options_.retry_delay, kLongestDelay);
  Backoff backoff(env_, stop, {.first = options_.retry_delay, .longest = longest});
  for (int attempt = 1; attempt < options_.max_attempts; ++attempt) {
    Log(Level::kWarning, "an event failed; it will be retried",
        {{"projection", instance_.projection},
         {"stream", event.stream},
         {"position", event.position},
         {"attempt", attempt},
         {"error", error.message}});
    if (!backoff.Pause()) return Error{Code::kCancelled, "stop requested"};
    auto handled = HandleBatch(one, stop);
    if (handled || IsTrouble(handled.error())) return handled;
    error = handled.error();
  }
  return GiveUp(one, error);
}

// A replay is over then: what waits was loaded again.
Result<size_t> Follower::GiveUp(const Batch& one, const Error& error) {
  const events::Event& event = one.events.front();
  if (one.replay) {
    MUSTER_TRY(StayParked(event.version, error));
    return 0;
  }
  MUSTER_TRY(Park(event, error));
  return 1;
}

Status Follower::Park(const events::Event& event, const Error& error) {
  if (parked_.size() >= kMaxParked) {
    return Error{
        Code::kReadOnly,
        std::to_string(kMaxParked) + " streams are parked; the last error: " + error.message,
        "so many failures have one cause: fix it, then replay the parked streams"};
  }
  MUSTER_ASSIGN(const auto transaction, model_.Begin());
  ReadModelProgress progress = MovesFor({&event, 1});
  progress.parked.push_back(AsParked(event));
  progress.error = ReasonOf(error);
  MUSTER_TRY(Commit(*transaction, progress));
  parked_[event.stream] = event.slot;
  Log(Level::kError, "a stream was parked; its events wait, other streams continue",
      {{"projection", instance_.projection},
       {"stream", event.stream},
       {"position", event.position},
       {"error", error.message}});
  if (on_parked) on_parked(event.stream, error.message);
  return {};
}

}  // namespace muster::replica
