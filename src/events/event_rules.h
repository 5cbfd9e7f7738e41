#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "muster/events.h"

namespace muster {

// The rules that hold for every log, checked before a log does anything.

Status CheckAppends(std::span<const StreamAppend> appends);
Status CheckRead(int64_t after, int limit);
Status CheckStreamRead(int64_t after, int limit);
Status CheckSlots(std::span<const SlotPosition> from, int slots, int limit);

// Another number of slots than a log has was asked for. 0: none in particular.
Status CheckSlotCount(int asked, int stored);

Error WrongVersion(std::string_view stream, int64_t expected, int64_t found);

// Which part of the log one query of Read covers: the slots that lie before its end, and an end
// such that about `limit` events are to be expected. `widen` doubles that, for parts in which
// nothing was found.
struct ReadWindow {
  std::vector<SlotPosition> slots;
  int64_t end = 0;  // inclusive
};
ReadWindow NextWindow(std::span<const SlotPosition> from, int slots, int limit, int64_t horizon,
                      int widen);

// How much a read still takes. The first event always fits, however large.
class ReadBudget {
 public:
  ReadBudget(int limit, size_t bytes) : events_(limit), bytes_(bytes) {}

  bool Spent() const { return events_ == 0 || bytes_ == 0; }
  void Take(const Event& event);

 private:
  int events_;
  size_t bytes_;
};

// Of a slot, or of a whole log that has to be searched, no more events are counted than this.
inline constexpr int64_t kMaxCountedLag = 1'000;
inline constexpr int64_t kMaxSearchedLag = 100'000;

// What was counted of a slot beyond `after`, one more than kMaxCountedLag at most, as its lag.
// Positions are dense, and slots get about the same share of them.
SlotLag LagOf(int slot, int64_t counted, int64_t after, int64_t last, int slots);

// How many windows without an event a single Read tries.
inline constexpr int kMaxWindows = 12;

}  // namespace muster
