#include "pipeline/transform/edit_plan.h"

#include <utility>

namespace muster::pipeline {

std::optional<std::string> IndexRename::Apply(const std::string& name) const {
  const auto groups = from.Groups(name);
  if (!groups) return std::nullopt;
  std::string result(name.data(), groups->at(0).data() - name.data());
  for (size_t i = 0; i < to.size(); ++i) {
    const bool is_group = to[i] == '$' && i + 1 < to.size() && to[i + 1] >= '0' && to[i + 1] <= '9';
    if (!is_group) {
      result += to[i];
      continue;
    }
    const auto group = static_cast<size_t>(to[++i] - '0');
    if (group < groups->size()) result += (*groups)[group];
  }
  const std::string_view whole = groups->at(0);
  return result.append(whole.data() + whole.size(), name.data() + name.size());
}

Result<std::vector<std::unique_ptr<Transform>>> EditPlan::Make(
    const std::string& collection) const {
  std::vector<std::unique_ptr<Transform>> all;
  for (const TransformMaker& make : makers) {
    MUSTER_ASSIGN(auto transform, make(collection));
    all.push_back(std::move(transform));
  }
  return all;
}

std::string EditPlan::TargetName(const std::string& collection) const {
  for (const IndexRename& rename : index_renames) {
    if (auto renamed = rename.Apply(collection)) return *std::move(renamed);
  }
  return collection;
}

Result<Collection> EditPlan::Target(const Collection& collection) const {
  auto metadata = EditMetadata(collection, metadata_edits);
  if (!metadata) return metadata.error().Within("collection '" + collection.name + "'");
  return Collection{TargetName(collection.name), *std::move(metadata)};
}

}  // namespace muster::pipeline
