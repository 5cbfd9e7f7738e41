#include "pipeline/json/field_tree.h"

#include <algorithm>

#include "core/json_scan.h"

namespace muster::pipeline {

const FieldTree* FieldTree::Find(std::string_view raw_key) const {
  const auto found = std::find_if(children.begin(), children.end(), [&](const FieldTree& child) {
    return JsonKeyIs(raw_key, child.name);
  });
  return found == children.end() ? nullptr : &*found;
}

Status FieldTree::Add(const JsonPath& path, int number) {
  FieldTree* node = this;
  for (const std::string& part : path.names()) {
    if (node->leaf >= 0) break;
    const auto found = std::find_if(node->children.begin(), node->children.end(),
                                    [&](const FieldTree& child) { return child.name == part; });
    node = found != node->children.end() ? &*found
                                         : &node->children.emplace_back(FieldTree{.name = part});
  }
  if (node->leaf >= 0 || !node->children.empty()) {
    return Error{Code::kInvalid,
                 "the field '" + path.text() + "' occurs twice, or is part of another"};
  }
  node->leaf = number;
  return {};
}

}  // namespace muster::pipeline
