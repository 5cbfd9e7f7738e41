#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/migrate.h"
#include "pipeline/flow/transform_chain.h"

namespace muster::pipeline {

// The result of one read: a transformed batch and the outcome of each document.
struct ReadBatch {
  struct Failed {
    Document document;  // as it was read
    std::string reason;
  };

  Batch batch;                 // to be written
  std::vector<Failed> failed;  // memory is in the batch's arena
  int64_t read = 0;
  int64_t skipped = 0;
  int64_t added = 0;          // by transforms
  int64_t bytes = 0;          // of the bodies read
  int64_t made_bytes = 0;     // of the bodies that transforms made, also of those then skipped
  std::string position = {};  // after the last document read
  size_t kept_bytes = 0;      // of ids and bodies, failed ones included
  bool last = false;          // end of input
  Status outcome = {};        // why reading ended; success: end of the partition

  size_t kept() const { return batch.documents.size() + failed.size(); }
  void Clear();
};

// Reads and transforms documents and groups them into batches. A batch closes before the document
// that would exceed a limit; a document larger than the limit gets a batch of its own. All that
// transforms make of one document is in one batch: the position after it must not count before.
// Used by one thread at a time.
class BatchFiller {
 public:
  // `pipeline` must outlive it. The reader reads `collection`.
  BatchFiller(const Pipeline& pipeline, std::string collection, std::unique_ptr<Reader> reader);

  // Replaces the content of `batch` with the next batch. Must not be called after the last one.
  void Fill(ReadBatch& batch);

  // As Reader::Split.
  Result<std::optional<std::string>> Split() { return reader_->Split(); }

 private:
  // A document that was read.
  struct One {
    int64_t bytes = 0;  // of its body, as read
    std::optional<std::string> failure = {};
    TransformChain::Made made = {};  // if it failed, only itself
  };
  // One that belongs in the next batch.
  struct Held {
    One one;
    Batch batch;  // memory of what was made of it; empty: none is held
  };

  Status Transform(const Document& document, Arena& arena, TransformChain::Made& made);
  Result<bool> ReadOne(ReadBatch& batch, const BatchLimits& limits);
  void TakeHeld(ReadBatch& batch);
  static void Add(ReadBatch& batch, const One& one, std::string_view position);
  Status MakeTransforms();

  const Pipeline& pipeline_;
  const std::string collection_;
  const std::unique_ptr<Reader> reader_;
  std::optional<TransformChain> transforms_;
  One one_;
  Held held_;
};

}  // namespace muster::pipeline
