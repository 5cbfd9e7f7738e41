#pragma once

#include <chrono>
#include <cstddef>

namespace muster {

// How many events a follower handles in one transaction: as many as take about `target`, up to
// `most`. It begins small, grows while batches are quick, and shrinks when one is slow or fails. A
// batch that fails for one of its events is cut down until that event stands alone.
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
  size_t hold_ = 0;  // the events of a batch that failed: no growth until they are behind
};

}  // namespace muster
