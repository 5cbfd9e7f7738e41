#include "cli/worker_tally.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "core/interrupt.h"

namespace muster::cli {

void WorkerTally::Acquired(const work::WorkItem& item, const muster::pipeline::Progress& from) {
  const MutexLock lock(mutex_);
  items_in_progress_[item.name()] = {from.counts, from.counts, from.counts};
  progress_.Say(
      (item.fence().epoch == 1 ? "takes " : "takes over ") + item.name() +
      (from.position.empty() ? "" : " after " + std::to_string(from.counts.read) + " documents"));
}

void WorkerTally::Advanced(const work::WorkItem& item, const muster::pipeline::Progress& progress) {
  const MutexLock lock(mutex_);
  pipeline::Counts& seen = items_in_progress_[item.name()].seen;
  read_ += progress.counts.read - seen.read;
  seen = progress.counts;
  progress_.Update(static_cast<uint64_t>(read_));
}

void WorkerTally::Renewed(const work::WorkItem& item) {
  const MutexLock lock(mutex_);
  items_in_progress_[item.name()].durable = item.progress().counts;
}

void WorkerTally::Split(const work::WorkItem& item,
                        const muster::pipeline::Progress& /*progress*/) {
  progress_.Say("splits off a part of " + item.name());
}

void WorkerTally::Ended(const work::WorkItem& item, work::ShardOutcome outcome, const Error* why) {
  const MutexLock lock(mutex_);
  Add(item, outcome);
  ++items_;
  progress_.Say(item.name() + ": " + std::string(work::ShardOutcomeName(outcome)) +
                (why == nullptr || why->code == Code::kCancelled ? "" : ": " + why->ToString()));
}

void WorkerTally::Waits(const std::string& what) {
  const MutexLock lock(mutex_);
  if (what == waits_) return;
  if (waits_.empty()) time_left_.clear();
  waits_ = what;
  ShowNote();
}

void WorkerTally::SetRun(const std::string& words, const std::string& time_left, bool advances) {
  const MutexLock lock(mutex_);
  run_ = words;
  time_left_ = waits_.empty() || advances ? time_left : "";
  ShowNote();
}

std::map<std::string, pipeline::Counts> WorkerTally::sums() const {
  const MutexLock lock(mutex_);
  return sums_;
}

int WorkerTally::items() const {
  const MutexLock lock(mutex_);
  return items_;
}

// Only what is recorded as done counts: attempts that were lost are repeated, here or elsewhere.
void WorkerTally::Add(const work::WorkItem& item, work::ShardOutcome outcome) {
  const auto found = items_in_progress_.find(item.name());
  if (found == items_in_progress_.end()) return;
  const pipeline::Counts from = found->second.from;
  pipeline::Counts until = found->second.durable;
  items_in_progress_.erase(found);
  const pipeline::Counts& stored = item.progress().counts;
  if (outcome != work::ShardOutcome::kLost && stored.read > until.read) until = stored;
  if (until == from) return;
  sums_[item.partition().collection] += {.read = until.read - from.read,
                                         .written = until.written - from.written,
                                         .skipped = until.skipped - from.skipped,
                                         .failed = until.failed - from.failed,
                                         .bytes = until.bytes - from.bytes,
                                         .added = until.added - from.added};
}

// A worker that waits reads nothing, so nothing else would show what it waits for.
void WorkerTally::ShowNote() {
  progress_.Note(WhatIsWaitedFor() + run_ + (time_left_.empty() ? "" : ", ") + time_left_);
  progress_.Update(static_cast<uint64_t>(read_));
}

std::string WorkerTally::WhatIsWaitedFor() const {
  if (waits_.empty()) return "";
  return "waiting for " + waits_ + (run_.empty() ? "" : "; ");
}

void FollowRun(store::Store& store, const std::string& run, Env& env, WorkerTally& tally,
               const std::stop_token& stop) {
  constexpr milliseconds kPause(5000);
  const InterruptScope scope(stop);
  std::optional<std::pair<MonoTime, int64_t>> first;  // documents read at the first look
  int64_t last = 0;                                   // and at the last one
  for (std::chrono::nanoseconds pause = kPause; env.Sleep(pause, stop);) {
    const MonoTime start = env.MonoNow();
    const auto totals = work::ReadTotals(store, run);
    pause = std::max<std::chrono::nanoseconds>(kPause, 20 * (env.MonoNow() - start));
    if (!totals) continue;
    if (!first) first.emplace(start, totals->counts.read);
    const double seconds = std::chrono::duration<double>(start - first->first).count();
    const auto read = static_cast<double>(totals->counts.read - first->second);
    std::string note = "run: " + std::to_string(totals->done) + " of " +
                       std::to_string(totals->items) + " items, " +
                       std::to_string(totals->counts.read);
    if (totals->documents) {
      note += " of about " + std::to_string(static_cast<int64_t>(*totals->documents));
    }
    note += " documents";
    const double rate = seconds > 0 ? read / seconds : totals->docs_per_second;
    std::string left;
    if (const auto time = work::TimeLeft(*totals, rate)) {
      left = FormatSeconds(static_cast<uint64_t>(time->count()) / 1000) + " left";
    }
    const bool advances = std::exchange(last, totals->counts.read) != totals->counts.read;
    tally.SetRun(note, left, advances);
  }
}

}  // namespace muster::cli
