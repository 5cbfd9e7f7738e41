#include "pipeline/flow/batch_reader.h"

#include <utility>

#include "core/guard.h"

namespace muster::pipeline {

BatchReader::BatchReader(const Pipeline& pipeline, std::unique_ptr<Reader> reader,
                         std::stop_source stop)
    : filler_(pipeline, std::move(reader)), stop_(std::move(stop)) {
  if (pipeline.options.read_ahead) thread_ = std::thread([this] { ReadAhead(); });
}

BatchReader::~BatchReader() {
  stop_.request_stop();
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BatchReader::ReadAhead() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !full_ || closing_; });
    if (closing_) return;
    lock.unlock();
    {
      std::lock_guard filler_lock(filler_mutex_);
      // Other threads read it only once `full_` is set.
      const Status filled = GuardedThread("reading ahead", [this]() -> Status {
        filler_.Fill(next_);
        return {};
      });
      if (!filled) {
        next_.outcome = filled.error();
        next_.read = 0;
        next_.last = true;
      }
    }
    lock.lock();
    full_ = true;
    changed_.notify_all();
    if (next_.last) return;
  }
}

Result<const ReadBatch*> BatchReader::Next() {
  if (!current_.last) {
    if (thread_.joinable()) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return full_; });
      std::swap(current_, next_);
      full_ = false;
      changed_.notify_all();
    } else {
      filler_.Fill(current_);
    }
    if (current_.read > 0) return &current_;
  }
  // An empty batch is always the last and carries only the outcome.
  if (!current_.outcome) return current_.outcome.error();
  return nullptr;
}

Result<std::optional<std::string>> BatchReader::Split() {
  std::lock_guard lock(filler_mutex_);
  return filler_.Split();
}

}  // namespace muster::pipeline
