#include "work/run_summary.h"

#include <algorithm>

#include "work/redriven.h"

namespace muster::work {
namespace {

// Below this fraction, the documents read say little about the whole.
constexpr double kTellingFraction = 0.01;

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

void RecentRate::Add(const ItemInfo& item) {
  documents_ += item.recent_documents;
  span_ = std::max(span_, item.recent);
}

void RecentRate::Add(const RecentRate& other) {
  documents_ += other.documents_;
  span_ = std::max(span_, other.span_);
}

double RecentRate::PerSecond() const {
  return span_.count() > 0 ? documents_ * 1000 / static_cast<double>(span_.count()) : 0;
}

std::optional<milliseconds> TimeLeft(const ItemInfo& item) {
  if (!IsHeld(item) || item.docs_per_second <= 0 || !item.fraction || *item.fraction <= 0) {
    return std::nullopt;
  }
  const double left =
      static_cast<double>(item.progress.counts.read) * (1 - *item.fraction) / *item.fraction;
  return milliseconds(static_cast<int64_t>(1000 * left / item.docs_per_second));
}

Result<RunSummary> RunSummary::Of(store::Store& store, const std::string& run) {
  RunSummary sum;
  MUSTER_TRY(EachItem(store, run, [&](const ItemInfo& item) { sum.Add(item); }));
  MUSTER_TRY(sum.AddRedrives(store, run));
  return sum;
}

Status RunSummary::AddRedrives(store::Store& store, const std::string& run) {
  MUSTER_ASSIGN(const Redriven redriven, Redriven::Of(store, run));
  counts = redriven.InRun(counts);
  return {};
}

void RunSummary::Add(const ItemInfo& item) {
  ++items;
  counts += item.progress.counts;
  pace_.Add(item);
  if (const auto size = SizeOf(item)) {
    sizes_ += *size;
    ++sized_;
  }
  if (item.state == ItemInfo::State::kUnreadable) ++unreadable;
  if (item.state == ItemInfo::State::kDone) ++done;
  if (item.state == ItemInfo::State::kQuarantined) ++quarantined;
  if (item.state != ItemInfo::State::kOpen) return;
  if (!IsHeld(item)) {
    ++waiting;
    if (last_error.empty()) last_error = item.error;
    return;
  }
  ++held;
  if (const auto needs = TimeLeft(item)) longest_ = std::max(longest_.value_or(*needs), *needs);
}

void RunSummary::Add(const RunSummary& other) {
  items += other.items;
  done += other.done;
  held += other.held;
  waiting += other.waiting;
  quarantined += other.quarantined;
  unreadable += other.unreadable;
  if (last_error.empty()) last_error = other.last_error;
  counts += other.counts;
  pace_.Add(other.pace_);
  if (other.longest_) longest_ = std::max(longest_.value_or(*other.longest_), *other.longest_);
  sizes_ += other.sizes_;
  sized_ += other.sized_;
}

std::optional<double> RunSummary::Documents() const {
  if (sized_ == 0) return std::nullopt;
  const auto unsized = static_cast<double>(items - sized_);
  return sizes_ + unsized * sizes_ / static_cast<double>(sized_);
}

std::optional<milliseconds> RunSummary::Left(double rate) const {
  const auto documents = Documents();
  if (!documents || rate <= 0) return longest_;
  const double left = std::max(0.0, *documents - static_cast<double>(counts.read));
  const milliseconds shared(static_cast<int64_t>(1000 * left / rate));
  // An item that is not split has only one worker.
  return std::max(shared, longest_.value_or(shared));
}

Status EachItem(store::Store& store, const std::string& run,
                const std::function<void(const ItemInfo& item)>& each) {
  MUSTER_ASSIGN(const Redriven redriven, Redriven::Of(store, run));
  for (std::string after;;) {
    MUSTER_ASSIGN(std::vector<ItemInfo> items,
                  ListItemsAsMigrated(store, run, after, store::kMaxBatch));
    for (ItemInfo& item : items) {
      item.counts = redriven.InItem(item.name, item.counts);
      each(item);
    }
    if (items.size() < static_cast<size_t>(store::kMaxBatch)) return {};
    after = items.back().key;
  }
}

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
