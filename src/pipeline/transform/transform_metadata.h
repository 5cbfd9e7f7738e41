#pragma once

#include <string>
#include <vector>

#include "pipeline/json/json_path.h"

namespace muster::pipeline {

// What a field transform does to a collection's metadata.
struct MetadataEdit {
  enum class Kind { kRename, kDrop, kSelect, kType };
  Kind kind = Kind::kRename;
  JsonPath path = {};
  std::vector<JsonPath> paths = {};  // of kDrop and kSelect
  std::string text = {};             // the new name, or the type of a column
};

// Collection::metadata after the edits: a table's columns and an index's mappings match the
// transformed documents. Other metadata is unchanged.
std::string EditMetadata(const std::string& metadata, const std::vector<MetadataEdit>& edits);

// The column type for cast values, and for a JSON value.
std::string ColumnTypeOf(const std::string& cast_type);
std::string ColumnTypeOfValue(const std::string& json);

}  // namespace muster::pipeline
