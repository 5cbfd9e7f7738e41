#pragma once

#include <algorithm>
#include <vector>

namespace muster::bench {

// Of at least one value; the lower of the two in the middle.
inline double MedianOf(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace muster::bench
