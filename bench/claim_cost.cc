#include "claim_cost.h"

#include <stdexcept>
#include <vector>

#include "median.h"
#include "ours.h"

namespace muster::bench {
namespace {

double ClaimMicroseconds(store::Store& store) {
  const store::ClaimRequest request = NewClaim(1);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<store::Record> claimed = Must(store.Claim(request));
  const std::chrono::duration<double, std::micro> elapsed =
      std::chrono::steady_clock::now() - begin;
  if (claimed.size() != 1) throw std::runtime_error("a due record was not claimed");
  claimed[0].attempt = 0;
  const store::Change again = store::Change::Put(std::move(claimed[0]), store::Due::AtOnce());
  if (!Must(store.Write({&again, 1})).front().applied) {
    throw std::runtime_error("a claimed record was changed by another");
  }
  return elapsed.count();
}

}  // namespace

ClaimCost MeasureClaimCost(store::Store& alone, store::Store& beside, int samples) {
  constexpr int kWarmUp = 5;
  std::vector<double> times_alone, times_beside;
  for (int i = 0; i < kWarmUp + samples; ++i) {
    const double time_alone = ClaimMicroseconds(alone);
    const double time_beside = ClaimMicroseconds(beside);
    if (i < kWarmUp) continue;
    times_alone.push_back(time_alone);
    times_beside.push_back(time_beside);
  }
  using Microseconds = std::chrono::duration<double, std::micro>;
  return {Microseconds(MedianOf(times_alone)), Microseconds(MedianOf(times_beside))};
}

}  // namespace muster::bench
