#include "pipeline/table/row_key.h"

#include <algorithm>

#include "core/json.h"

namespace muster::pipeline {
namespace {

bool IsPlain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) >= ' ' && static_cast<unsigned char>(c) < 0x7f &&
           c != '"' && c != '\\';
  });
}

}  // namespace

std::string EncodeKey(const std::vector<std::string_view>& values) {
  std::string text = "[";
  for (const std::string_view value : values) {
    if (text.size() > 1) text += ',';
    if (IsPlain(value)) {
      text += '"';
      text += value;
      text += '"';
    } else {
      text += ToJsonText(std::string(value));
    }
  }
  return text + ']';
}

Result<std::vector<std::string>> DecodeKey(std::string_view position, size_t columns) {
  const auto json = ParseJson(position, "position");
  const bool fits =
      json && json->is_array() && json->size() == columns &&
      std::all_of(json->begin(), json->end(), [](const Json& value) { return value.is_string(); });
  if (!fits) {
    return Error{Code::kInvalid,
                 "'" + std::string(position) + "' is not a position in a table with a key of " +
                     std::to_string(columns) + " columns",
                 "the table's key has changed since: start a new run"};
  }
  return json->get<std::vector<std::string>>();
}

}  // namespace muster::pipeline
