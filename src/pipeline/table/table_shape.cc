#include "pipeline/table/table_shape.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/json.h"

namespace muster::pipeline {
namespace {

constexpr std::pair<std::string_view, std::string_view> kMappedTypes[] = {
    {"keyword", "text"},
    {"constant_keyword", "text"},
    {"wildcard", "text"},
    {"text", "text"},
    {"match_only_text", "text"},
    {"annotated_text", "text"},
    {"string", "text"},
    {"version", "text"},
    {"binary", "bytea"},
    {"long", "bigint"},
    {"integer", "integer"},
    {"short", "smallint"},
    {"byte", "smallint"},
    {"unsigned_long", "numeric"},
    {"double", "double precision"},
    {"float", "double precision"},
    {"half_float", "double precision"},
    {"scaled_float", "numeric"},
    {"boolean", "boolean"},
    {"ip", "inet"},
    {"date", "timestamp with time zone"},
    {"date_nanos", "timestamp with time zone"},
};

// Goes into SQL verbatim, so only a plain type name may pass.
bool IsPlainType(const std::string& type) {
  return !type.empty() && std::all_of(type.begin(), type.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == ' ' || c == '_' || c == '(' || c == ')' || c == ',' ||
           c == '[' || c == ']';
  });
}

// A custom date format may be misread by PostgreSQL, or not read at all.
std::string TypeOfField(const Json& field) {
  const std::string type = field.value("type", "object");
  if (type.starts_with("date") && field.contains("format")) return "text";
  for (const auto& [mapped, sql] : kMappedTypes) {
    if (type == mapped) return std::string(sql);
  }
  return "jsonb";
}

TableShape DocumentShape(bool has_ids) {
  TableShape shape;
  shape.columns = {{"id", "text", !has_ids}, {"document", "jsonb", false}};
  if (has_ids) {
    shape.columns.insert(shape.columns.begin() + 1, {"routing", "text", true});
    shape.key = {"id"};
  }
  return shape;
}

// Old versions have types between mappings and properties.
const Json* PropertiesOf(const Json& mappings) {
  const Json* inside = &mappings;
  if (!mappings.contains("properties") && mappings.size() == 1 && mappings.begin()->is_object()) {
    inside = &*mappings.begin();
  }
  const auto found = inside->find("properties");
  const bool open_ended = inside->contains("dynamic") && (*inside)["dynamic"] != "strict" &&
                          (*inside)["dynamic"] != true && (*inside)["dynamic"] != "true";
  if (open_ended || found == inside->end() || !found->is_object() || found->empty()) return nullptr;
  return &*found;
}

TableShape MappedShape(const Json& mappings) {
  const Json* properties = mappings.is_object() ? PropertiesOf(mappings) : nullptr;
  if (properties == nullptr) return DocumentShape(true);
  TableShape shape;
  shape.columns.push_back({"_id", "text", false});
  shape.columns.push_back({"_routing", "text", true});
  shape.key = {"_id"};
  for (const auto& [name, field] : properties->items()) {
    if (!field.is_object() || field.value("type", "") == "alias") continue;
    shape.columns.push_back({name, TypeOfField(field), true});
  }
  return shape;
}

Result<TableShape> ColumnShape(const Collection& collection, const Json& metadata) {
  TableShape shape;
  for (const Json& column : metadata["columns"]) {
    if (!column.is_object() || !column.contains("name") || !column["name"].is_string()) {
      return Error{Code::kInvalid, "metadata of " + collection.name + ": a column has no name"};
    }
    const std::string type = column.value("type", "text");
    shape.columns.push_back({column["name"].get<std::string>(), IsPlainType(type) ? type : "text",
                             column.value("nullable", true)});
  }
  if (metadata.contains("key") && metadata["key"].is_array()) {
    for (const Json& name : metadata["key"]) {
      if (name.is_string()) shape.key.push_back(name.get<std::string>());
    }
  }
  return shape;
}

}  // namespace

Error NoIdColumn(const std::string& table) {
  return Error{Code::kIncompatible,
               "table " + table + " has no column _id to find deleted documents by",
               "add the column and migrate everything again, or keep whole documents with "
               "documents=true"};
}

Result<TableShape> ShapeOf(const Collection& collection, bool documents) {
  MUSTER_ASSIGN(const Json metadata,
                ParseJson(collection.metadata, "metadata of " + collection.name));
  const bool is_index = metadata.is_object() && metadata.contains("mappings");
  const bool is_table = metadata.is_object() && metadata.contains("columns") &&
                        metadata["columns"].is_array() && !metadata["columns"].empty();
  if (documents || (!is_index && !is_table)) return DocumentShape(is_index || is_table);
  if (is_table) return ColumnShape(collection, metadata);
  return MappedShape(metadata["mappings"]);
}

std::string MetadataOf(const TableShape& shape) {
  Json columns = Json::array();
  for (const TableShape::Column& column : shape.columns) {
    columns.push_back(
        {{"name", column.name}, {"type", column.type}, {"nullable", column.nullable}});
  }
  return ToJsonText(Json{{"columns", std::move(columns)}, {"key", shape.key}});
}

}  // namespace muster::pipeline
