#include "pipeline/transform/transform_metadata.h"

#include <algorithm>
#include <functional>

#include "core/json.h"

namespace muster::pipeline {
namespace {

using Names = std::vector<std::string>;

bool IsOneOf(const std::string& name, const std::vector<JsonPath>& paths) {
  return std::any_of(paths.begin(), paths.end(),
                     [&](const JsonPath& path) { return path.names() == Names{name}; });
}

// Whether a path leads to the column or into it.
bool LeadsThrough(const std::string& name, const std::vector<JsonPath>& paths) {
  return std::any_of(paths.begin(), paths.end(),
                     [&](const JsonPath& path) { return path.names().front() == name; });
}

Json* ColumnNamed(Json& columns, const std::string& name) {
  for (Json& column : columns) {
    if (column.value("name", "") == name) return &column;
  }
  return nullptr;
}

void EraseColumns(Json& columns, const std::function<bool(const std::string&)>& goes) {
  Json kept = Json::array();
  for (Json& column : columns) {
    if (!goes(column.value("name", ""))) kept.push_back(std::move(column));
  }
  columns = std::move(kept);
}

// A key that loses a column is dropped.
void EditKey(Json& metadata, const std::string& name, const std::string& new_name) {
  const auto key = metadata.find("key");
  if (key == metadata.end() || !key->is_array()) return;
  for (Json& column : *key) {
    if (column == name && !new_name.empty()) column = new_name;
    if (column == name && new_name.empty()) {
      *key = Json::array();
      return;
    }
  }
}

void EditColumns(Json& metadata, const MetadataEdit& edit) {
  const auto columns = metadata.find("columns");
  if (columns == metadata.end() || !columns->is_array()) return;
  const auto erase = [&](const std::function<bool(const std::string&)>& goes) {
    for (const Json& column : *columns) {
      const std::string name = column.value("name", "");
      if (goes(name)) EditKey(metadata, name, "");
    }
    EraseColumns(*columns, goes);
  };
  switch (edit.kind) {
    case MetadataEdit::Kind::kRename:
      if (edit.path.names().size() != 1) return;
      if (Json* column = ColumnNamed(*columns, edit.path.names()[0])) (*column)["name"] = edit.text;
      return EditKey(metadata, edit.path.names()[0], edit.text);
    case MetadataEdit::Kind::kDrop:
      return erase([&](const std::string& name) { return IsOneOf(name, edit.paths); });
    case MetadataEdit::Kind::kSelect:
      return erase([&](const std::string& name) { return !LeadsThrough(name, edit.paths); });
    case MetadataEdit::Kind::kType: {
      if (edit.path.names().size() != 1) return;
      const std::string& name = edit.path.names()[0];
      if (Json* column = ColumnNamed(*columns, name)) {
        (*column)["type"] = edit.text;
      } else {
        columns->push_back({{"name", name}, {"type", edit.text}, {"nullable", true}});
      }
      return;
    }
    case MetadataEdit::Kind::kScript:
      return;
  }
}

// The properties that contain the last name of a path; null: not mapped.
Json* PropertiesOf(Json& metadata, const JsonPath& path) {
  const auto mappings = metadata.find("mappings");
  if (mappings == metadata.end() || !mappings->is_object()) return nullptr;
  Json* node = &*mappings;
  for (size_t i = 0; i < path.names().size(); ++i) {
    const auto properties = node->find("properties");
    if (properties == node->end() || !properties->is_object()) return nullptr;
    if (i + 1 == path.names().size()) return &*properties;
    const auto child = properties->find(path.names()[i]);
    if (child == properties->end() || !child->is_object()) return nullptr;
    node = &*child;
  }
  return nullptr;
}

// The mapping type for a column of this type.
std::string MappingTypeOf(const std::string& column_type) {
  if (column_type == "bigint") return "long";
  if (column_type == "numeric") return "double";
  if (column_type == "boolean") return "boolean";
  return column_type == "jsonb" ? "object" : "keyword";
}

bool HoldsText(const Json& mapping) {
  const std::string type = mapping.value("type", "object");
  return type == "keyword" || type == "text" || type == "wildcard";
}

void EditMappings(Json& metadata, const MetadataEdit& edit) {
  if (edit.kind == MetadataEdit::Kind::kType) {
    // The index maps unmapped fields by itself.
    Json* const properties = PropertiesOf(metadata, edit.path);
    if (properties == nullptr || !properties->contains(edit.path.names().back())) return;
    Json& mapping = (*properties)[edit.path.names().back()];
    if (!mapping.is_object() || (edit.text == "text" && HoldsText(mapping))) return;
    mapping = Json{{"type", MappingTypeOf(edit.text)}};
    return;
  }
  if (edit.kind == MetadataEdit::Kind::kDrop) {
    for (const JsonPath& path : edit.paths) {
      if (Json* properties = PropertiesOf(metadata, path)) properties->erase(path.names().back());
    }
  } else if (edit.kind == MetadataEdit::Kind::kRename) {
    Json* const properties = PropertiesOf(metadata, edit.path);
    if (properties == nullptr || !properties->contains(edit.path.names().back())) return;
    Json renamed = Json::object();
    for (auto& [name, mapping] : properties->items()) {
      renamed[name == edit.path.names().back() ? edit.text : name] = mapping;
    }
    *properties = std::move(renamed);
  }
}

// Where an index was read is a fact that no script changes: by it a sink on the same cluster leaves
// the aliases alone.
constexpr char kCluster[] = "cluster_uuid";

Status EditByScript(Json& metadata, const MetadataEdit& edit, const std::string& collection) {
  MUSTER_ASSIGN(Json edited, edit.script(metadata, collection));
  edited.erase(kCluster);
  if (metadata.contains(kCluster)) edited[kCluster] = metadata[kCluster];
  metadata = std::move(edited);
  return {};
}

Error Wrong(const std::string& what, const char* must) {
  return Error{Code::kInvalid, what + " must be " + must};
}

bool HasOther(const Json& object, const char* name, bool (Json::*is_right)() const) {
  return object.contains(name) && !(object[name].*is_right)();
}

Status CheckColumns(const Json& metadata) {
  if (HasOther(metadata, "columns", &Json::is_array)) return Wrong("columns", "an array");
  if (HasOther(metadata, "key", &Json::is_array)) return Wrong("key", "an array of names");
  if (!metadata.contains("columns")) return {};
  for (const Json& column : metadata["columns"]) {
    if (!column.is_object() || !column.contains("name") ||
        HasOther(column, "name", &Json::is_string) || HasOther(column, "type", &Json::is_string) ||
        HasOther(column, "nullable", &Json::is_boolean)) {
      return Wrong("a column", "{name: a string, type: a string, nullable: true or false}");
    }
  }
  return {};
}

// `node` is the mappings of an index, of a type in it, or of a field.
Status CheckFields(const Json& node) {
  const auto properties = node.find("properties");
  if (properties == node.end()) return {};
  if (!properties->is_object()) return Wrong("properties", "an object");
  for (const auto& [name, field] : properties->items()) {
    if (!field.is_object() || HasOther(field, "type", &Json::is_string)) {
      return Wrong("the mapping of '" + name + "'", "an object, its type a string");
    }
    MUSTER_TRY(CheckFields(field));
  }
  return {};
}

}  // namespace

Result<std::string> EditMetadata(const Collection& collection,
                                 const std::vector<MetadataEdit>& edits) {
  auto json = ParseJson(collection.metadata, "metadata");
  if (!json || !json->is_object() || edits.empty()) return collection.metadata;
  for (const MetadataEdit& edit : edits) {
    if (edit.kind == MetadataEdit::Kind::kScript) {
      MUSTER_TRY(EditByScript(*json, edit, collection.name));
      continue;
    }
    EditColumns(*json, edit);
    EditMappings(*json, edit);
  }
  return ToJsonText(*json);
}

Status CheckMetadata(const Json& metadata) {
  for (const char* name : {"mappings", "settings", "aliases"}) {
    if (HasOther(metadata, name, &Json::is_object)) return Wrong(name, "an object");
  }
  MUSTER_TRY(CheckColumns(metadata));
  if (!metadata.contains("mappings")) return {};
  const Json& mappings = metadata["mappings"];
  MUSTER_TRY(CheckFields(mappings));
  // Old versions have types between mappings and properties.
  for (const auto& [name, type] : mappings.items()) {
    if (type.is_object() && name != "properties") MUSTER_TRY(CheckFields(type));
  }
  return {};
}

std::string ColumnTypeOfValue(const std::string& json) {
  if (json.starts_with('"')) return "text";
  if (json.starts_with('{') || json.starts_with('[')) return "jsonb";
  if (json == "true" || json == "false") return "boolean";
  return json.find_first_of(".eE") == std::string::npos ? "bigint" : "numeric";
}

std::string ColumnTypeOf(const std::string& cast_type) {
  if (cast_type == "integer") return "bigint";
  if (cast_type == "number") return "numeric";
  if (cast_type == "boolean") return "boolean";
  return "text";
}

}  // namespace muster::pipeline
