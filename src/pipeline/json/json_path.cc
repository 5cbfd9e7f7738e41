#include "pipeline/json/json_path.h"

#include "core/json_scan.h"

namespace muster::pipeline {

Result<JsonPath> JsonPath::Parse(std::string_view text) {
  JsonPath path;
  path.text_ = text;
  std::string name;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || text[i] == '.') {
      if (name.empty()) {
        return Error{Code::kInvalid, "'" + path.text_ + "' is not a field: a name in it is empty",
                     "write names separated by dots, such as customer.name"};
      }
      path.names_.push_back(std::move(name));
      name.clear();
      continue;
    }
    if (text[i] == '\\' && ++i == text.size()) {
      return Error{Code::kInvalid, "'" + path.text_ + "' is not a field: it ends with a backslash"};
    }
    name += text[i];
  }
  return path;
}

std::optional<std::string_view> JsonPath::Find(std::string_view object) const {
  for (const std::string& name : names_) {
    if (object.empty() || object.front() != '{') return std::nullopt;
    JsonMembers members(object);
    std::optional<JsonMember> member = members.Next();
    while (member && !JsonKeyIs(member->key, name)) member = members.Next();
    if (!member) return std::nullopt;
    object = member->value;
  }
  return object;
}

}  // namespace muster::pipeline
