#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/regex.h"
#include "muster/pipeline.h"
#include "pipeline/transform/transform_metadata.h"

namespace muster::pipeline {

// Makes a transform for the documents of a collection.
using TransformMaker =
    std::function<Result<std::unique_ptr<Transform>>(const std::string& collection)>;

struct IndexRename {
  Regex from;
  std::string to;  // $1 to $9 are the matched groups

  // None: `name` does not match.
  std::optional<std::string> Apply(const std::string& name) const;
};

// The transforms of a file, and what they mean for the names and metadata of collections.
class EditPlan final : public TransformPlan {
 public:
  Result<std::vector<std::unique_ptr<Transform>>> Make(
      const std::string& collection) const override;
  std::string TargetName(const std::string& collection) const override;
  bool EditsDocuments() const override { return !makers.empty(); }
  bool ChoosesTargets() const override { return chooses_targets; }
  std::string Scripts() const override { return scripts; }
  Result<Collection> Target(const Collection& collection) const override;

  std::vector<TransformMaker> makers;
  std::vector<IndexRename> index_renames;  // the first match wins
  std::vector<MetadataEdit> metadata_edits;
  std::string scripts;
  bool chooses_targets = false;
};

}  // namespace muster::pipeline
