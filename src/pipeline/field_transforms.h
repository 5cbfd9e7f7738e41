#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/pipeline.h"
#include "pipeline/json_path.h"

namespace muster {

// Transforms of fields that edit the bytes of a document in place of parsing it: numbers and all
// else that they do not touch stay as they are. A field that is not there is left alone.

// Gives fields other names, where they are. A document that has such a field already fails.
struct FieldRename {
  JsonPath path;
  std::string name;
};
Result<std::unique_ptr<Transform>> RenameFields(const std::vector<FieldRename>& renames);

Result<std::unique_ptr<Transform>> DropFields(const std::vector<JsonPath>& paths);

// Leaves only these, in the order of the document.
Result<std::unique_ptr<Transform>> SelectFields(const std::vector<JsonPath>& paths);

// Replaces fields by fixed JSON values, or adds them, with the objects that lead to them.
struct FieldSetting {
  JsonPath path;
  std::string json;
};
Result<std::unique_ptr<Transform>> SetFields(const std::vector<FieldSetting>& values);

// Makes a new JSON value of an old one, which is not null; none: it stays. An error is the
// document's.
using ValueEdit = std::function<Result<std::optional<std::string>>(std::string_view value)>;
struct FieldEdit {
  JsonPath path;
  ValueEdit edit;
};
Result<std::unique_ptr<Transform>> EditFields(std::vector<FieldEdit> edits);

}  // namespace muster
