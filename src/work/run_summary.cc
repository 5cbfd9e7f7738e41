#include "work/run_summary.h"

#include <algorithm>

#include "core/enum_names.h"
#include "core/timestamp.h"
#include "work/records.h"

namespace muster::work {
namespace {

// Below this fraction, the documents read say little about the whole.
constexpr double kTellingFraction = 0.01;

constexpr EnumNames<ItemInfo::State, 4> kItemStates{{{
    {ItemInfo::State::kOpen, "open"},
    {ItemInfo::State::kDone, "done"},
    {ItemInfo::State::kQuarantined, "quarantined"},
    {ItemInfo::State::kUnreadable, "unreadable"},
}}};

constexpr EnumNames<RunInfo::State, 7> kRunStates{{{
    {RunInfo::State::kPreparing, "preparing"},
    {RunInfo::State::kRunning, "running"},
    {RunInfo::State::kWaiting, "waiting"},
    {RunInfo::State::kStopped, "stopped"},
    {RunInfo::State::kFinished, "finished"},
    {RunInfo::State::kRemoving, "removing"},
    {RunInfo::State::kUnreadable, "unreadable"},
}}};

std::optional<double> SizeOf(const ItemInfo& item) {
  const auto read = static_cast<double>(item.progress.counts.read);
  if (item.state == ItemInfo::State::kDone) return read;
  if (item.fraction && *item.fraction >= kTellingFraction) return read / *item.fraction;
  // Parts that were split off are counted in their own items.
  if (item.partition.documents && item.progress.former_ends.empty()) {
    return std::max(read, static_cast<double>(*item.partition.documents));
  }
  return std::nullopt;
}

}  // namespace

bool IsHeld(const ItemInfo& item) {
  return item.state == ItemInfo::State::kOpen && !item.holder.empty() && item.due_in &&
         item.due_in->count() > 0;
}

bool MayRetry(const ItemInfo& item) {
  if (item.state == ItemInfo::State::kQuarantined) return true;
  return item.state == ItemInfo::State::kOpen && item.holder.empty() && !item.error.empty() &&
         item.due_in && item.due_in->count() > 0;
}

RecentRate& RecentRate::operator+=(const RecentRate& other) {
  documents += other.documents;
  span = std::max(span, other.span);
  return *this;
}

double RecentRate::PerSecond() const {
  return span.count() > 0 ? documents * 1000 / static_cast<double>(span.count()) : 0;
}

std::optional<milliseconds> TimeLeft(const ItemInfo& item) {
  if (!IsHeld(item) || item.docs_per_second <= 0 || !item.fraction || *item.fraction <= 0) {
    return std::nullopt;
  }
  const double left =
      static_cast<double>(item.progress.counts.read) * (1 - *item.fraction) / *item.fraction;
  return milliseconds(static_cast<int64_t>(1000 * left / item.docs_per_second));
}

std::optional<milliseconds> TimeLeft(const RunTotals& totals, double docs_per_second) {
  if (!totals.documents || docs_per_second <= 0) return totals.longest;
  const double left = std::max(0.0, *totals.documents - static_cast<double>(totals.counts.read));
  const milliseconds shared(static_cast<int64_t>(1000 * left / docs_per_second));
  // An item that is not split has only one worker.
  return std::max(shared, totals.longest.value_or(shared));
}

void RunSummary::Add(const ItemInfo& item) {
  ++sum_.items;
  sum_.counts += item.progress.counts;
  recent_ += item.recent;
  for (const FailureReason& reason : item.reasons) reasons_.Add(reason);
  if (const auto size = SizeOf(item)) {
    sizes_ += *size;
    ++sized_;
  }
  if (item.state == ItemInfo::State::kUnreadable) ++sum_.unreadable;
  if (item.state == ItemInfo::State::kDone) ++sum_.done;
  if (item.state == ItemInfo::State::kQuarantined) ++sum_.quarantined;
  if (item.state != ItemInfo::State::kOpen) return;
  if (!IsHeld(item)) {
    ++sum_.waiting;
    if (sum_.last_error.empty()) sum_.last_error = item.error;
    return;
  }
  ++sum_.held;
  sum_.longest = std::max(sum_.longest, TimeLeft(item));
}

void RunSummary::Add(const RunSummary& other) {
  sum_.items += other.sum_.items;
  sum_.done += other.sum_.done;
  sum_.held += other.sum_.held;
  sum_.waiting += other.sum_.waiting;
  sum_.quarantined += other.sum_.quarantined;
  sum_.unreadable += other.sum_.unreadable;
  sum_.counts += other.sum_.counts;
  sum_.longest = std::max(sum_.longest, other.sum_.longest);
  if (sum_.last_error.empty()) sum_.last_error = other.sum_.last_error;
  recent_ += other.recent_;
  for (const FailureReason& reason : other.reasons_.List()) reasons_.Add(reason);
  sizes_ += other.sizes_;
  sized_ += other.sized_;
}

RunTotals RunSummary::Totals(const Redriven& redriven) const {
  RunTotals totals = sum_;
  totals.counts = redriven.InRun(sum_.counts);
  totals.reasons = StillFailed(reasons_.List(), totals.counts.failed);
  if (sum_.held + sum_.waiting > 0) totals.docs_per_second = recent_.PerSecond();
  if (sized_ > 0) {
    const auto unsized = static_cast<double>(sum_.items - sized_);
    totals.documents = sizes_ + unsized * sizes_ / static_cast<double>(sized_);
  }
  return totals;
}

Result<RunTotals> ReadTotals(store::Store& store, const std::string& run) {
  return EachItem(store, run, [](const ItemInfo& /*item*/) {});
}

Result<RunTotals> EachItem(store::Store& store, const std::string& run,
                           const std::function<void(const ItemInfo& item)>& each) {
  MUSTER_ASSIGN(const Redriven redriven, Redriven::Of(store, run));
  RunSummary sum;
  for (std::string after;;) {
    MUSTER_ASSIGN(std::vector<ItemInfo> items,
                  ListItemsAsMigrated(store, run, after, store::kMaxBatch));
    for (ItemInfo& item : items) {
      sum.Add(item);
      redriven.ApplyTo(item);
      each(item);
    }
    if (items.size() < static_cast<size_t>(store::kMaxBatch)) return sum.Totals(redriven);
    after = items.back().key;
  }
}

std::string_view ItemStateName(ItemInfo::State state) { return kItemStates.NameOf(state); }

RunInfo::State RunStateOf(const RunInfo& run, const RunTotals& totals) {
  if (!run.unreadable.empty()) return RunInfo::State::kUnreadable;
  if (run.removing) return RunInfo::State::kRemoving;
  if (run.finished) return RunInfo::State::kFinished;
  if (!run.stopped.empty()) return RunInfo::State::kStopped;
  if (!run.ready) return RunInfo::State::kPreparing;
  return totals.held > 0 ? RunInfo::State::kRunning : RunInfo::State::kWaiting;
}

std::string_view RunStateName(RunInfo::State state) { return kRunStates.NameOf(state); }

std::string WhyRun(const RunInfo& run, const RunTotals& totals) {
  if (!run.unreadable.empty()) return run.unreadable;
  if (run.removing) {
    return "its removal was interrupted, unless a process is still doing it: repeat 'muster work "
           "delete' or "
           "'reset'";
  }
  if (!run.stopped.empty() && !run.finished) {
    return "stopped: " + run.stopped + "; " + kStoppedHint;
  }
  if (totals.unreadable > 0) return std::to_string(totals.unreadable) + " items cannot be read";
  if (run.finished && totals.quarantined == 0) return "";
  if (totals.items == totals.done + totals.quarantined && totals.quarantined > 0) {
    return std::to_string(totals.quarantined) +
           " items are quarantined; retry them once the cause is fixed";
  }
  if (totals.held > 0) return "";
  if (!run.ready) return "its items are being created, or the worker that creates them is gone";
  if (totals.waiting == 0) return "";
  std::string why = "no worker holds an item: start one with 'muster worker'";
  // Workers may be running and waiting for the same thing.
  if (!totals.last_error.empty())
    why += ", unless some are waiting after the last failure: " + totals.last_error;
  return why;
}

std::string WhyItem(const ItemInfo& item) {
  if (item.state == ItemInfo::State::kDone) return "";
  if (item.state == ItemInfo::State::kQuarantined) return "given up: " + item.error;
  if (item.state == ItemInfo::State::kUnreadable) return item.error;
  const std::string failed = item.error.empty() ? "" : "; last failure: " + item.error;
  // Until it has made progress, its holder may be waiting for the same thing again.
  if (IsHeld(item)) return "held, lease expires in " + FormatSpan(*item.due_in) + failed;
  if (item.due_in && item.due_in->count() > 0) {
    return "retry in " + FormatSpan(*item.due_in) + ": " + item.error;
  }
  if (!item.holder.empty()) return "its holder is gone; waiting for a worker" + failed;
  return "waiting for a worker" + failed;
}

}  // namespace muster::work
