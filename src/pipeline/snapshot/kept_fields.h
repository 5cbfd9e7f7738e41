#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"

namespace muster::pipeline {

// Which fields a mapping keeps in _source, by its `enabled`, `includes` and `excludes`.
class KeptFields {
 public:
  // `source`: the mapping's _source.
  explicit KeptFields(const Json& source);

  // Whether the field, or the object with all of its fields, is in _source.
  bool Keeps(std::string_view path) const;

  // Whether an object, or the document for an empty path, is in _source with all that it could
  // have, also with fields that the mapping does not have. `mapped` has the paths of all fields and
  // objects of the mapping.
  bool KeepsUnknown(std::string_view path, const std::vector<std::string>& mapped) const;

 private:
  bool enabled_ = true;
  std::vector<std::string> includes_;
  std::vector<std::string> excludes_;
};

}  // namespace muster::pipeline
