#pragma once

#include <functional>
#include <string>
#include <vector>

#include "muster/json.h"
#include "muster/pipeline.h"
#include "pipeline/json/json_path.h"

namespace muster::pipeline {

// What a transform does to a collection's metadata.
struct MetadataEdit {
  enum class Kind { kRename, kDrop, kSelect, kType, kScript };
  Kind kind = Kind::kRename;
  JsonPath path = {};
  std::vector<JsonPath> paths = {};  // of kDrop and kSelect
  std::string text = {};             // the new name, or the type of a column
  std::function<Result<Json>(const Json& metadata, const std::string& collection)> script = {};
};

// Collection::metadata after the edits: a table's columns and an index's mappings match the
// transformed documents. Other metadata is unchanged, but for what a script changes. kInvalid: a
// script fails.
Result<std::string> EditMetadata(const Collection& collection,
                                 const std::vector<MetadataEdit>& edits);

// kInvalid: these are not columns, mappings, settings or aliases as sources have them. Sinks rely
// on their types.
Status CheckMetadata(const Json& metadata);

// The column type for cast values, and for a JSON value.
std::string ColumnTypeOf(const std::string& cast_type);
std::string ColumnTypeOfValue(const std::string& json);

}  // namespace muster::pipeline
