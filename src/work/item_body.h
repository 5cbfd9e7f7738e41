#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/pipeline.h"
#include "muster/result.h"

namespace muster {

// What the body of a work item's record says.
struct ItemBody {
  enum class State { kOpen, kDone, kQuarantined };
  State state = State::kOpen;
  Partition partition;    // as it was created: splits lower only progress.end
  std::string from = {};  // the item that gave it away, by name; empty: a partition of the source
  // Of the holder that gave it away; with the epoch it orders all that ever held these documents.
  int64_t rank = 0;
  int waits = 0;  // how often it was found that what it follows is not done yet
  Progress progress;
  std::optional<double> fraction = {};   // of [begin, progress.end) that is done
  bool kept = false;                     // the sink knows the progress itself
  bool whole = false;                    // nothing of it can be given away
  size_t created = 0;                    // so many successors are known to exist as items
  std::string error = {};                // the last failure, for people
  int failures = 0;                      // without progress, for reasons that waiting may cure
  std::vector<std::string> failed = {};  // the first two workers that failed without progress
  int64_t since_ms = 0;                  // when its holder began, by the holder's clock, for people
  int64_t since_read = 0;                // and how many documents had been read then
  int64_t until_ms = 0;                  // when it was done

  // The parts that were given away, in that order: each is what lies between two ends that the
  // item had.
  std::vector<Partition> Successors() const;

  // Whether that one was given away by this.
  bool HasSplitOff(const ItemBody& successor) const;

  // About how many documents are left; where nobody knows, a fraction.
  double Left() const;

  std::string ToJson() const;
  static Result<ItemBody> FromJson(const std::string& json);

  // A new item of a source's partition, or of a part that an item gave away.
  static ItemBody Of(const Partition& partition, std::string from = {}, int64_t rank = 0);
};

std::string_view StateName(ItemBody::State state);

// index__shard__position of a partition.
std::string NameOf(const Partition& partition);

// The key of an item: RUN/NAME, or where that is too long for a store, RUN/ and a hash of the name.
std::string ItemKey(const std::string& run, const std::string& name);

}  // namespace muster
