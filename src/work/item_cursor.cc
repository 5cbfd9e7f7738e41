#include "work/item_cursor.h"

#include <utility>

#include "core/backoff.h"
#include "core/planted_bug.h"
#include "work/target_check.h"

namespace muster::work {

ItemCursor::ItemCursor(WorkCoordinator& coordinator, pipeline::Pipeline& pipeline, LeasedItem& item,
                       WorkObserver& observer, const StopRequests& stops,
                       const pipeline::Progress& start, bool kept)
    : coordinator_(coordinator),
      pipeline_(pipeline),
      item_(item),
      observer_(observer),
      stops_(stops),
      kept_(kept),
      began_(coordinator.env().MonoNow()),
      saved_at_(began_),
      acknowledged_(start),
      reasons_(item.reasons()) {}

ItemCursor::~ItemCursor() { coordinator_.budget().estimate().Dropped(unsaved_); }

void ItemCursor::SetSaved() {
  coordinator_.budget().estimate().Saved(unsaved_);
  unsaved_ = {};
}

void ItemCursor::Estimate(const pipeline::Counts& counts) {
  const pipeline::Counts& before = acknowledged_.counts;
  const pipeline::Counts batch{.read = counts.read - before.read,
                               .failed = counts.failed - before.failed};
  unsaved_ += batch;
  coordinator_.budget().estimate().Add(batch);
}

// A fifth of the lease is reserved for the hand-over.
pipeline::Patience ItemCursor::NextPatience() {
  return {.deadline = item_.deadline() - coordinator_.terms().lease / 5,
          .stop = stops_.abort,
          .waits = [this](const Error& why) {
            Wait("the " + std::string(PartyName(Party::kSink)) + ": " + why.message);
          }};
}

// Others see the item as held: its record says why it gets no further. A wait that is short is not
// worth a write.
void ItemCursor::Wait(const std::string& what) {
  observer_.Waits(what);
  const MonoTime now = coordinator_.env().MonoNow();
  if (!waits_since_) waits_since_ = now;
  if (wait_is_shown_ || now - *waits_since_ < coordinator_.terms().checkpoint_interval) return;
  wait_is_shown_ = true;
  // For display only: a lease that is lost is noticed by what the holder does next.
  static_cast<void>(item_.ShowWait(what));
}

bool ItemCursor::NearTheEnd() const {
  return coordinator_.env().MonoNow() >= item_.deadline() - coordinator_.terms().lease / 5;
}

Status ItemCursor::Advance(pipeline::Progress& progress, pipeline::Writer& writer,
                           pipeline::Rest& rest) {
  Estimate(progress.counts);
  acknowledged_ = progress;
  if (std::exchange(waits_since_, std::nullopt)) observer_.Waits("");
  wait_is_shown_ = false;
  observer_.Advanced(item_, progress);
  const WorkTerms& terms = coordinator_.terms();
  const MonoTime now = coordinator_.env().MonoNow();
  if (now >= item_.deadline()) return Error{Code::kLeaseLost, "the lease has ended"};
  const bool is_due = now - saved_at_ >= terms.checkpoint_interval;
  // Documents that fail are counted with the checkpoint that they are in; that comes earlier if
  // there may be too many of them.
  const bool has_failures = unsaved_.failed > 0;
  std::optional<store::Lease> count;
  if (!is_due && has_failures && coordinator_.budget().Suspects()) {
    count = coordinator_.budget().ClaimCount(stops_.stop);
  }
  if (is_due || count) {
    MUSTER_TRY(Save(progress, writer));
    observer_.Renewed(item_);
    if (is_due && has_failures) count = coordinator_.budget().ClaimCount(stops_.stop);
    MUSTER_TRY(CheckGoesOn(std::move(count)));
    if (is_due) MUSTER_TRY(SplitOff(progress, writer, rest));
    saved_at_ = now;
  }
  if (terms.max_hold.count() > 0 && now - began_ >= terms.max_hold) {
    return Error{Code::kCancelled, "held long enough"};
  }
  return {};
}

Status ItemCursor::CheckGoesOn(std::optional<store::Lease> count) {
  if (count) coordinator_.budget().Count(*std::move(count));
  return RetryBefore(item_.deadline() - coordinator_.terms().lease / 2, coordinator_.env(),
                     [&] { return coordinator_.budget().CheckGoesOn(); });
}

Status ItemCursor::Save(const pipeline::Progress& progress, pipeline::Writer& writer) {
  if (!PLANTED_BUG(checkpoint_before_flush)) MUSTER_TRY(By(Party::kSink, writer.Flush()));
  MUSTER_TRY(
      coordinator_.targets().Check(pipeline_.sink, item_.fence().incarnation,
                                   pipeline_.transforms.TargetName(item_.partition().collection)));
  MUSTER_TRY(pipeline_.dead_letters.Flush());
  coordinator_.circuit().Succeeded(item_.name());
  observer_.Waits("");
  item_.SetReasons(reasons_);
  MUSTER_TRY(item_.Checkpoint(progress, Fraction(progress, progress.position), kept_));
  SetSaved();
  coordinator_.pass().Leave();
  return {};
}

std::optional<double> ItemCursor::Fraction(const pipeline::Progress& progress,
                                           const std::string& position) {
  pipeline::Partition rest = item_.partition();
  rest.end = progress.end;
  return pipeline_.source.FractionBefore(rest, position);
}

Status ItemCursor::SplitOff(pipeline::Progress& progress, pipeline::Writer& writer,
                            pipeline::Rest& rest) {
  if (item_.whole()) return {};
  // A failed lookup is no reason to stop.
  const Result<bool> requested = coordinator_.TakeSplitRequest(item_);
  if (!requested || !*requested) return {};
  MUSTER_ASSIGN(const std::optional<std::string> middle, By(Party::kSource, rest.Split()));
  if (!middle || middle->empty() || *middle == item_.partition().begin) {
    item_.SetUnsplittable();
    return {};
  }
  std::optional<double> share;
  if (const auto before = Fraction(progress, *middle)) share = 1 - *before;
  const pipeline::Progress lowered = progress.CutAt(*middle);
  // The sink first: it is authoritative, also after a crash.
  if (!PLANTED_BUG(sink_is_not_told_of_a_split)) {
    MUSTER_TRY(By(Party::kSink, writer.Write(pipeline::Batch{}, lowered, NextPatience())));
    MUSTER_TRY(By(Party::kSink, writer.Flush()));
  }
  MUSTER_TRY(item_.Split(lowered, share));
  progress = lowered;
  acknowledged_ = lowered;
  observer_.Split(item_, progress);
  observer_.Renewed(item_);
  return {};
}

}  // namespace muster::work
