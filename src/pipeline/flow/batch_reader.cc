#include "pipeline/flow/batch_reader.h"

#include <utility>

#include "core/guard.h"
#include "core/mutex.h"

namespace muster::pipeline {

BatchReader::BatchReader(const Pipeline& pipeline, const std::string& collection,
                         std::unique_ptr<Reader> reader, std::stop_source stop)
    : filler_(pipeline, collection, std::move(reader)), stop_(std::move(stop)) {
  if (pipeline.options.read_ahead) thread_ = std::thread([this] { ReadAhead(); });
}

BatchReader::~BatchReader() {
  stop_.request_stop();
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BatchReader::ReadAhead() {
  MutexLock lock(mutex_);
  for (;;) {
    while (full_ && !closing_) changed_.wait(lock);
    if (closing_) return;
    lock.unlock();
    const Status filled = GuardedThread("reading ahead", [this]() -> Status {
      const MutexLock filler_lock(filler_mutex_);
      filler_.Fill(next_);
      return {};
    });
    if (!filled) {
      next_.outcome = filled.error();
      next_.read = 0;
      next_.last = true;
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
      MutexLock lock(mutex_);
      while (!full_) changed_.wait(lock);
      std::swap(current_, next_);
      full_ = false;
      changed_.notify_all();
    } else {
      const MutexLock lock(filler_mutex_);
      filler_.Fill(current_);
    }
    if (current_.read > 0) return &current_;
  }
  // An empty batch is always the last and carries only the outcome.
  if (!current_.outcome) return current_.outcome.error();
  return nullptr;
}

Result<std::optional<std::string>> BatchReader::Split() {
  const MutexLock lock(filler_mutex_);
  return filler_.Split();
}

}  // namespace muster::pipeline
