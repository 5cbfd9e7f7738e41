#pragma once

#include <chrono>
#include <cstdint>

namespace muster::sim {

// The one source of chance in a simulation: the same numbers for the same seed on every compiler
// (SplitMix64; the standard library's distributions differ between implementations).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15 + 0x2545f4914f6cdd1d) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  // From [low, high].
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Next() % static_cast<uint64_t>(high - low + 1));
  }

  template <class Rep, class Period>
  std::chrono::duration<Rep, Period> UpTo(std::chrono::duration<Rep, Period> bound) {
    return std::chrono::duration<Rep, Period>(Between(0, bound.count()));
  }

  bool OneIn(uint64_t odds) { return Next() % odds == 0; }

 private:
  uint64_t state_;
};

}  // namespace muster::sim
