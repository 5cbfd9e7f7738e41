#include "pipeline/opensearch/opensearch_refusals.h"

#include <algorithm>

#include "core/json_fields.h"
#include "metadata/metadata.h"
#include "pipeline/flow/kept_source.h"
#include "pipeline/flow/left_out.h"
#include "pipeline/opensearch/opensearch_target.h"

namespace muster::pipeline {
namespace {

constexpr char kMayBeNew[] = "not listed; it may be new";

// Documents of two types may have the same id: in the target one would replace the other.
std::optional<Error> SeveralTypes(const std::string& place, const std::string& index,
                                  const Json& mappings) {
  const auto types = metadata::SplitTypes(mappings);
  if (types.size() < 2) return std::nullopt;
  std::string names;
  for (const auto& one : types) names += (names.empty() ? "" : ", ") + one.type;
  return Error{Code::kIncompatible,
               place + ": index " + index + " has documents of the types " + names,
               "take a snapshot and migrate that, with type=NAME or type_field=NAME in its URL, or "
               "leave it out with --exclude " +
                   index};
}

// Documents would be lost, or lose fields, without a word.
std::optional<Error> KeepsLess(const std::string& place, const std::string& index,
                               const Json& mappings, bool pruned) {
  KeptSource kept = KeptSource::kAll;
  for (const auto& one : metadata::SplitTypes(mappings)) {
    kept = std::max(kept, KeptSourceIn(one.mappings));
  }
  if (kept == KeptSource::kNothing) {
    return Error{Code::kIncompatible,
                 place + ": index " + index + ": its mapping keeps no _source, so its documents " +
                     "cannot be read",
                 "take a snapshot and migrate that with recovery_source=true or "
                 "rebuild_source=true, or leave it out with --exclude " +
                     index};
  }
  if (kept == KeptSource::kAll || pruned) return std::nullopt;
  return Error{Code::kIncompatible,
               place + ": index " + index + ": its mapping leaves fields out of _source, which " +
                   "cannot be read",
               "pruned_source=true in the URL takes documents without them; or leave it out with "
               "--exclude " +
                   index};
}

}  // namespace

std::optional<Error> RefusalOf(const std::string& place, const std::string& index,
                               const Json& metadata, bool pruned) {
  const Json& settings = MemberIn(MemberIn(metadata, "settings"), "index");
  // Since Elasticsearch 7.2.
  if (TextIn(settings, "verified_before_close") == "true") return IsClosed(place, index);
  const Json& mappings = MemberIn(metadata, "mappings");
  if (auto refusal = SeveralTypes(place, index, mappings)) return refusal;
  return KeepsLess(place, index, mappings, pruned);
}

Error IsClosed(const std::string& place, const std::string& index) {
  return Error{Code::kIncompatible, place + ": index " + index + " is closed, and cannot be read",
               "open it with POST /" + index + "/_open, or leave it out with --exclude " + index};
}

Error IsNotShown(const std::string& place, const std::string& index) {
  return Error{
      Code::kIncompatible, place + ": index " + index + " is shown neither as open nor as closed",
      "try again if it was created or deleted just now; otherwise the user needs the right "
      "to see it (indices:admin/get), or leave it out with --exclude " +
          index};
}

Error IsPartial(const std::string& place, const std::string& index, const std::string& alias) {
  return Error{Code::kIncompatible,
               place + ": alias " + alias + " shows only some documents of index " + index +
                   ": it has a filter or a routing, which would be ignored",
               "name the index, " + index +
                   ", in the source's URL; to copy only some of its documents, add a filter to "
                   "the transforms"};
}

Error OfStream(Error refusal, const std::string& index, const std::string& stream) {
  refusal.message += "; it is part of data stream " + stream;
  // A collection is the whole stream.
  const std::string exclude = "--exclude " + index;
  if (refusal.hint.ends_with(exclude)) {
    refusal.hint.replace(refusal.hint.size() - exclude.size(), exclude.size(),
                         "--exclude " + stream);
  }
  return refusal;
}

std::string WhyUnlisted(const std::string& index, const Json& metadata) {
  if (IsOurStore(metadata)) return kLeftOutAsStore;
  // Its stream is listed.
  if (!TextIn(metadata, "data_stream").empty()) {
    return index.starts_with(".fs-")
               ? "of a data stream's failure store: name it at the end of the source's URL"
               : kMayBeNew;
  }
  if (index.starts_with('.')) return kLeftOutForDot;
  const Json& settings = MemberIn(MemberIn(metadata, "settings"), "index");
  return TextIn(settings, "hidden") == "true" ? kLeftOutIfHidden : kMayBeNew;
}

}  // namespace muster::pipeline
