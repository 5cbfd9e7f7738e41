#include "work/item_cursor.h"

#include <utility>

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
      acknowledged_(start) {}

// A fifth of the lease is reserved for the hand-over.
pipeline::Patience ItemCursor::NextPatience() {
  return {.deadline = item_.deadline() - coordinator_.terms().lease / 5,
          .stop = stops_.abort,
          .waits = [this](const Error& why) {
            waits_ = true;
            observer_.Waits("the " + std::string(PartyName(Party::kSink)) + ": " + why.message);
          }};
}

bool ItemCursor::NearTheEnd() const {
  return coordinator_.env().MonoNow() >= item_.deadline() - coordinator_.terms().lease / 5;
}

Status ItemCursor::Advance(pipeline::Progress& progress, pipeline::Writer& writer,
                           pipeline::Rest& rest) {
  acknowledged_ = progress;
  if (std::exchange(waits_, false)) observer_.Waits("");
  observer_.Advanced(item_, progress);
  const WorkTerms& terms = coordinator_.terms();
  const MonoTime now = coordinator_.env().MonoNow();
  if (now >= item_.deadline()) return Error{Code::kLeaseLost, "the lease has ended"};
  if (now - saved_at_ >= terms.checkpoint_interval) {
    MUSTER_TRY(Save(progress, writer));
    observer_.Renewed(item_);
    MUSTER_TRY(SplitOff(progress, writer, rest));
    saved_at_ = now;
  }
  if (terms.max_hold.count() > 0 && now - began_ >= terms.max_hold) {
    return Error{Code::kCancelled, "held long enough"};
  }
  return {};
}

Status ItemCursor::Save(const pipeline::Progress& progress, pipeline::Writer& writer) {
  if (!PLANTED_BUG(checkpoint_before_flush)) MUSTER_TRY(By(Party::kSink, writer.Flush()));
  MUSTER_TRY(
      coordinator_.targets().Check(pipeline_.sink, item_.fence().incarnation,
                                   pipeline_.transforms.TargetName(item_.partition().collection)));
  MUSTER_TRY(pipeline_.dead_letters.Flush());
  coordinator_.circuit().Succeeded(item_.name());
  observer_.Waits("");
  MUSTER_TRY(item_.Checkpoint(progress, Fraction(progress, progress.position), kept_));
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
