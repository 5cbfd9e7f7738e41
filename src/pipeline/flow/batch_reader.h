#pragma once

#include <condition_variable>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "core/mutex.h"
#include "pipeline/flow/batch_filler.h"
#include "pipeline/flow/shards.h"

namespace muster::pipeline {

// Returns the batches of one shard in order. With read-ahead, a thread fills the next batch while
// the caller processes the current one. Used by one thread.
class BatchReader final : public Rest {
 public:
  // `pipeline` must outlive it. `stop` cancels the reader; it is requested on destruction.
  BatchReader(const Pipeline& pipeline, const std::string& collection,
              std::unique_ptr<Reader> reader, std::stop_source stop);
  ~BatchReader() override;

  // The next batch, valid until the next call; null at the end. A source error is returned after
  // everything read before it.
  Result<const ReadBatch*> Next();

  Result<std::optional<std::string>> Split() override;

 private:
  void ReadAhead();

  Mutex filler_mutex_;
  BatchFiller filler_ GUARDED_BY(filler_mutex_);
  std::stop_source stop_;

  ReadBatch current_;
  ReadBatch next_;  // belongs to the reading thread until full_ is set
  Mutex mutex_;
  bool full_ GUARDED_BY(mutex_) = false;  // next_ is ready
  bool closing_ GUARDED_BY(mutex_) = false;
  std::condition_variable_any changed_;
  std::thread thread_;  // absent without read-ahead
};

}  // namespace muster::pipeline
