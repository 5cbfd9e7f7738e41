#include "metadata/rule.h"

#include <algorithm>

#include "core/json_equal.h"
#include "metadata/settings.h"

namespace muster::metadata {
namespace {

// Settings are always text, and mappings sometimes: true and "true" are the same.
std::string AsText(const Json& value) {
  return value.is_string() ? value.get<std::string>() : ToJsonText(value);
}

bool IsWanted(const Json* value, const Json& wanted) {
  if (wanted.is_array()) {
    return std::any_of(wanted.begin(), wanted.end(),
                       [&](const Json& one) { return IsWanted(value, one); });
  }
  if (wanted.is_null()) return value == nullptr;
  if (value == nullptr) return false;
  if (wanted == "*") return true;
  if (wanted.is_object()) return value->is_object();
  return !value->is_structured() && AsText(*value) == AsText(wanted);
}

bool AnyMatches(const std::vector<Pattern>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const Pattern& pattern) { return pattern.Matches(name); });
}

const Json* Find(const Json& members, const std::string& name) {
  const auto found = members.find(name);
  return found == members.end() ? nullptr : &*found;
}

// "index_options.m" in a field.
const Json* FindPath(const Json& members, const std::string& path) {
  const Json* at = &members;
  for (size_t start = 0; start <= path.size();) {
    const size_t dot = std::min(path.find('.', start), path.size());
    if (!at->is_object()) return nullptr;
    at = Find(*at, path.substr(start, dot - start));
    if (at == nullptr) return nullptr;
    start = dot + 1;
  }
  return at;
}

// {"$from": PATH, "$map": {…}, "$default": value} in a template stands for a value of the original.
// Without one, the member is left out. Null: left out.
Json Filled(const Json& shape, const Json& original) {
  if (!shape.is_object()) return shape;
  if (!shape.contains("$from")) {
    Json filled = Json::object();
    for (const auto& [name, value] : shape.items()) {
      Json member = Filled(value, original);
      if (!member.is_null()) filled[name] = std::move(member);
    }
    return filled.empty() && !shape.empty() ? Json() : filled;
  }
  const Json* value = FindPath(original, shape["$from"].get<std::string>());
  if (value != nullptr && shape.contains("$map")) value = Find(shape["$map"], AsText(*value));
  return value != nullptr ? *value : shape["$default"];
}

// Renames values by `names`; "a||b" has several.
std::optional<Json> Translated(const Json& value, const Json& names) {
  if (value.is_structured()) return std::nullopt;
  const std::string text = AsText(value);
  if (const Json* found = Find(names, text)) return *found;
  constexpr std::string_view kOr = "||";
  if (text.find(kOr) == std::string::npos) return std::nullopt;
  std::string all;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find(kOr, start), text.size());
    const std::string part = text.substr(start, end - start);
    const Json* found = Find(names, part);
    all += (start == 0 ? "" : std::string(kOr)) + (found != nullptr ? AsText(*found) : part);
    start = end + kOr.size();
  }
  if (all == text) return std::nullopt;
  return Json(all);
}

}  // namespace

bool Rule::AppliesTo(const Object& object, const ClusterVersion& from,
                     const ClusterVersion& to) const {
  const auto includes = [](const std::vector<VersionRange>& ranges, const ClusterVersion& version) {
    return ranges.empty() || std::any_of(ranges.begin(), ranges.end(), [&](const auto& range) {
             return range.Includes(version);
           });
  };
  // For a source of unknown version the rules go by its features.
  if (from.IsKnown() && !includes(source, from)) return false;
  if (!includes(target, to)) return false;
  if (!kinds.empty() && std::find(kinds.begin(), kinds.end(), object.kind) == kinds.end()) {
    return false;
  }
  return names.empty() || AnyMatches(names, object.name);
}

bool Rule::Matches(const Json& members) const {
  for (const auto& [name, wanted] : when.items()) {
    if (name.find('*') == std::string::npos) {
      const Json* value = Find(members, name);
      if (value == nullptr) value = FindPath(members, name);
      if (!IsWanted(value, wanted)) return false;
      continue;
    }
    const auto pattern = Pattern::Parse(name);
    const bool any =
        std::any_of(members.items().begin(), members.items().end(), [&](const auto& member) {
          return pattern && pattern->Matches(member.first) && IsWanted(&member.second, wanted);
        });
    if (!any) return false;
  }
  return true;
}

std::vector<std::string> Rule::Edit(Json& members) const {
  std::vector<std::string> changed;
  if (!replace.is_null()) {
    Json filled = Filled(replace, members);
    if (JsonEqual(filled, members)) return changed;
    members = std::move(filled);
    return {"*"};
  }
  const auto assign = [&](const std::string& name, const Json& value) {
    if (value.is_null() || JsonEqual(std::as_const(members)[name], value)) return;
    members[name] = value;
    changed.push_back(name);
  };
  const Json original = members;
  for (const auto& [name, new_name] : rename.items()) {
    if (!members.contains(name)) continue;
    const Json value = members[name];
    members.erase(name);
    if (!members.contains(AsText(new_name))) members[AsText(new_name)] = value;
    changed.push_back(name);
  }
  for (const auto& [name, translations] : values.items()) {
    const Json* value = Find(members, name);
    if (value == nullptr) continue;
    if (const auto translated = Translated(*value, translations)) {
      translated->is_null() ? static_cast<void>(members.erase(name)) : assign(name, *translated);
      if (translated->is_null()) changed.push_back(name);
    }
  }
  for (const auto& [name, value] : set.items()) assign(name, Filled(value, original));
  for (const auto& [name, value] : defaults.items()) {
    if (!members.contains(name)) assign(name, value);
  }
  const auto goes = [&](const std::string& name) {
    return AnyMatches(remove, name) || (keep && !AnyMatches(*keep, name));
  };
  for (const std::string& name : EraseIf(members, goes)) changed.push_back(name);
  return changed;
}

}  // namespace muster::metadata
