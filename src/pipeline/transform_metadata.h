#pragma once

#include <string>
#include <vector>

#include "pipeline/json_path.h"

namespace muster {

// What a transform of fields does to what is known of a collection.
struct MetadataEdit {
  enum class Kind { kRename, kDrop, kSelect, kType };
  Kind kind = Kind::kRename;
  JsonPath path = {};
  std::vector<JsonPath> paths = {};  // of kDrop and kSelect
  std::string text = {};             // the new name, or the type of a column
};

// Collection::metadata after the edits: the columns of a table and the mappings of an index fit the
// documents that come out of the transforms. What is neither stays as it is.
std::string EditMetadata(const std::string& metadata, const std::vector<MetadataEdit>& edits);

// The type of a column for values that were cast, and for a JSON value.
std::string ColumnTypeOf(const std::string& cast_type);
std::string ColumnTypeOfValue(const std::string& json);

}  // namespace muster
