#pragma once

#include <chrono>
#include <cstdint>

namespace muster::bench {

// What every record is, on both sides of a comparison.
inline constexpr const char* kKind = "bench";
inline constexpr const char* kQueue = "default";
inline constexpr int64_t kLeaseMs = 60'000;

// What a claim writes into the record, of the length that a worker's names have.
inline constexpr const char* kOwner = "bench";
inline constexpr const char* kRawClaimId = "0123456789abcdef0123456789abcdef";

// Each worker makes `turns` turns; a turn claims up to `batch` due records in one commit and
// completes them, body included, in another.
struct Load {
  int workers = 1;
  int batch = 1;
  int turns = 1;

  int64_t records() const { return int64_t{workers} * batch * turns; }
};

struct Outcome {
  int64_t completed = 0;  // fewer than asked for where a claim came back short
  std::chrono::duration<double> elapsed{};

  double per_second() const { return static_cast<double>(completed) / elapsed.count(); }
};

// One of the two ways to do the same work: through our store, or by bare statements. Functions of
// the benchmark throw std::runtime_error when something fails.
class Side {
 public:
  virtual ~Side() = default;
  virtual Outcome Run(const Load& load) = 0;
};

}  // namespace muster::bench
