#pragma once

#include <vector>

#include "plan/model/plan.h"

namespace muster::plan {

// Which ranks precede which, by transitive needs. Ranks are identified by their index in
// `plan.ranks`; needs that do not exist are ignored.
class Order {
 public:
  explicit Order(const Plan& plan);

  bool IsBefore(size_t a, size_t b) const { return before_[b][a]; }

  // A cycle of ranks, each needing the next and the last the first; empty: no cycle.
  const std::vector<size_t>& cycle() const { return cycle_; }

 private:
  void Visit(const Plan& plan, size_t rank, std::vector<int>& state, std::vector<size_t>& path);

  std::vector<std::vector<bool>> before_;
  std::vector<size_t> cycle_;
};

}  // namespace muster::plan
