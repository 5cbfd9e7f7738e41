#include "core/json_fields.h"

namespace muster {

const Json& MemberIn(const Json& json, std::string_view name) {
  static const Json kNone;
  const auto found = json.find(name);
  return found == json.end() ? kNone : *found;
}

std::string TextIn(const Json& json, std::string_view name) {
  const Json& member = MemberIn(json, name);
  return member.is_string() ? member.get<std::string>() : std::string();
}

int64_t NumberIn(const Json& json, std::string_view name, int64_t otherwise) {
  const Json& member = MemberIn(json, name);
  const bool fits = member.is_number_integer() && (!member.is_number_unsigned() ||
                                                   std::in_range<int64_t>(member.get<uint64_t>()));
  return fits ? member.get<int64_t>() : otherwise;
}

JsonFields::JsonFields(Json json) : json_(std::move(json)) {
  if (json_.is_discarded()) {
    Mistake("it is not JSON");
  } else if (!json_.is_object()) {
    Mistake("it is not an object");
  }
}

const Json* JsonFields::Find(std::string_view name) const {
  const auto found = json_.find(name);
  return found == json_.end() ? nullptr : &*found;
}

void JsonFields::Require(std::string_view name) {
  if (Find(name) == nullptr) Mistake("'" + std::string(name) + "' is missing");
}

void JsonFields::Mistake(std::string words) {
  if (mistake_.empty()) mistake_ = std::move(words);
}

bool JsonFields::Is(std::string_view name, bool good, std::string_view wanted) {
  if (!good) Mistake("'" + std::string(name) + "' is not " + std::string(wanted));
  return good;
}

Status JsonFields::Check(std::string_view what) const {
  if (good()) return {};
  return Error{Code::kCorrupt, std::string(what) + " is damaged or not Muster's: " + mistake_,
               "use a namespace of its own for each deployment"};
}

}  // namespace muster
