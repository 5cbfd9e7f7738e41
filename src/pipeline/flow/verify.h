#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "muster/migrate.h"
#include "muster/pipeline.h"
#include "muster/result.h"

namespace muster::pipeline {

// One side of a comparison: a collection of a source.
struct VerifySide {
  Source& source;
  std::string collection;
};

struct VerifyOptions {
  bool checksums = false;                     // compare contents, not only counts
  const TransformPlan* transforms = nullptr;  // applied to the source's documents
  size_t max_named = 100;                     // differing documents to name individually
};

// A document that differs between the sides.
struct VerifyDifference {
  enum class Kind { kMissing, kExtra, kChanged, kUnreadable };
  Kind kind = Kind::kMissing;
  std::string id;        // empty: none
  int shard = 0;         // where it was found: in the source, or in the target for an extra one
  std::string position;  // where reading continues after it
};

struct VerifyReport {
  struct Count {
    Partition partition;
    int64_t documents = 0;   // after the transforms; including those that cannot be compared
    int64_t unreadable = 0;  // of these, invalid or failing in a transform
  };
  std::vector<Count> source;
  std::vector<Count> target;
  // Missing, extra and changed documents, by checksum, and those that cannot be compared.
  int64_t differences = 0;
  std::vector<VerifyDifference> named;  // up to max_named of them

  int64_t SourceDocuments() const;
  int64_t TargetDocuments() const;
  int64_t Unreadable() const;  // of both sides
  bool Equal() const;
};

// Reads both sides completely and compares them: by count, or by the content of documents with the
// same id; if one side has no ids, by content alone. Memory is bounded by the differences, and
// those by a million documents. Documents that change during the comparison may show up as
// different.
Result<VerifyReport> VerifyCollection(const VerifySide& source, const VerifySide& target,
                                      const VerifyOptions& options, std::stop_token stop);

}  // namespace muster::pipeline
