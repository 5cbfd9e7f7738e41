#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::serve {

// The decoded values of a path's segments that a pattern leaves open:
//
//   MatchPath("/stores/{}/work/{}", "/stores/0/work/a%2Fb")   // {"0", "a/b"}
//
// None: the path is another one. Segments match exactly, and nothing is tidied up: a path with an
// empty or dotted segment, a bad escape or a control character matches nothing.
std::optional<std::vector<std::string>> MatchPath(std::string_view pattern, std::string_view path);

}  // namespace muster::serve
