#include "core/text_rules.h"

#include <string>

#include "core/utf8.h"

namespace muster {

Status CheckText(std::string_view what, std::string_view text, size_t max_bytes) {
  const std::string name(what);
  if (text.size() > max_bytes) {
    return Error{Code::kInvalid, name + " has " + std::to_string(text.size()) +
                                     " bytes, more than the " + std::to_string(max_bytes) +
                                     " that are allowed"};
  }
  if (text.find('\0') != std::string_view::npos)
    return Error{Code::kInvalid, name + " contains a NUL"};
  if (ValidUtf8Prefix(text) != text.size()) {
    return Error{Code::kInvalid, name + " is not valid UTF-8"};
  }
  return {};
}

Status CheckName(std::string_view what, std::string_view text, size_t max_bytes) {
  if (text.empty()) return Error{Code::kInvalid, std::string(what) + " is empty"};
  return CheckText(what, text, max_bytes);
}

}  // namespace muster
