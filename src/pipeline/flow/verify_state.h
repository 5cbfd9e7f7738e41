#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "muster/migrate.h"
#include "muster/result.h"
#include "pipeline/flow/document_hash.h"

namespace muster::pipeline {

// The documents of a side whose ids, or contents, fall into the same one of a number of classes.
struct VerifyBucket {
  int64_t documents = 0;
  DocumentHash sum;
  bool operator==(const VerifyBucket&) const = default;
};
using VerifyBuckets = std::array<VerifyBucket, 4096>;

// What is known of one side of a comparison: of whole partitions only, whose sums just add up.
struct VerifySideState {
  struct Done {
    VerifyReport::Count count;
    int64_t read = 0;  // before the transforms
  };
  std::vector<Done> done;
  VerifyBuckets buckets{};
  std::map<std::string, int64_t> places;     // documents by place, if they choose targets
  std::vector<VerifyDifference> unreadable;  // documents, the first of them
};

// A comparison that can be continued by another process.
struct VerifyState {
  VerifySideState source;
  VerifySideState target;
  bool by_id = true;
  bool with_ids = true;  // so far

  std::string ToText() const;
  // Reads it into `state`, which is as new. kCorrupt: not such a text. kInvalid: a newer version of
  // muster wrote it.
  static Status FromText(const std::string& text, VerifyState& state);
};

}  // namespace muster::pipeline
