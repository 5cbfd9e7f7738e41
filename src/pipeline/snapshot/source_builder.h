#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lucene/lucene.h"
#include "muster/result.h"
#include "pipeline/snapshot/rebuild_plan.h"

namespace muster::pipeline {

// Builds the text of documents from the values of their fields. One thread at a time.
class SourceBuilder {
 public:
  using Values = std::vector<std::vector<lucene::IndexedValue>>;

  explicit SourceBuilder(std::shared_ptr<const RebuildPlan> plan) : plan_(std::move(plan)) {}

  // What to have read of each document.
  std::vector<lucene::WantedField> Wanted() const;

  // A document from its values, in the order of the plan, and from what is stored of it: an object
  // or nothing. Members that are stored stay as they are. Valid until the next call.
  // kIncompatible: it cannot be rebuilt exactly.
  Result<std::string_view> Build(const Values& values, std::string_view stored);

 private:
  bool HasValues(const RebuiltMember& member, const Values& values) const;
  Status Merge(const RebuiltMember& object, const Values& values, std::string_view stored);
  // `is_single`: the object is known not to be one of an array.
  Status AppendObject(const RebuiltMember& object, const Values& values, bool is_single);
  Status AppendMember(const RebuiltMember& member, const Values& values, bool is_single);
  void Comma();

  const std::shared_ptr<const RebuildPlan> plan_;
  std::string text_;
};

}  // namespace muster::pipeline
