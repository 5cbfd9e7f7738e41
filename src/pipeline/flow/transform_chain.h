#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "muster/pipeline.h"

namespace muster::pipeline {

// Applies the transforms of a plan to one document after the other. Migrating and verifying both
// use it, and so agree on what becomes of a document. Used by one thread.
class TransformChain {
 public:
  // What became of one document.
  struct Made {
    std::vector<Document> documents;
    int64_t skipped = 0;
    int64_t bytes = 0;  // of all bodies made, also on the way

    // How many more there are, kept or skipped, than the one that was read.
    int64_t added() const { return static_cast<int64_t>(documents.size()) + skipped - 1; }
  };

  // Leaves documents as they are.
  TransformChain() = default;

  static Result<TransformChain> Of(const TransformPlan& plan, const std::string& collection);

  // Replaces the content of `made`; its memory is the arena's and the document's. An error concerns
  // this document alone, and all of it: nothing that was made of it counts.
  Status Apply(const Document& document, Arena& arena, Made& made);

 private:
  TransformChain(std::vector<std::unique_ptr<Transform>> transforms, std::string target)
      : transforms_(std::move(transforms)), target_(std::move(target)) {}

  Status ApplyOne(Transform& transform, Arena& arena, Made& made);

  std::vector<std::unique_ptr<Transform>> transforms_;
  std::string target_;  // the collection's
  std::vector<Document> before_;
  std::vector<Document> more_;
};

}  // namespace muster::pipeline
