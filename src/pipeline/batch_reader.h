#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "muster/migrate.h"
#include "pipeline/batch_filler.h"

namespace muster {

// Gives the batches of one shard, in order; with read-ahead a thread fills the next one while the
// caller has the last. Used by one thread.
class BatchReader final : public Rest {
 public:
  // `pipeline` must outlive it. `stop` ends the reader's waiting: it is requested on destruction.
  BatchReader(const Pipeline& pipeline, std::unique_ptr<Reader> reader, std::stop_source stop);
  ~BatchReader() override;

  // The next batch, which lives until the next call; null: the end. A failure of the source comes
  // after everything that was read before it.
  Result<const ReadBatch*> Next();

  Result<std::optional<std::string>> Split() override;

 private:
  void ReadAhead();

  BatchFiller filler_;
  std::mutex filler_mutex_;
  std::stop_source stop_;

  ReadBatch current_;
  ReadBatch next_;
  bool full_ = false;  // next_ waits to be taken
  bool closing_ = false;
  std::mutex mutex_;  // guards the three above
  std::condition_variable changed_;
  std::thread thread_;  // not there without read-ahead
};

}  // namespace muster
