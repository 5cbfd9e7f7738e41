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

}  // namespace muster::work
