#pragma once

#include <chrono>
#include <cstddef>

namespace muster::replica {

// How many events a follower handles per transaction: as many as take about `target`, up to `most`.
// Starts small, grows while batches are fast, and shrinks when one is slow or fails. A failing
// batch is reduced until the bad event is alone.
class BatchSize {
 public:
  BatchSize(size_t most, std::chrono::nanoseconds target);

  size_t size() const { return size_; }

  void Handled(size_t count, std::chrono::nanoseconds took);
  void Failed(size_t count);

 private:
  const size_t most_;
  const std::chrono::nanoseconds target_;
  size_t size_;
  size_t hold_ = 0;  // events left of a failed batch: no growth until they are done
};

}  // namespace muster::replica
