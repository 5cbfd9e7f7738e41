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

// As many events of the page as one transaction takes. A suspect event is handled alone.
std::span<const events::Event> Follower::NextBatch() const {
  const std::span<const events::Event> rest = std::span(page_->events).subspan(next_);
  size_t most = std::min(rest.size(), batch_size_.size());
  if (care_left_ > 0) most = std::min(most, kCarefulBatch);
  const size_t most_bytes = std::min(kMaxBytes, options_.page_bytes);
  size_t count = 0;
  for (size_t bytes = 0; count < most && bytes < most_bytes;) {
    if (hangs_.contains(rest[count].position)) return rest.first(std::max<size_t>(count, 1));
    bytes += rest[count].payload.size() + rest[count].metadata.size();
    ++count;
  }
  return rest.first(count);
}

Status Follower::HandleNext(std::stop_token stop) {
  const std::span<const events::Event> events = NextBatch();
  const events::Event& first = events.front();
  const auto hung = hangs_.find(first.position);
  if (hung != hangs_.end() && hung->second >= kMaxHangs && !parked_.contains(first.stream)) {
    const Status parked = Park(first, SuspectError(hung->second));
    if (!parked) return Rewind(1, parked.error());
    CountOrphanEvents(events);
    ++next_;
    return {};
  }
  if (care_left_ > 0 || hung != hangs_.end()) {
    MUSTER_TRY(NoteInFlight(events));
  } else {
    MUSTER_TRY(ClearInFlight());
  }
  const MonoTime began = env_.MonoNow();
  const auto handled = HandleBatch(events, stop);
  if (handled) {
    const auto took = env_.MonoNow() - began;
    batch_size_.Handled(*handled, took);
    patient_ = patient_ && took > options_.batch_time;
    idle_limit_ = options_.idle_limit;
    CountOrphanEvents(events.first(*handled));
    next_ += *handled;
    return {};
  }
  batch_size_.Failed(events.size());
  if (IsTrouble(handled.error())) return Rewind(events.size(), handled.error());
  // Smaller batches isolate the failing event.
  if (events.size() > 1) return {};
  const Status settled = RetryOrPark(first, handled.error(), stop);
  if (!settled) return Rewind(1, settled.error());
  ++next_;
  return {};
}

void Follower::SetOrphans(const std::vector<int>& slots) {
  orphans_.clear();
  for (const int slot : slots) {
    if (owned_.contains(slot)) orphans_.insert(slot);
  }
  care_left_ = orphans_.empty() ? 0 : options_.batch;
}

// The last owner had the next events of its slots in flight, at most one batch.
void Follower::CountOrphanEvents(std::span<const events::Event> events) {
  for (const events::Event& event : events) {
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
Status Follower::Dispatch(std::span<const events::Event> events, bool side_effects,
                          Transaction& transaction) {
  MUSTER_TRY(PrepareDispatch(events, side_effects, transaction));
  Status handled = Caught([&] { return processor_->Handle(events, transaction); });
  NoteIdle(transaction);
  return handled;
}

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
// streams are parked too.
Result<size_t> Follower::HandleBatch(std::span<const events::Event> events, std::stop_token stop) {
  MUSTER_ASSIGN(const auto transaction, model_.Begin());
  model_.LimitIdle(*transaction, idle_limit_);
  if (patient_) model_.AllowLongCalls(*transaction);
  if (serial_) MUSTER_TRY(model_.Serialize(*transaction, instance_));
  std::vector<events::Event> free;
  std::span<const events::Event> to_handle = events;
  if (!parked_.empty()) {
    for (const events::Event& event : events) {
      if (!parked_.contains(event.stream)) free.push_back(event);
    }
    to_handle = free;
  }
  if (!to_handle.empty()) {
    const bool side_effects = HasEffects(events.front());
    MUSTER_ASSIGN(const size_t handled,
                  DispatchSome(to_handle, side_effects, *transaction, std::move(stop)));
    if (handled < to_handle.size()) {
      const int64_t next = to_handle[handled].position;
      const auto end = std::find_if(events.begin(), events.end(), [&](const events::Event& event) {
        return event.position == next;
      });
      events = events.first(static_cast<size_t>(end - events.begin()));
    }
  }
  ReadModelProgress progress = MovesFor(events);
  for (const events::Event& event : events) {
    if (parked_.contains(event.stream)) progress.parked.push_back(AsParked(event));
  }
  MUSTER_TRY(Commit(*transaction, progress));
  return events.size();
}

// For a single failing event. Transient failures are not attempts.
Status Follower::RetryOrPark(const events::Event& event, Error error, std::stop_token stop) {
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
    const auto handled = HandleBatch({&event, 1}, stop);
    if (handled) return {};
    error = handled.error();
    if (IsTrouble(error)) return error;
  }
  return Park(event, error);
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
