#include "core/json_equal.h"

#include <algorithm>

namespace muster {

bool JsonEqual(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) return a == b;
  if (a.type() != b.type()) return false;
  if (a.is_object()) {
    if (a.size() != b.size()) return false;
    return std::all_of(a.items().begin(), a.items().end(), [&](const auto& member) {
      auto found = b.find(member.first);
      return found != b.end() && JsonEqual(member.second, *found);
    });
  }
  if (a.is_array()) return std::equal(a.begin(), a.end(), b.begin(), b.end(), JsonEqual);
  return a == b;
}

}  // namespace muster
