#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "muster/events.h"

namespace muster::events {

// Rules common to all logs, checked up front.

Status CheckAppends(std::span<const StreamAppend> appends);
Status CheckRead(int64_t after, int limit);
Status CheckStreamRead(int64_t after, int limit);
Status CheckSlots(std::span<const SlotPosition> from, int slots, int limit);

// Fails if a different number of slots was requested than the log has. 0: any.
Status CheckSlotCount(int asked, int stored);

Error WrongVersion(std::string_view stream, int64_t expected, int64_t found);

// The part of the log covered by one query of Read: the slots positioned before its end, and an end
// chosen to expect about `limit` events. `widen` doubles it, for ranges without events.
struct ReadWindow {
  std::vector<SlotPosition> slots;
  int64_t end = 0;  // inclusive
};
ReadWindow NextWindow(std::span<const SlotPosition> from, int slots, int limit, int64_t horizon,
                      int widen);

// What a read may still return. The first event always fits, however large.
class ReadBudget {
 public:
  ReadBudget(int limit, size_t bytes) : events_(limit), bytes_(bytes) {}

  bool Spent() const { return events_ == 0 || bytes_ == 0; }
  void Take(const Event& event);

 private:
  int events_;
  size_t bytes_;
};

// Counting stops here, for a slot and for a whole log that has to be searched.
inline constexpr int64_t kMaxCountedLag = 1'000;
inline constexpr int64_t kMaxSearchedLag = 100'000;

// The lag of a slot from the events counted after `after`, at most kMaxCountedLag + 1. Positions
// are dense, and slots share them about evenly.
SlotLag LagOf(int slot, int64_t counted, int64_t after, int64_t last, int slots);

// How many empty windows a single Read tries.
inline constexpr int kMaxWindows = 12;

}  // namespace muster::events
