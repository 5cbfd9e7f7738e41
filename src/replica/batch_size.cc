#include "replica/batch_size.h"

#include <algorithm>

namespace muster::replica {
namespace {

constexpr size_t kFirst = 32;
constexpr size_t kCut = 8;

}  // namespace

BatchSize::BatchSize(size_t most, std::chrono::nanoseconds target)
    : most_(std::max<size_t>(most, 1)), target_(target), size_(std::min(most_, kFirst)) {}

void BatchSize::Handled(size_t count, std::chrono::nanoseconds took) {
  const bool in_failed = hold_ > 0;
  hold_ -= std::min(hold_, count);
  if (took > target_) {
    const double fits =
        static_cast<double>(count) * (target_ / std::chrono::duration<double>(took));
    size_ = std::clamp<size_t>(static_cast<size_t>(fits), 1, size_);
  } else if (!in_failed && count >= size_ && took <= target_ / 2) {
    size_ = std::min(most_, size_ * 2);
  }
}

void BatchSize::Failed(size_t count) {
  hold_ = count;
  size_ = std::max<size_t>(1, count / kCut);
}

}  // namespace muster::replica
