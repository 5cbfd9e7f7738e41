#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/pipeline.h"
#include "pipeline/json/json_path.h"

namespace muster::pipeline {

// Field transforms that edit a document's bytes without parsing it, so that numbers and everything
// else they do not touch stay as written. Missing fields are ignored.

// Renames fields in place. A document that already has a field of the new name fails.
struct FieldRename {
  JsonPath path;
  std::string name;
};
Result<std::unique_ptr<Transform>> RenameFields(const std::vector<FieldRename>& renames);

Result<std::unique_ptr<Transform>> DropFields(const std::vector<JsonPath>& paths);

// Keeps only these fields, in document order.
Result<std::unique_ptr<Transform>> SelectFields(const std::vector<JsonPath>& paths);

// Sets fields to fixed JSON values, creating them and their parent objects if needed.
struct FieldSetting {
  JsonPath path;
  std::string json;
};
Result<std::unique_ptr<Transform>> SetFields(const std::vector<FieldSetting>& values);

// Maps a non-null JSON value to a new one; none: unchanged. An error fails the document.
using ValueEdit = std::function<Result<std::optional<std::string>>(std::string_view value)>;
struct FieldEdit {
  JsonPath path;
  ValueEdit edit;
};
Result<std::unique_ptr<Transform>> EditFields(std::vector<FieldEdit> edits);

}  // namespace muster::pipeline
