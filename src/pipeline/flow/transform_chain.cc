#include "pipeline/flow/transform_chain.h"

#include <set>
#include <string_view>
#include <utility>

namespace muster::pipeline {
namespace {

// They are written in one batch.
constexpr size_t kMostMade = 10'000;

// Repeating the work must write the same documents, and each must have a place of its own in its
// target: both take an id.
Status NumberParts(std::vector<Document>& documents) {
  std::set<std::pair<std::string_view, std::string_view>> ids;  // by target
  int64_t part = 0;
  for (Document& document : documents) {
    document.part = ++part;
    if (document.id.empty()) {
      return Error{Code::kInvalid, "document " + std::to_string(part) +
                                       " of several that were made of this one has no id"};
    }
    if (!ids.emplace(document.target, document.id).second) {
      return Error{Code::kInvalid, "several documents that were made of this one have the id '" +
                                       std::string(document.id) + "'"};
    }
  }
  return {};
}

}  // namespace

Result<TransformChain> TransformChain::Of(const TransformPlan& plan,
                                          const std::string& collection) {
  MUSTER_ASSIGN(auto transforms, plan.Make(collection));
  return TransformChain(std::move(transforms), plan.TargetName(collection));
}

Status TransformChain::Apply(const Document& document, Arena& arena, Made& made) {
  made.documents.assign(1, document);
  made.skipped = 0;
  made.bytes = static_cast<int64_t>(document.body.size());
  for (const auto& transform : transforms_) MUSTER_TRY(ApplyOne(*transform, arena, made));
  for (Document& one : made.documents) {
    if (one.target == target_) one.target = {};
  }
  return made.added() > 0 ? NumberParts(made.documents) : Status();
}

Status TransformChain::ApplyOne(Transform& transform, Arena& arena, Made& made) {
  std::swap(made.documents, before_);
  made.documents.clear();
  for (Document& document : before_) {
    more_.clear();
    MUSTER_ASSIGN(const bool kept, transform.Apply(document, arena, more_));
    if (!kept) {
      ++made.skipped;
      continue;
    }
    if (made.documents.size() + 1 + more_.size() > kMostMade) {
      return Error{Code::kInvalid,
                   "more than " + std::to_string(kMostMade) + " documents were made of this one"};
    }
    made.documents.push_back(document);
    made.bytes += static_cast<int64_t>(document.body.size());
    for (const Document& one : more_) {
      made.documents.push_back(one);
      made.bytes += static_cast<int64_t>(one.body.size());
    }
  }
  return {};
}

}  // namespace muster::pipeline
