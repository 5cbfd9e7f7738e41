#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lucene/lucene.h"

namespace muster::pipeline {

// How the values of a field are written in JSON.
enum class RebuiltType {
  kInteger,
  kFloat,
  kDouble,
  kBoolean,
  kDate,         // in milliseconds, written in ISO 8601
  kDateNanos,    // in nanoseconds, written in ISO 8601
  kEpochMillis,  // written as the number
  kIp,
  kText
};

// A field whose values are rebuilt.
struct RebuiltField {
  std::string path;  // as in Lucene: "shop.city"
  RebuiltType type = RebuiltType::kText;
  bool is_stored = false;  // from stored fields; otherwise from doc values
};

// The place of rebuilt fields in a document: an object, or a field.
struct RebuiltMember {
  std::string name;
  std::optional<size_t> field = {};  // in RebuildPlan::fields; none: an object
  std::vector<RebuiltMember> members = {};
};

// How the documents of an index get back what their _source lacks.
struct RebuildPlan {
  std::vector<RebuiltField> fields;
  RebuiltMember root;
  // Why it is not possible: "FIELD (reason)". Empty if it is.
  std::vector<std::string> problems;
};

// Decides by an index's mapping and settings, for an index that keeps no _source or a part of it.
RebuildPlan PlanRebuild(const lucene::SnapshotIndex& index);

}  // namespace muster::pipeline
