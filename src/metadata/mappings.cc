#include "metadata/mappings.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/json_equal.h"
#include "core/json_fields.h"

namespace muster::metadata {
namespace {

// The members of a mapping's root in any version. Any other name is a type.
constexpr std::array<std::string_view, 37> kOfRoot = {
    "properties",
    "dynamic",
    "dynamic_templates",
    "date_detection",
    "numeric_detection",
    "dynamic_date_formats",
    "runtime",
    "derived",
    "subobjects",
    "enabled",
    "include_in_all",
    "transform",
    "analyzer",
    "index_analyzer",
    "search_analyzer",
    "_all",
    "_analyzer",
    "_boost",
    "_data_stream_timestamp",
    "_doc_count",
    "_field_names",
    "_id",
    "_index",
    "_meta",
    "_nested_path",
    "_parent",
    "_routing",
    "_size",
    "_source",
    "_tier",
    "_timestamp",
    "_ttl",
    "_type",
    "_uid",
    "_version",
    "context_aware_grouping",
    "type",
};

bool IsOfRoot(const std::string& name) {
  return std::find(kOfRoot.begin(), kOfRoot.end(), name) != kOfRoot.end();
}

bool HasTypes(const Json& mappings) {
  return !mappings.empty() &&
         std::all_of(mappings.items().begin(), mappings.items().end(), [](const auto& member) {
           return !IsOfRoot(member.first) && member.second.is_object();
         });
}

Error Disagree(const std::string& field, const std::string& type) {
  return Error{
      Code::kIncompatible,
      "its types disagree about field " + field + ", which type " + type + " maps differently",
      "give the field one mapping with a rule of your own (--rules), or migrate one type at a "
      "time"};
}

// Adds the properties of another type.
Status Join(const Json& properties, const std::string& path, const std::string& type,
            Json& joined) {
  for (const auto& [name, mapping] : properties.items()) {
    const std::string field = path.empty() ? name : path + "." + name;
    if (!joined.contains(name)) {
      joined[name] = mapping;
      continue;
    }
    Json& there = joined[name];
    if (JsonEqual(there, mapping)) continue;
    const bool are_objects = there.is_object() && mapping.is_object() &&
                             MemberIn(there, "properties").is_object() &&
                             mapping["properties"].is_object();
    if (!are_objects) return Disagree(field, type);
    Json one = there;
    Json other = mapping;
    one.erase("properties");
    other.erase("properties");
    if (!JsonEqual(one, other)) return Disagree(field, type);
    MUSTER_TRY(Join(mapping["properties"], field, type, there["properties"]));
  }
  return {};
}

void AddTemplates(const Json& templates, Json& joined) {
  if (!joined.is_array() || !templates.is_array()) return;
  for (const Json& one : templates) {
    if (std::none_of(joined.begin(), joined.end(),
                     [&](const Json& there) { return JsonEqual(there, one); })) {
      joined.push_back(one);
    }
  }
}

// A property of one type would now apply to all.
void KeepCommon(const Json& one, const Json& other, Json& joined,
                std::vector<std::string>& dropped) {
  for (const auto& [name, value] : one.items()) {
    if (name == "properties" || name == "dynamic_templates") continue;
    if (JsonEqual(value, other[name])) continue;
    joined.erase(name);
    if (std::find(dropped.begin(), dropped.end(), name) == dropped.end()) dropped.push_back(name);
  }
}

void VisitField(const std::string& path, bool is_dynamic, Json& mapping,
                const std::function<void(const Field&)>& visit);

void VisitFields(const std::string& path, bool is_dynamic, Json& fields,
                 const std::function<void(const Field&)>& visit) {
  if (!fields.is_object()) return;
  for (auto& [name, mapping] : fields.items()) {
    VisitField(path.empty() ? name : path + "." + name, is_dynamic, mapping, visit);
  }
}

void VisitField(const std::string& path, bool is_dynamic, Json& mapping,
                const std::function<void(const Field&)>& visit) {
  if (!mapping.is_object()) return;
  visit({path, mapping, is_dynamic});
  for (const char* below : {"properties", "fields"}) {
    // Only the template's own mapping may lack a type.
    if (mapping.contains(below)) VisitFields(path, false, mapping[below], visit);
  }
}

}  // namespace

std::vector<TypedMappings> SplitTypes(const Json& mappings) {
  std::vector<TypedMappings> types;
  if (mappings.is_array()) {
    for (const Json& one : mappings) {
      for (TypedMappings& typed : SplitTypes(one)) types.push_back(std::move(typed));
    }
    return types;
  }
  if (!mappings.is_object() || mappings.empty()) return types;
  if (!HasTypes(mappings)) {
    types.push_back({"", mappings});
    return types;
  }
  for (const auto& [type, own] : mappings.items()) {
    // It only affected types created later.
    if (type != "_default_") types.push_back({type, own});
  }
  // A template may have only this, and it affects the template's indices.
  if (types.empty()) types.push_back({"_default_", mappings["_default_"]});
  return types;
}

Result<Json> JoinTypes(const std::vector<TypedMappings>& types, std::vector<std::string>& dropped) {
  Json joined = Json::object();
  if (types.empty()) return joined;
  joined = types.front().mappings;
  for (size_t i = 1; i < types.size(); ++i) {
    const auto& [type, mappings] = types[i];
    for (const auto& [name, value] : mappings.items()) {
      if (name == "properties") {
        if (!joined.contains(name)) joined[name] = Json::object();
        if (!joined[name].is_object()) return Disagree("properties", type);
        MUSTER_TRY(Join(value, "", type, joined[name]));
      } else if (name == "dynamic_templates") {
        if (!joined.contains(name)) joined[name] = Json::array();
        AddTemplates(value, joined[name]);
      }
    }
    KeepCommon(types.front().mappings, mappings, joined, dropped);
    KeepCommon(mappings, types.front().mappings, joined, dropped);
  }
  return joined;
}

void ForEachField(Json& mappings, const std::function<void(const Field&)>& visit) {
  if (!mappings.is_object()) return;
  if (mappings.contains("properties")) VisitFields("", false, mappings["properties"], visit);
  if (!mappings.contains("dynamic_templates") || !mappings["dynamic_templates"].is_array()) return;
  for (Json& one : mappings["dynamic_templates"]) {
    if (!one.is_object()) continue;
    for (auto& [name, body] : one.items()) {
      if (body.is_object() && body.contains("mapping")) {
        VisitField("[" + name + "]", true, body["mapping"], visit);
      }
    }
  }
}

}  // namespace muster::metadata
