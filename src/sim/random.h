#pragma once

#include <chrono>
#include <cstdint>

namespace muster::sim {

// The only source of randomness in a simulation: the same numbers for the same seed on every
// compiler (SplitMix64; the standard library's distributions differ between implementations).
class Random {
 public:
  // Mixed, since consecutive seeds would otherwise give the same numbers, shifted by one.
  explicit Random(uint64_t seed) : state_(Mix(seed)) {}

  uint64_t Next() { return Mix(state_ += 0x9e3779b97f4a7c15); }

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
  static constexpr uint64_t Mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  uint64_t state_;
};

}  // namespace muster::sim
