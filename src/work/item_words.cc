#include "work/item_words.h"

#include <algorithm>

#include "work/run_summary.h"

namespace muster {

std::string_view ItemStateName(ItemInfo::State state) {
  switch (state) {
    case ItemInfo::State::kDone:
      return "done";
    case ItemInfo::State::kQuarantined:
      return "quarantined";
    case ItemInfo::State::kUnreadable:
      return "unreadable";
    default:
      return "open";
  }
}

std::string_view RunStateName(const RunInfo& run) {
  if (!run.unreadable.empty()) return "unreadable";
  if (run.finished) return "finished";
  return run.ready ? "running" : "preparing";
}

std::string FormatSpan(milliseconds span) {
  const int64_t seconds = std::max<int64_t>(0, (span.count() + 999) / 1000);
  if (seconds < 120) return std::to_string(seconds) + " s";
  if (seconds < 7200) return std::to_string(seconds / 60) + " min";
  return std::to_string(seconds / 3600) + " h";
}

std::string WhyItem(const ItemInfo& item) {
  if (item.state == ItemInfo::State::kDone) return "";
  if (item.state == ItemInfo::State::kQuarantined) return "given up: " + item.error;
  if (item.state == ItemInfo::State::kUnreadable) return item.error;
  if (IsHeld(item)) return "held, lease ends in " + FormatSpan(*item.due_in);
  if (item.due_in && item.due_in->count() > 0) {
    return "tried again in " + FormatSpan(*item.due_in) + ": " + item.error;
  }
  if (!item.holder.empty()) return "its holder has gone; waits for a worker";
  return "waits for a worker";
}

}  // namespace muster
