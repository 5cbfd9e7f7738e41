#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"
#include "pipeline/json_path.h"

namespace muster {

// Fields by their paths, so that one pass over a document meets them all. What an array holds is
// looked at element by element, as if the array were not there.
struct FieldTree {
  std::string name;
  int leaf = -1;  // which of the paths ends here
  std::vector<FieldTree> children = {};

  const FieldTree* Find(std::string_view raw_key) const;

  // kInvalid: one path leads through another, or is there twice.
  Status Add(const JsonPath& path, int number);
};

}  // namespace muster
