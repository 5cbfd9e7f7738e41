#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/json.h"

namespace muster::states {

// Writes a JSON object member by member: records are written so often that building a tree first
// would dominate the cost. Keys must need no escapes.
class ObjectText {
 public:
  ObjectText& Raw(std::string_view key, std::string_view json) {
    Key(key).append(json);
    return *this;
  }
  ObjectText& Value(std::string_view key, const Json& json) { return Raw(key, ToJsonText(json)); }
  ObjectText& Number(std::string_view key, int64_t value) {
    return Raw(key, std::to_string(value));
  }
  ObjectText& Flag(std::string_view key) { return Raw(key, "true"); }
  ObjectText& Text(std::string_view key, std::string_view value) {
    AppendJsonString(Key(key), value);
    return *this;
  }

  std::string Close() && {
    text_ += '}';
    return std::move(text_);
  }

 private:
  std::string& Key(std::string_view key) {
    if (text_.size() > 1) text_ += ',';
    return text_.append("\"").append(key).append("\":");
  }

  std::string text_ = "{";
};

}  // namespace muster::states
