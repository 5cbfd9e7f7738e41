#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "muster/migrate.h"
#include "muster/pipeline.h"
#include "muster/result.h"

namespace muster {

// One collection on one side.
struct VerifySide {
  Source& source;
  std::string collection;
};

struct VerifyOptions {
  bool checksums = false;                     // compare contents, not only numbers
  const TransformPlan* transforms = nullptr;  // what was done to the source's documents
  size_t max_named = 100;                     // documents that differ and are named one by one
};

// A document that is not the same on both sides.
struct VerifyDifference {
  enum class Kind { kMissing, kExtra, kChanged, kUnreadable };
  Kind kind = Kind::kMissing;
  std::string id;        // empty: it has none
  int shard = 0;         // where it was found: in the source or, if it is extra, in the target
  std::string position;  // where reading goes on after it
};

struct VerifyReport {
  struct Count {
    Partition partition;
    int64_t documents = 0;   // after the transforms; with those that cannot be compared
    int64_t unreadable = 0;  // of these, what is no document, or fails in a transform
  };
  std::vector<Count> source;
  std::vector<Count> target;
  // Missing, extra and changed documents, by checksums, and those that cannot be compared.
  int64_t differences = 0;
  std::vector<VerifyDifference> named;  // some of them

  int64_t SourceDocuments() const;
  int64_t TargetDocuments() const;
  int64_t Unreadable() const;  // of both
  bool Equal() const;
};

// Reads both sides from end to end and compares them: by number, or by the contents of documents of
// the same id; where one side has no ids, by contents alone. Memory is bounded by the differences,
// and those by a million documents. Documents that change meanwhile may show as different.
Result<VerifyReport> VerifyCollection(const VerifySide& source, const VerifySide& target,
                                      const VerifyOptions& options, std::stop_token stop);

}  // namespace muster
