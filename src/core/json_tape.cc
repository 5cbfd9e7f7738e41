#include "core/json_tape.h"

#include <simdjson.h>

#include <algorithm>
#include <string>
#include <vector>

namespace muster {
namespace {

namespace dom = simdjson::dom;

// Buffers up to this size are kept for reuse: most texts are small.
constexpr size_t kKeptBytes = 256 * 1024;
constexpr size_t kFewMembers = 16;

bool AllDiffer(const Json::Object& members) {
  if (members.size() <= kFewMembers) {
    for (size_t i = 1; i < members.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (members[i].first == members[j].first) return false;
      }
    }
    return true;
  }
  std::vector<std::string_view> keys;
  keys.reserve(members.size());
  for (const auto& [key, value] : members) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  return std::adjacent_find(keys.begin(), keys.end()) == keys.end();
}

bool Build(dom::element from, size_t max_depth, Json& to);

bool BuildArray(dom::array from, size_t max_depth, Json& to) {
  if (max_depth == 0) return false;
  to = Json::array();
  auto& elements = to.get_ref<Json::Array&>();
  elements.reserve(from.size());
  for (const dom::element element : from) {
    if (!Build(element, max_depth - 1, elements.emplace_back())) return false;
  }
  return true;
}

bool BuildObject(dom::object from, size_t max_depth, Json& to) {
  if (max_depth == 0) return false;
  to = Json::object();
  auto& members = to.get_ref<Json::Object&>();
  members.reserve(from.size());
  for (const dom::key_value_pair member : from) {
    if (!Build(member.value, max_depth - 1, members.emplace_back(member.key, Json()).second))
      return false;
  }
  return AllDiffer(members);
}

bool Build(dom::element from, size_t max_depth, Json& to) {
  switch (from.type()) {
    case dom::element_type::ARRAY:
      return BuildArray(from.get_array().value_unsafe(), max_depth, to);
    case dom::element_type::OBJECT:
      return BuildObject(from.get_object().value_unsafe(), max_depth, to);
    case dom::element_type::INT64:
      // Like the other parser: only negative numbers are signed.
      if (const int64_t value = from.get_int64().value_unsafe(); value < 0) {
        to = value;
      } else {
        to = static_cast<uint64_t>(value);
      }
      return true;
    case dom::element_type::UINT64:
      to = from.get_uint64().value_unsafe();
      return true;
    case dom::element_type::DOUBLE:
      to = from.get_double().value_unsafe();
      return true;
    case dom::element_type::STRING:
      to = Json(from.get_string().value_unsafe());
      return true;
    case dom::element_type::BOOL:
      to = from.get_bool().value_unsafe();
      return true;
    case dom::element_type::NULL_VALUE:
      return true;
  }
  return false;
}

std::optional<Json> ReadBy(dom::parser& parser, std::string_view text, size_t max_depth) {
  if (text.empty()) return std::nullopt;  // its data may be null, which the parser must not get
  dom::element root;
  if (parser.parse(text.data(), text.size()).get(root) != simdjson::SUCCESS) return std::nullopt;
  std::optional<Json> json(std::in_place);
  if (!Build(root, max_depth, *json)) return std::nullopt;
  return json;
}

}  // namespace

std::optional<Json> ReadOrdinaryJson(std::string_view text, size_t max_depth) {
  // Destructors of static objects may run after the thread-locals are gone.
  thread_local bool is_gone = false;
  struct Kept {
    dom::parser parser;
    ~Kept() { is_gone = true; }
  };
  if (is_gone || text.size() > kKeptBytes) {
    dom::parser parser;
    return ReadBy(parser, text, max_depth);
  }
  thread_local Kept kept;
  return ReadBy(kept.parser, text, max_depth);
}

}  // namespace muster
