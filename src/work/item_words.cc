#include "work/item_words.h"

#include <algorithm>

#include "work/run_summary.h"

namespace muster::work {

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

std::string_view RunStateName(const RunInfo& run, const RunSummary& sum) {
  if (!run.unreadable.empty()) return "unreadable";
  if (run.finished) return "finished";
  if (!run.ready) return "preparing";
  return sum.held > 0 ? "running" : "waiting";
}

std::string WhyRun(const RunInfo& run, const RunSummary& sum) {
  if (!run.unreadable.empty()) return run.unreadable;
  if (sum.unreadable > 0) return std::to_string(sum.unreadable) + " items cannot be read";
  if (run.finished && sum.quarantined == 0) return "";
  if (sum.items == sum.done + sum.quarantined && sum.quarantined > 0) {
    return std::to_string(sum.quarantined) +
           " items are quarantined; retry them once the cause is fixed";
  }
  if (sum.held > 0) return "";
  if (!run.ready) return "its items are being created, or the worker that creates them is gone";
  if (sum.waiting == 0) return "";
  std::string why = "no worker holds an item: start one with 'muster worker'";
  // Workers may be running and waiting for the same thing.
  if (!sum.last_error.empty())
    why += ", unless some are waiting after the last failure: " + sum.last_error;
  return why;
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
  if (IsHeld(item)) return "held, lease expires in " + FormatSpan(*item.due_in);
  if (item.due_in && item.due_in->count() > 0) {
    return "retry in " + FormatSpan(*item.due_in) + ": " + item.error;
  }
  const std::string failed = item.error.empty() ? "" : "; last failure: " + item.error;
  if (!item.holder.empty()) return "its holder is gone; waiting for a worker" + failed;
  return "waiting for a worker" + failed;
}

}  // namespace muster::work
