#include "states/run/payload.h"

#include <algorithm>

namespace muster::states {
namespace {

size_t TextBytes(const std::string& text) {
  size_t bytes = text.size() + 2;
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '\n' || c == '\t' || c == '\r') ++bytes;
  }
  return bytes;
}

}  // namespace

size_t JsonBytes(const Json& value, size_t limit) {
  switch (value.type()) {
    case Json::Type::kString:
      return TextBytes(value.get_ref<const std::string&>());
    case Json::Type::kObject: {
      size_t bytes = 1;
      for (const auto& [key, member] : value.items()) {
        bytes += TextBytes(key) + 2 + JsonBytes(member, limit);
        if (bytes > limit) break;
      }
      return std::max<size_t>(bytes, 2);
    }
    case Json::Type::kArray: {
      size_t bytes = 1;
      for (const Json& element : value) {
        bytes += 1 + JsonBytes(element, limit);
        if (bytes > limit) break;
      }
      return std::max<size_t>(bytes, 2);
    }
    case Json::Type::kNull:
    case Json::Type::kBoolean:
      return value.is_boolean() && !value.get<bool>() ? 5 : 4;
    default:
      return value.dump().size();
  }
}

}  // namespace muster::states
