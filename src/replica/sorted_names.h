#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace muster::replica {

// A set of names for quick look-ups, which must outlive it: sets of hundreds of workers look at
// each other every few seconds.
class SortedNames {
 public:
  explicit SortedNames(const std::vector<std::string>& all) : sorted_(all.begin(), all.end()) {
    std::sort(sorted_.begin(), sorted_.end());
  }
  bool Contain(std::string_view name) const {
    return std::binary_search(sorted_.begin(), sorted_.end(), name);
  }

 private:
  std::vector<std::string_view> sorted_;
};

}  // namespace muster::replica
