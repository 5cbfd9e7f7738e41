#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "muster/env.h"
#include "states/run/scope.h"

namespace muster::states {

// What an event is about. AWS has a type for each kind of state and of call; this is what they have
// in common.
enum class EventKind {
  kExecutionStarted,
  kTaskEntered,   // a state that makes a call
  kStateEntered,  // any other
  kStateExited,
  kCallScheduled,
  kCallSucceeded,
  kCallFailed,
  kCallTimedOut,
  kOther,
};

// One event of an execution's history, with AWS's type names.
struct Event {
  int64_t id = 0;
  int64_t previous = 0;
  std::string type;
  WallTime time{};
  std::string name = {};   // of the state or the Map
  Value payload = {};      // input, output or parameters, depending on the type
  bool truncated = false;  // the payload was too large to be stored
  std::string error = {};
  std::string cause = {};
  Json details = {};  // other fields of the type: resource, index, …; null: none

  EventKind Kind() const;

  // What it says beside its type and time, as GetExecutionHistory shows it; may be empty.
  Json Details() const;

  // As GetExecutionHistory shows it: {"timestamp":…,"type":…,"id":…,"previousEventId":…,
  // "stateEnteredEventDetails":{…}}.
  Json ToJson() const;

  // The short form that is compared with recordings: ["PassStateEntered","Name"], ["TaskFailed"].
  Json ToShort() const;
};

// Receives the history of a running flow, and assigns ids.
class EventLog {
 public:
  virtual ~EventLog() = default;
  virtual int64_t Add(Event event) = 0;
  virtual int64_t count() const = 0;
};

// A history in memory.
class MemoryEventLog final : public EventLog {
 public:
  int64_t Add(Event event) override {
    event.id = static_cast<int64_t>(events_.size()) + 1;
    events_.push_back(std::move(event));
    return events_.back().id;
  }
  int64_t count() const override { return static_cast<int64_t>(events_.size()); }
  const std::vector<Event>& events() const { return events_; }

 private:
  std::vector<Event> events_;
};

// Per execution.
inline constexpr int64_t kMaxEvents = 25'000;

}  // namespace muster::states
