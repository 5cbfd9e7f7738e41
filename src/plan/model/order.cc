#include "plan/model/order.h"

#include <algorithm>

namespace muster::plan {
namespace {

enum { kNew, kOpen, kDone };

}  // namespace

Order::Order(const Plan& plan) : before_(plan.ranks.size(), std::vector<bool>(plan.ranks.size())) {
  std::vector<int> state(plan.ranks.size(), kNew);
  std::vector<size_t> path;
  for (size_t rank = 0; rank < plan.ranks.size(); ++rank) Visit(plan, rank, state, path);
}

// Recursion depth is bounded by the number of ranks, at most kMaxRanks.
void Order::Visit(const Plan& plan, size_t rank, std::vector<int>& state,
                  std::vector<size_t>& path) {
  if (state[rank] == kDone) return;
  if (state[rank] == kOpen) {
    if (cycle_.empty()) cycle_.assign(std::find(path.begin(), path.end(), rank), path.end());
    return;
  }
  state[rank] = kOpen;
  path.push_back(rank);
  for (const int64_t number : plan.ranks[rank].needs) {
    const auto needed = plan.FindRank(number);
    if (!needed) continue;
    Visit(plan, *needed, state, path);
    before_[rank][*needed] = true;
    for (size_t i = 0; i < before_.size(); ++i) {
      if (before_[*needed][i]) before_[rank][i] = true;
    }
  }
  path.pop_back();
  state[rank] = kDone;
}

}  // namespace muster::plan
