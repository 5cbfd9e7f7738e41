#include "events/event_rules.h"

#include <algorithm>
#include <string>

#include "core/fnv.h"
#include "core/text_rules.h"

namespace muster::events {
namespace {

Error Invalid(std::string message) { return Error{Code::kInvalid, std::move(message)}; }

Status CheckEvent(const NewEvent& event) {
  MUSTER_TRY(CheckName("the type of an event", event.type, kMaxEventTypeBytes));
  MUSTER_TRY(CheckText("the id of an event", event.id, kMaxEventTypeBytes));
  if (event.payload.size() + event.metadata.size() > kMaxEventBytes) {
    return Invalid("an event of " + std::to_string(event.payload.size() + event.metadata.size()) +
                   " bytes is larger than the " + std::to_string(kMaxEventBytes) +
                   " that are allowed");
  }
  MUSTER_TRY(CheckText("a payload", event.payload, kMaxEventBytes));
  return CheckText("metadata", event.metadata, kMaxEventBytes);
}

Status CheckLimit(int limit) {
  if (limit >= 1 && limit <= kMaxEventBatch) return {};
  return Invalid("a read of " + std::to_string(limit) + " events is outside 1.." +
                 std::to_string(kMaxEventBatch));
}

}  // namespace

// FNV-1a, finalised so that the low bits depend on all others. Stored with every event: must never
// change.
int SlotOf(std::string_view stream, int slots) {
  uint64_t hash = Fnv1a(stream);
  hash ^= hash >> 32;
  hash *= 0x9e3779b97f4a7c15;
  hash ^= hash >> 29;
  return static_cast<int>(hash % static_cast<uint64_t>(slots));
}

Status CheckAppends(std::span<const StreamAppend> appends) {
  size_t count = 0;
  for (const StreamAppend& append : appends) {
    MUSTER_TRY(CheckName("the name of a stream", append.stream, kMaxStreamBytes));
    if (append.expected < kAnyVersion) return Invalid("an expected version is negative");
    for (const NewEvent& event : append.events) {
      if (auto checked = CheckEvent(event); !checked) {
        return checked.error().Within("stream '" + append.stream + "'");
      }
    }
    count += append.events.size();
  }
  if (count > static_cast<size_t>(kMaxEventBatch)) {
    return Invalid(std::to_string(count) + " events in one append are more than " +
                   std::to_string(kMaxEventBatch));
  }
  return {};
}

Status CheckRead(int64_t after, int limit) {
  if (after < 0) return Invalid("a position is negative");
  return CheckLimit(limit);
}

Status CheckStreamRead(int64_t after, int limit) {
  if (after < -1) return Invalid("a version is negative");
  return CheckLimit(limit);
}

Status CheckSlots(std::span<const SlotPosition> from, int slots, int limit) {
  for (const SlotPosition& start : from) {
    if (start.slot < 0 || start.slot >= slots) {
      return Invalid("no slot " + std::to_string(start.slot) + " in a log of " +
                     std::to_string(slots) + " slots");
    }
    if (start.position < 0) return Invalid("a position is negative");
  }
  return CheckLimit(limit);
}

Status CheckSlotCount(int asked, int stored) {
  if (asked == 0 || asked == stored) return {};
  return Error{
      Code::kIncompatible,
      "the event log has " + std::to_string(stored) + " slots, not " + std::to_string(asked),
      "the number is fixed when a log is created: leave it out, or start a new log in "
      "another namespace"};
}

EventMark MarkOf(const Event& event) {
  uint64_t hash = Fnv1a(event.id, kFnvStart ^ static_cast<uint64_t>(event.position));
  // Tables of other libraries may have no ids.
  hash = Fnv1a(event.stream, hash ^ static_cast<uint64_t>(event.version));
  return {event.position, static_cast<int64_t>(hash)};
}

Error WrongVersion(std::string_view stream, int64_t expected, int64_t found) {
  return Error{Code::kConflict,
               "stream '" + std::string(stream) + "' is at version " + std::to_string(found) +
                   ", not at " + std::to_string(expected),
               "read the stream again, then decide whether to append at its new version"};
}

void ReadBudget::Take(const Event& event) {
  --events_;
  bytes_ -= std::min(bytes_, event.payload.size() + event.metadata.size());
}

SlotLag LagOf(int slot, int64_t counted, int64_t after, int64_t last, int slots) {
  if (counted <= kMaxCountedLag) return {.slot = slot, .events = counted};
  return {.slot = slot,
          .events = std::max(counted, (last - after) / slots),
          .oldest = {},
          .estimated = true};
}

ReadWindow NextWindow(std::span<const SlotPosition> from, int slots, int limit, int64_t horizon,
                      int widen) {
  ReadWindow window;
  if (from.empty()) return {{}, horizon};
  int64_t start = from.front().position;
  for (const SlotPosition& slot : from) start = std::min(start, slot.position);
  const int64_t share = (int64_t{limit} * slots / static_cast<int64_t>(from.size())) + 1;
  window.end = std::min(horizon, start + (share << std::min(widen, kMaxWindows)));
  for (const SlotPosition& slot : from) {
    if (slot.position < window.end) window.slots.push_back(slot);
  }
  return window;
}

}  // namespace muster::events
