#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::serve {

// The decoded values of a pattern's variables in a path:
//
//   MatchPath("/stores/{store}/work/{run}", "/stores/0/work/a%2Fb")   // {"0", "a/b"}
//
// None: no match. Segments match exactly and paths are not normalized: an empty or dotted segment,
// a bad escape or a control character matches nothing.
std::optional<std::vector<std::string>> MatchPath(std::string_view pattern, std::string_view path);

// The name or value of a query's parameter; a bad escape stays as it is.
std::string DecodeQueryText(std::string_view text);

}  // namespace muster::serve
