#include <algorithm>

#include "core/backoff.h"
#include "core/descriptor.h"
#include "core/log.h"
#include "core/planted_bug.h"
#include "pipeline/pipeline.h"
#include "work/coordinator.h"
#include "work/finish_collections.h"
#include "work/item_cursor.h"
#include "work/records.h"
#include "work/target_check.h"

namespace muster::work {
namespace {

constexpr milliseconds kLongestRetryDelay{300'000};

Error Contradiction(const WorkItem& item, const std::string& what) {
  return Error{Code::kIncompatible, "item '" + item.name() + "': " + what, kRestored};
}

// All ends a partition has had, the current one last.
std::vector<std::string> Ends(const pipeline::Progress& progress) {
  std::vector<std::string> ends = progress.former_ends;
  ends.push_back(progress.end);
  return ends;
}

bool IsPrefix(const std::vector<std::string>& shorter, const std::vector<std::string>& longer) {
  return shorter.size() <= longer.size() &&
         std::equal(shorter.begin(), shorter.end(), longer.begin());
}

// Adds to letters where their item is in the order of versions, so that a redrive without the store
// knows, too.
class ItemLetters final : public pipeline::DeadLetters {
 public:
  ItemLetters(pipeline::DeadLetters& letters, const WorkItem& item)
      : letters_(letters), item_(item) {}

  Status Add(const pipeline::DeadLetter& letter) override {
    pipeline::DeadLetter ordered = letter;
    ordered.since_ms = item_.fence().since_ms;
    ordered.follows = item_.partition().follows;
    return letters_.Add(ordered);
  }
  Status Flush() override { return letters_.Flush(); }

 private:
  pipeline::DeadLetters& letters_;
  const WorkItem& item_;
};

// Migrates one acquired item and settles the outcome.
class ItemMigration {
 public:
  ItemMigration(WorkCoordinator& coordinator, pipeline::Pipeline& pipeline, WorkObserver& observer,
                const StopRequests& stops, LeasedItem& item)
      : coordinator_(coordinator),
        letters_(pipeline.dead_letters, item),
        pipeline_{pipeline.env, pipeline.source,   pipeline.transforms, pipeline.sink,
                  letters_,     pipeline.throttle, pipeline.options,    pipeline.chosen},
        observer_(observer),
        stops_(stops),
        item_(item) {}

  // Fails only if the worker cannot continue at all.
  Result<ShardOutcome> Run() {
    const int max_attempts = coordinator_.terms().max_attempts;
    if (item_.attempt() > max_attempts && !PLANTED_BUG(nothing_is_quarantined)) {
      // What was split off from it is not its fault, and others may wait for that.
      if (const Status split = item_.FinishSuccessors(); !split) return Settle(split.error());
      const std::string& last = item_.last_error();
      return Tell(ShardOutcome::kQuarantined,
                  item_.Quarantine("claimed " + std::to_string(max_attempts) +
                                   " times without progress; last error: " +
                                   (last.empty() ? "none, its holders disappeared" : last)));
    }
    if (item_.partition().follows && !PLANTED_BUG(followers_do_not_wait)) {
      MUSTER_ASSIGN(const bool due, coordinator_.IsItsTurn(item_.partition()));
      if (!due) return Tell(ShardOutcome::kReleased, item_.Postpone());
    }
    // It gives up in time for a hold that is long enough to be worth it.
    if (item_.IsSuspect() && !coordinator_.pass().BeAlone(
                                 item_.deadline() - coordinator_.terms().lease / 2, stops_.stop)) {
      return Tell(ShardOutcome::kReleased, item_.Release());
    }
    const Status migrated = Migrate();
    if (migrated) return Tell(outcome_, {});
    return Settle(migrated.error());
  }

 private:
  Status Migrate() {
    MUSTER_TRY(item_.FinishSuccessors());
    const pipeline::Partition& partition = item_.partition();
    MUSTER_TRY(CheckTarget());
    MUSTER_ASSIGN(writer_, By(Party::kSink, pipeline_.sink.Open(Target(), item_.fence())));
    MUSTER_ASSIGN(writer_, pipeline::DividedWriter(pipeline_, partition.collection, item_.fence(),
                                                   std::move(writer_)));
    MUSTER_ASSIGN(const pipeline::Progress start, Start());
    observer_.Acquired(item_, start);
    if (writer_->Sealed() && !PLANTED_BUG(sealed_items_are_continued)) return HandOver(start);
    if (AtEnd(start)) return Complete(start);
    cursor_.emplace(coordinator_, pipeline_, item_, observer_, stops_, start,
                    writer_->Known().has_value());
    start_ = start;
    MUSTER_ASSIGN(const pipeline::Progress end,
                  pipeline::MigrateShard(pipeline_, partition, item_.name(), start, *writer_,
                                         *cursor_, stops_.stop));
    return Complete(end);
  }

  std::string Target() const {
    return pipeline_.transforms.TargetName(item_.partition().collection);
  }

  Status CheckTarget() {
    return coordinator_.targets().Check(pipeline_.sink, item_.fence().incarnation, Target());
  }

  static bool AtEnd(const pipeline::Progress& progress) {
    return !progress.end.empty() && progress.position == progress.end;
  }

  // Where to resume. The sink is authoritative: splits that only the sink knows of are repeated in
  // the store.
  Result<pipeline::Progress> Start() {
    const pipeline::Progress& stored = item_.progress();
    const std::optional<pipeline::Progress>& known = writer_->Known();
    // Before the first write, a sink that stores progress has none.
    if (!known || *known == pipeline::Progress()) {
      if (!item_.sink_kept_progress()) return stored;
      return Error{Code::kIncompatible,
                   "item '" + item_.name() + "': the sink has lost its progress",
                   pipeline::kLostTargetHint, Party::kSink};
    }
    if (known->counts.read < stored.counts.read) {
      return Contradiction(item_, "the sink knows of " + std::to_string(known->counts.read) +
                                      " documents, the store of " +
                                      std::to_string(stored.counts.read));
    }
    // Only the store knows of a hand-over: the sink was sealed before it.
    if (writer_->Sealed() && Ends(stored) == Ends(known->CutAt(known->position))) return stored;
    if (!IsPrefix(Ends(stored), Ends(*known))) {
      return Contradiction(item_, "store and sink disagree about where it ends");
    }
    if (stored.end != known->end) MUSTER_TRY(item_.Split(*known, std::nullopt));
    return *known;
  }

  Status Complete(const pipeline::Progress& end) {
    MUSTER_TRY(By(Party::kSink, writer_->Finish()));
    MUSTER_TRY(CheckTarget());
    MUSTER_TRY(pipeline_.dead_letters.Flush());
    coordinator_.circuit().Succeeded(item_.name());
    KeepReasons();
    MUSTER_TRY(item_.Complete(end));
    if (cursor_) cursor_->SetSaved();
    return {};
  }

  // With the progress that counts them.
  void KeepReasons() {
    if (cursor_) item_.SetReasons(cursor_->reasons());
  }

  // The finished part ends here, and a successor continues.
  Status HandOver(const pipeline::Progress& progress) {
    KeepReasons();
    if (!AtEnd(progress)) {
      outcome_ = ShardOutcome::kHandedOver;
      MUSTER_TRY(item_.HandOver(progress));
      if (PLANTED_BUG(complete_before_successor)) return {};
    }
    return Complete(progress);
  }

  // Ends the hold in good order. The sink's answer after sealing is authoritative, even for a batch
  // with an unknown outcome. Alone, nothing continues, and what is incomplete is not published.
  Status HandOverOrRelease() {
    if (!Advanced() || coordinator_.alone()) {
      outcome_ = ShardOutcome::kReleased;
      return item_.Release();
    }
    pipeline::Progress progress = cursor_->acknowledged();
    if (!PLANTED_BUG(hand_over_without_seal)) {
      MUSTER_ASSIGN(std::optional<pipeline::Progress> sealed, By(Party::kSink, writer_->Seal()));
      if (sealed) progress = *std::move(sealed);
    }
    MUSTER_TRY(By(Party::kSink, writer_->Flush()));
    MUSTER_TRY(pipeline_.dead_letters.Flush());
    return HandOver(progress);
  }

  bool Advanced() const { return cursor_ && cursor_->acknowledged().position != start_.position; }

  Result<ShardOutcome> Settle(const Error& error) {
    why_ = &error;
    if (item_.Expired()) return Tell(ShardOutcome::kLost, {});
    if (error.code == Code::kIncompatible) return Halt(error);
    const bool refused = error.code == Code::kLeaseLost || error.code == Code::kConflict;
    if (refused && !coordinator_.alone()) return Refused(error);
    const bool stopped = error.code == Code::kCancelled || stops_.stop.stop_requested();
    const bool blame = !stopped && ToBlame(error);
    if (stopped || (cursor_ && Advanced() && cursor_->NearTheEnd())) {
      const Status ended = HandOverOrRelease();
      if (ended) return Tell(outcome_, {});
      if (item_.Expired()) return Tell(ShardOutcome::kLost, {});
      // It may be sealed by now; the next holder completes the rest.
      if (IsTransient(ended.error().code)) return Tell(ShardOutcome::kReleased, item_.Release());
      return Failed(ended.error(), blame);
    }
    return Failed(error, blame);
  }

  // Whether the error concerns the item's documents: the source's data is damaged, or no sink would
  // accept them.
  static bool AboutData(const Error& error) {
    return error.code == Code::kInvalid || error.code == Code::kCorrupt;
  }

  // An outage is the item's fault only if others succeed meanwhile. Anything else is, as far as we
  // know: a missing table, say. But it may block all items, so the worker tries them slowly.
  bool ToBlame(const Error& error) {
    if (AboutData(error)) return true;
    const bool alone = coordinator_.circuit().Failed(item_.name(), error);
    if (IsOutOfDescriptors(error)) return false;
    return alone || !IsOutage(error) || PLANTED_BUG(outages_are_the_items_fault);
  }

  // The sink refuses our writes. If the item has another holder, or another incarnation has begun,
  // that is as intended; if not, the store has lost commits.
  Result<ShardOutcome> Refused(const Error& error) {
    const Result<bool> ours = item_.StillOurs();
    if (!ours || !*ours) return Tell(ShardOutcome::kLost, {});
    const Result<bool> current = coordinator_.IsCurrent(item_);
    if (!current || !*current) return Tell(ShardOutcome::kLost, {});
    Error refused = Contradiction(item_, "the sink refuses its holder (" + error.message +
                                             "), though the store has granted it to no other");
    // Output of another run is not this run's concern, and the sink gives the better hint.
    if (error.code == Code::kConflict && !error.hint.empty()) refused.hint = error.hint;
    why_ = &refused;
    return Halt(refused);
  }

  // The error ends this worker. The next holder need not wait until the lease has ended, and the
  // item says what its last holder met.
  Error Halt(const Error& error) {
    static_cast<void>(Tell(ShardOutcome::kFailed, item_.Fail(error, RetryDelay(item_.attempt()),
                                                             std::nullopt, /*blame=*/true)));
    return error;
  }

  Result<ShardOutcome> Failed(const Error& error, bool blame) {
    const bool outside = IsOutage(error) && !PLANTED_BUG(outages_are_the_items_fault);
    const int tries = outside ? item_.failures() + 1 : item_.attempt();
    // What this worker cannot reach, another may.
    const bool enough =
        tries >= coordinator_.terms().max_attempts && (!outside || item_.FailedElsewhere());
    if (blame && !Advanced() && enough) {
      return Tell(ShardOutcome::kQuarantined, item_.Quarantine(error.ToString()));
    }
    std::optional<pipeline::Progress> progress;
    if (Advanced() && writer_->Flush() && pipeline_.dead_letters.Flush()) {
      progress = cursor_->acknowledged();
      KeepReasons();
    }
    return Tell(ShardOutcome::kFailed, item_.Fail(error, RetryDelay(tries), progress, blame));
  }

  milliseconds RetryDelay(int tries) const {
    if (PLANTED_BUG(failed_items_do_not_wait)) return milliseconds(0);
    if (PLANTED_BUG(retry_delay_does_not_grow)) tries = 1;
    const milliseconds first = coordinator_.terms().retry_delay;
    return Backoff::Pauses{.first = first, .longest = std::max(kLongestRetryDelay, first)}.After(
        tries);
  }

  Result<ShardOutcome> Tell(ShardOutcome outcome, const Status& stored) {
    if (!stored) {
      const Code code = stored.error().code;
      if (code != Code::kLeaseLost && !IsTransient(code)) return stored.error();
      outcome = ShardOutcome::kLost;
    }
    const bool good = outcome == ShardOutcome::kCompleted || outcome == ShardOutcome::kHandedOver ||
                      outcome == ShardOutcome::kReleased;
    // What ends the worker is its caller's to report.
    const bool quiet = good || coordinator_.terms().fail_fast;
    Log(quiet ? Level::kInfo : Level::kWarning, ShardOutcomeName(outcome),
        {{"run", coordinator_.run()},
         {"worker", coordinator_.worker()},
         {"item", item_.name()},
         {"epoch", item_.fence().epoch},
         {"attempt", item_.attempt()},
         {"error", why_ == nullptr ? std::string() : why_->ToString()}});
    observer_.Ended(item_, outcome, why_);
    return outcome;
  }

  WorkCoordinator& coordinator_;
  ItemLetters letters_;
  pipeline::Pipeline pipeline_;
  WorkObserver& observer_;
  const StopRequests& stops_;
  LeasedItem& item_;
  std::unique_ptr<pipeline::Writer> writer_;
  std::optional<ItemCursor> cursor_;
  pipeline::Progress start_;
  ShardOutcome outcome_ = ShardOutcome::kCompleted;
  const Error* why_ = nullptr;
};

}  // namespace

std::string_view ShardOutcomeName(ShardOutcome outcome) {
  switch (outcome) {
    case ShardOutcome::kCompleted:
      return "item completed";
    case ShardOutcome::kHandedOver:
      return "item handed over";
    case ShardOutcome::kReleased:
      return "item released";
    case ShardOutcome::kFailed:
      return "item failed; it will be retried";
    case ShardOutcome::kQuarantined:
      return "item quarantined";
    case ShardOutcome::kLost:
      return "item no longer held";
    case ShardOutcome::kNothingDue:
      return "nothing is due";
    case ShardOutcome::kAllDone:
      return "all is done";
  }
  return "";
}

Result<ShardOutcome> MigrateNextShard(WorkCoordinator& coordinator, pipeline::Pipeline& pipeline,
                                      const pipeline::CollectionFilter& allowed,
                                      WorkObserver& observer, const StopRequests& stops) {
  MUSTER_ASSIGN(std::optional<LeasedItem> item, coordinator.AcquireNext(stops.stop));
  if (item) {
    auto outcome = ItemMigration(coordinator, pipeline, observer, stops, *item).Run();
    // What ends this worker is not about the item: the next holder need not wait for the lease.
    if (!outcome && item->IsHeld()) static_cast<void>(item->Release());
    return outcome;
  }
  MUSTER_ASSIGN(const bool settled, coordinator.AllSettled());
  if (settled) {
    MUSTER_ASSIGN(const bool finished, FinishCollections(coordinator, pipeline, allowed));
    return finished ? ShardOutcome::kAllDone : ShardOutcome::kNothingDue;
  }
  MUSTER_ASSIGN(const bool woken, coordinator.WakeFollower());
  if (!woken) MUSTER_TRY(coordinator.RequestSplit());
  return ShardOutcome::kNothingDue;
}

}  // namespace muster::work
