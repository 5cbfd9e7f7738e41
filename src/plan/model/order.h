#pragma once

#include <vector>

#include "plan/model/plan.h"

namespace muster::plan {

// Which ranks of a plan come before which, by all that they need. Ranks are meant by their place in
// `plan.ranks`; what a plan needs that does not exist is left out.
class Order {
 public:
  explicit Order(const Plan& plan);

  bool IsBefore(size_t a, size_t b) const { return before_[b][a]; }

  // Ranks that wait for each other, each needing the next and the last the first; empty: none do.
  const std::vector<size_t>& cycle() const { return cycle_; }

 private:
  void Visit(const Plan& plan, size_t rank, std::vector<int>& state, std::vector<size_t>& path);

  std::vector<std::vector<bool>> before_;
  std::vector<size_t> cycle_;
};

}  // namespace muster::plan
