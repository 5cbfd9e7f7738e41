#include "metadata/compare.h"

#include <array>
#include <map>
#include <string_view>
#include <utility>

#include "core/json_fields.h"

namespace muster::metadata {
namespace {

// Members by path, with values as text: servers turn numbers and flags into strings.
using Members = std::map<std::string, std::string>;

constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kDefaults = {{
    {"index", "true"},
    {"doc_values", "true"},
    {"norms", "true"},
    {"enabled", "true"},
    {"dynamic", "true"},
    {"store", "false"},
    {"coerce", "true"},
    {"ignore_malformed", "false"},
    {"type", "object"},
    {"format", "strict_date_optional_time||epoch_millis"},
    {"similarity", "BM25"},
    {"order", "0"},
    {"index.number_of_replicas", "1"},
    {"index.number_of_shards", "1"},
}};

bool IsDefault(std::string_view path, const std::string& value) {
  for (const auto& [name, usual] : kDefaults) {
    if (value == usual && path.ends_with(name) &&
        (path.size() == name.size() || path[path.size() - name.size() - 1] == '.' ||
         path[path.size() - name.size() - 1] == ' ')) {
      return true;
    }
  }
  return false;
}

void Flatten(const Json& node, const std::string& path, Members& members) {
  if (node.is_null() || (node.is_structured() && node.empty())) return;
  if (!node.is_object()) {
    members[path] = node.is_string() ? node.get<std::string>() : ToJsonText(node);
    return;
  }
  for (const auto& [name, value] : node.items()) {
    Flatten(value, path.empty() || path.back() == ' ' ? path + name : path + "." + name, members);
  }
}

// Values that servers write in more than one way.
Json Normal(Kind kind, Json body) {
  if (!body.is_object()) return body;
  if (body.contains("index_patterns") && body["index_patterns"].is_string()) {
    body["index_patterns"] = Json::array({body["index_patterns"]});
  }
  Json& content = ContentOf(kind, body);
  if (!content.is_object() || !content.contains("aliases")) return body;
  for (auto& [name, options] : content["aliases"].items()) {
    if (!options.is_object()) continue;
    if (options.contains("routing")) {
      for (const char* each : {"index_routing", "search_routing"}) {
        if (!options.contains(each)) options[each] = options["routing"];
      }
      options.erase("routing");
    }
  }
  return body;
}

// Names of settings contain dots themselves.
Members MembersOf(Kind kind, const Json& body) {
  Json rest = Normal(kind, body);
  Members members;
  if (!rest.is_object()) return members;
  if (kind == Kind::kPolicy || kind == Kind::kPipeline) {
    Flatten(rest, "", members);
    return members;
  }
  Json& content = ContentOf(kind, rest);
  if (content.is_object()) {
    Flatten(MemberIn(content, "settings"), "settings ", members);
    Flatten(MemberIn(content, "mappings"), "mappings ", members);
    for (const auto& [name, options] : MemberIn(content, "aliases").items()) {
      members["aliases " + name] = "there";
      Flatten(options, "aliases " + name, members);
    }
    for (const char* part : {"settings", "mappings", "aliases"}) content.erase(part);
  }
  if (kind != Kind::kIndex && kind != Kind::kDataStream) Flatten(rest, "", members);
  return members;
}

}  // namespace

Differences Compare(Kind kind, const Json& wanted, const Json& found) {
  const Members here = MembersOf(kind, wanted);
  const Members there = MembersOf(kind, found);
  Differences differences;
  for (const auto& [path, value] : here) {
    const auto other = there.find(path);
    if (other == there.end()) {
      if (!IsDefault(path, value)) differences.wanted.push_back(path + ": missing");
    } else if (other->second != value) {
      differences.wanted.push_back(path + ": " + other->second + ", not " + value);
    }
  }
  for (const auto& [path, value] : there) {
    if (!here.contains(path) && !IsDefault(path, value)) {
      differences.extra.push_back(path + ": only in the target");
    }
  }
  return differences;
}

std::vector<Member> Additions(Kind kind, const Json& wanted, const Json& found) {
  const Members here = MembersOf(kind, wanted);
  std::vector<Member> additions;
  for (const auto& [path, value] : MembersOf(kind, found)) {
    const auto other = here.find(path);
    const bool is_same = other != here.end() ? other->second == value : IsDefault(path, value);
    if (!is_same) additions.push_back({path, value, other != here.end()});
  }
  return additions;
}

}  // namespace muster::metadata
