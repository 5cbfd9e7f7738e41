#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"

namespace muster::pipeline {

// How far a partition has come, and who may say so: what a sink keeps beside the documents.

// Outcomes of the documents read, and of those that transforms made of them: read + added = written
// + skipped + failed, always.
struct Counts {
  int64_t read = 0;
  int64_t written = 0;
  int64_t skipped = 0;  // by a transform, or by the sink: see Refused
  int64_t failed = 0;   // in the dead letters, each with its reason
  int64_t bytes = 0;    // of the bodies read
  // Of several documents that a transform made of one, all but the first. Without such transforms
  // 0.
  int64_t added = 0;

  MUSTER_EXPORT Counts& operator+=(const Counts& other);
  bool operator==(const Counts&) const = default;
};

// How far a partition has come: every document before `position` is safely in the sink, or
// accounted for in the counts. Always stored as a whole, by ToString.
struct Progress {
  std::string position = {};  // empty: the partition's begin
  std::string end = {};       // the partition's end, lowered by every split
  Counts counts = {};
  std::vector<std::string> former_ends = {};  // `end` before each split, oldest first

  // The same progress, with the partition ending here.
  MUSTER_EXPORT Progress CutAt(const std::string& new_end) const;

  // One line of JSON, valid UTF-8 whatever the positions hold.
  MUSTER_EXPORT std::string ToString() const;
  MUSTER_EXPORT static Result<Progress> Parse(std::string_view text);
  bool operator==(const Progress&) const = default;
};

// Ranks from here on belong to following items.
inline constexpr int64_t kFirstFollowerRank = 2048;

// Identifies the writer: the holder of an item, by the highest epoch granted. A fenced sink refuses
// older epochs with kLeaseLost as soon as a newer one has opened the item.
struct Fence {
  std::string run;          // a name for the whole migration
  std::string incarnation;  // of the run's store: a different one is not a continuation
  bool adopts = false;      // continue what an earlier incarnation of the run wrote
  bool alone = false;       // standalone: no other process ever opens this item, so no state needs
                            // to be kept
  std::string item;
  int64_t epoch = 1;
  // The item's partition, by collection, shard and part: with a document's position it identifies
  // that document, whichever item it is in.
  std::string origin = {};
  // For sinks without a fence but with per-document versions: a later one wins. The start of the
  // run's incarnation (0: no order), then the epochs of the item and of those it was split off
  // from.
  int64_t since_ms = 0;
  int64_t rank = 1;
  // Such sinks skip a document that the target has in a later version, also of the same run,
  // instead of reporting a lost lease: for writers outside of the items' order.
  bool yields = false;
  // Of this epoch. Only a store that lost commits grants an epoch twice: the second holder of an
  // epoch that another has opened is refused like an older one.
  std::string holder = {};
};

}  // namespace muster::pipeline
