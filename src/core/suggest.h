#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// The candidate that `word` was most likely meant to be, if any is close enough.
std::optional<std::string> DidYouMean(std::string_view word,
                                      const std::vector<std::string>& candidates);

}  // namespace muster
