#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"
#include "pipeline/json/json_path.h"

namespace muster::pipeline {

// Fields as a tree of paths, so that one pass over a document finds them all. Arrays are
// transparent: each element is visited.
struct FieldTree {
  std::string name;
  int leaf = -1;  // index of the path that ends here
  std::vector<FieldTree> children = {};

  const FieldTree* Find(std::string_view raw_key) const;

  // kInvalid: a path is a prefix of another, or is duplicated.
  Status Add(const JsonPath& path, int number);
};

}  // namespace muster::pipeline
