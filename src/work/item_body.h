#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/record_version.h"
#include "muster/pipeline.h"
#include "muster/result.h"
#include "work/failure_reasons.h"

namespace muster::work {

// The format of the bodies of a run's records, their member `v`. Those written before there were
// versions have none.
inline constexpr RecordFormat kFormat{"work", 1};

// The body of a work item's record.
struct ItemBody {
  enum class State { kOpen, kDone, kQuarantined };
  State state = State::kOpen;
  pipeline::Partition partition;  // as created: splits lower only progress.end
  std::string from = {};  // the item it was split off from, by name; empty: a partition of the
                          // source
  // The rank of the holder that split it off; with the epoch it orders everyone who ever held these
  // documents.
  int64_t rank = 0;
  int waits = 0;  // how often what it follows was found unfinished
  pipeline::Progress progress;
  FailureReasons reasons = FailureReasons();  // of those that progress counts as failed
  std::optional<double> fraction = {};        // of [begin, progress.end) that is done
  bool kept = false;                          // the sink stores the progress itself
  bool whole = false;                         // unsplittable
  size_t created = 0;                         // successors known to exist as items
  std::string error = {};                     // the last failure, for display
  int failures = 0;                           // without progress, for transient reasons
  std::vector<std::string> failed = {};       // the first two workers that failed without progress
  int reported = 0;        // the attempt that ended with a report; later ones ended silently
  int64_t since_ms = 0;    // when its holder began, by the holder's clock, for
                           // display
  int64_t since_read = 0;  // documents read by then
  int64_t until_ms = 0;    // when it was done

  // The parts that were split off, in order: each lies between two consecutive ends of the item.
  std::vector<pipeline::Partition> Successors() const;

  // Whether `successor` was split off from this item.
  bool HasSplitOff(const ItemBody& successor) const;

  // Progress, or an operator, resets the counts.
  void ForgetFailures();

  // Approximate number of documents left; if unknown, a fraction.
  double Left() const;

  std::string ToJson() const;
  static Result<ItemBody> FromJson(const std::string& json);

  // A new item for a source's partition, or for a part split off from an item.
  static ItemBody Of(const pipeline::Partition& partition, std::string from = {}, int64_t rank = 0);
};

std::string_view StateName(ItemBody::State state);

// index__shard__position of a partition.
std::string NameOf(const pipeline::Partition& partition);

// The key of an item: RUN/NAME or, if that is too long for a store, RUN/ and a hash of the name.
std::string ItemKey(const std::string& run, const std::string& name);

}  // namespace muster::work
