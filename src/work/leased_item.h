#pragma once

#include <optional>
#include <string>

#include "muster/store.h"
#include "muster/work.h"
#include "work/item_body.h"

namespace muster::work {

// A work item held by this process. Every change is a compare-and-swap that succeeds only while the
// lease is ours; after kLeaseLost the holder must stop at once, and nothing it tries has an effect.
// Unknown outcomes are resolved inside. Used by one thread.
class LeasedItem final : public WorkItem {
 public:
  LeasedItem(store::Lease lease, ItemBody body, pipeline::Fence fence);

  const std::string& name() const override { return name_; }
  const pipeline::Partition& partition() const override { return body_.partition; }
  const pipeline::Progress& progress() const override { return body_.progress; }
  const pipeline::Fence& fence() const override { return fence_; }
  int attempt() const override { return lease_.attempt(); }
  MonoTime deadline() const override { return lease_.deadline(); }

  const std::string& last_error() const { return body_.error; }
  // A former holder found its progress in the sink.
  bool sink_kept_progress() const { return body_.kept; }
  bool Expired() const { return lease_.Expired(); }
  // Neither lost nor given back, as far as this process knows.
  bool IsHeld() const { return !Expired() && !lease_.owner().empty(); }

  // Its last holder ended without progress and without a report: the item may have killed it.
  bool IsSuspect() const { return lease_.attempt() > body_.reported + 1; }

  // Whether it is still ours, according to the store.
  Result<bool> StillOurs() const { return lease_.StillOurs(); }

  // Creates successors that a former holder named but may not have created.
  Status FinishSuccessors();

  // Stores progress, which renews the lease. Only progress renews: a stuck holder loses its item.
  // `fraction` is the finished part, if known; `kept` says that the sink stores the progress
  // itself.
  Status Checkpoint(const pipeline::Progress& progress, std::optional<double> fraction, bool kept);

  // Splits off the part after progress.end, which was lowered by Progress::CutAt: one write lowers
  // the end and thereby names the successor, the next creates it. The item continues up to its new
  // end. `share` is the part split off, if known.
  Status Split(const pipeline::Progress& progress, std::optional<double> share);

  // Shows what the holder waits for, until the next checkpoint. Waiting is no progress: neither the
  // lease nor the attempts change.
  Status ShowWait(const std::string& what);

  // Why documents failed, for those that the progress of the next change counts.
  void SetReasons(const FailureReasons& reasons) { body_.reasons = reasons; }
  const FailureReasons& reasons() const { return body_.reasons; }

  // Marks the item unsplittable; persisted with the next checkpoint so idle workers stop asking.
  bool whole() const { return body_.whole; }
  void SetUnsplittable() { body_.whole = true; }

  // Hands over everything after progress.position to a successor. The rest must be completed.
  Status HandOver(const pipeline::Progress& progress);

  // Completes the item.
  Status Complete(const pipeline::Progress& progress);

  // Releases it, due at once; the attempt does not count.
  Status Release() { return lease_.Release(); }

  // Releases it because it follows unfinished items. The delay grows, so that many waiting items
  // cost little.
  Status Postpone();

  // Releases it after a failure, due after `delay`. With progress all counters are reset. Without,
  // and if the item is to `blame`, a transient failure counts among failures(), any other as an
  // attempt.
  Status Fail(const Error& error, milliseconds delay,
              const std::optional<pipeline::Progress>& progress, bool blame);

  int failures() const { return body_.failures; }

  // Whether another worker has failed at it since the last progress.
  bool FailedElsewhere() const;

  // Quarantines it until an operator retries it.
  Status Quarantine(const std::string& error);

 private:
  Status CreateSuccessors(std::optional<int64_t> documents);

  std::string name_;
  store::Lease lease_;
  ItemBody body_;
  pipeline::Fence fence_;
};

}  // namespace muster::work
