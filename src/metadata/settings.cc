#include "metadata/settings.h"

#include <algorithm>
#include <map>
#include <vector>

#include "core/number.h"

namespace muster::metadata {
namespace {

constexpr std::string_view kPrefix = "index.";

void Flatten(const Json& node, const std::string& name, Json& flat) {
  if (!node.is_object()) {
    if (!node.is_null()) flat[name] = node;
    return;
  }
  for (const auto& [key, value] : node.items()) {
    Flatten(value, name.empty() ? key : name + "." + key, flat);
  }
}

// "a.0", "a.1" → "a": [...]
Json WithLists(const Json& flat) {
  std::map<std::string, std::map<size_t, Json>> lists;
  for (const auto& [name, value] : flat.items()) {
    const size_t dot = name.rfind('.');
    if (dot == std::string::npos) continue;
    const auto number = ParseNumber<size_t>(std::string_view(name).substr(dot + 1));
    if (number) lists[name.substr(0, dot)][*number] = value;
  }
  Json joined = Json::object();
  for (const auto& [name, value] : flat.items()) {
    const std::string parent = name.substr(0, name.rfind('.'));
    const auto list = lists.find(parent);
    const bool is_element = list != lists.end() && list->second.contains(0) &&
                            list->second.rbegin()->first + 1 == list->second.size() &&
                            ParseNumber<size_t>(std::string_view(name).substr(parent.size() + 1));
    if (!is_element) {
      joined[name] = value;
    } else if (!joined.contains(parent)) {
      Json elements = Json::array();
      for (const auto& [number, element] : list->second) elements.push_back(element);
      joined[parent] = std::move(elements);
    }
  }
  return joined;
}

}  // namespace

Json FlatSettings(const Json& settings) {
  Json flat = Json::object();
  if (!settings.is_object()) return flat;
  Flatten(settings, "", flat);
  Json full = Json::object();
  for (const auto& [name, value] : flat.items()) {
    full[name.starts_with(kPrefix) ? name : std::string(kPrefix) + name] = value;
  }
  return WithLists(full);
}

std::vector<std::string> EraseIf(Json& object,
                                 const std::function<bool(const std::string&)>& goes) {
  std::vector<std::string> erased;
  for (const auto& [name, value] : object.items()) {
    if (goes(name)) erased.push_back(name);
  }
  for (const std::string& name : erased) object.erase(name);
  return erased;
}

}  // namespace muster::metadata
