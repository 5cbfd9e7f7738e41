#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/migrate.h"

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
  int64_t bytes = 0;          // of the bodies read
  std::string position = {};  // after the last document read
  size_t kept_bytes = 0;      // of ids and bodies, failed ones included
  bool last = false;          // end of input
  Status outcome = {};        // why reading ended; success: end of the partition

  size_t kept() const { return batch.documents.size() + failed.size(); }
  void Clear();
};

// Reads and transforms documents and groups them into batches. A batch closes before the document
// that would exceed a limit; a document larger than the limit gets a batch of its own. Used by one
// thread at a time.
class BatchFiller {
 public:
  // `pipeline` must outlive it.
  BatchFiller(const Pipeline& pipeline, std::unique_ptr<Reader> reader);

  // Replaces the content of `batch` with the next batch. Must not be called after the last one.
  void Fill(ReadBatch& batch);

  // As Reader::Split.
  Result<std::optional<std::string>> Split() { return reader_->Split(); }

 private:
  // A document that was read but belongs in the next batch.
  struct Held {
    Batch batch;  // with the document, or empty
    int64_t read_bytes = 0;
    std::optional<std::string> failure = {};
  };

  Result<bool> ReadOne(ReadBatch& batch, const BatchLimits& limits);
  void Keep(ReadBatch& batch, const Document& document, std::optional<std::string> failure);
  Result<bool> Transformed(Document& document, Arena& arena);
  Status MakeTransforms();

  const Pipeline& pipeline_;
  const std::unique_ptr<Reader> reader_;
  std::optional<std::vector<std::unique_ptr<Transform>>> transforms_;
  Held held_;
};

}  // namespace muster::pipeline
