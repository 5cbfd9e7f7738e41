#include "pipeline/opensearch/opensearch_listing.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "core/json_fields.h"
#include "pipeline/flow/left_out.h"
#include "pipeline/opensearch/opensearch_refusals.h"
#include "pipeline/opensearch/opensearch_requests.h"
#include "pipeline/opensearch/opensearch_target.h"

namespace muster::pipeline {
namespace {

constexpr char kHiddenStream[] =
    "a data stream that is hidden, or behind an alias: name it at the end of the source's URL";

}  // namespace

Result<std::vector<OpenSearchListing::Listed>> OpenSearchListing::List() {
  MUSTER_ASSIGN(const Indices indices, AskForIndices());
  std::vector<Listed> all = ListIndices(indices);
  MUSTER_ASSIGN(std::vector<Listed> streams, ListStreams(indices));
  std::move(streams.begin(), streams.end(), std::back_inserter(all));
  if (indices.open.empty() && all.empty() && !pattern_.IsAll()) {
    return Error{Code::kNotFound, client_.Place() + " has no index '" + pattern_.text() + "'",
                 "list the indices with GET /_cat/indices"};
  }
  return all;
}

Result<OpenSearchListing::Indices> OpenSearchListing::AskForIndices() {
  Indices indices;
  MUSTER_ASSIGN(indices.open, AskForJson(client_, env_,
                                         {.path = "/" + pattern_.Path() + "?expand_wildcards=open",
                                          .max_response_bytes = 512 * 1024 * 1024}));
  // Names are returned here too, open or not.
  auto closed =
      AskForJson(client_, env_,
                 {.path = "/" + pattern_.Path() + "/_settings/index.uuid?expand_wildcards=closed"});
  if (!closed && IsTransient(closed.error().code)) return closed.error();
  if (closed) indices.closed = *std::move(closed);
  return indices;
}

std::vector<OpenSearchListing::Listed> OpenSearchListing::ListIndices(
    const Indices& indices) const {
  std::map<std::string, Listed> listed;
  for (const auto& [name, metadata] : indices.open.items()) {
    const std::string stream = TextIn(metadata, "data_stream");
    // A backing index is part of its stream, unless it is asked for itself.
    if (!stream.empty() && pattern_.SelectsDataStream(stream)) continue;
    if (!pattern_.Selects(name, MemberIn(metadata, "aliases")) || IsOurStore(metadata)) continue;
    listed.emplace(name,
                   Listed{name, metadata, RefusalOf(client_.Place(), name, metadata, pruned_)});
  }
  for (const auto& [name, settings] : indices.closed.items()) {
    if (indices.open.contains(name) || !pattern_.Selects(name, Json())) continue;
    listed.emplace(name, Listed{name, Json::object(), IsClosed(client_.Place(), name)});
  }
  std::vector<Listed> all;
  for (auto& [name, one] : listed) all.push_back(std::move(one));
  return all;
}

Result<std::vector<OpenSearchListing::Listed>> OpenSearchListing::ListStreams(
    const Indices& indices) {
  std::map<std::string, std::vector<std::string>> selected;
  for (const auto& [index, metadata] : indices.open.items()) {
    const std::string stream = TextIn(metadata, "data_stream");
    if (!stream.empty() && pattern_.SelectsDataStream(stream)) selected[stream].push_back(index);
  }
  std::vector<Listed> all;
  if (!selected.empty() || pattern_.IsAll()) {
    MUSTER_ASSIGN(const DataStreams known, AskForDataStreams(client_, env_));
    for (const auto& [name, stream] : known) {
      // Also those whose indices are all closed.
      const bool is_all = pattern_.IsAll() && !stream.is_hidden && !name.starts_with('.');
      if (selected.contains(name) || is_all) selected[name] = stream.indices;
    }
  }
  for (const auto& [name, backing] : selected) all.push_back(ListedStream(name, backing, indices));
  return all;
}

OpenSearchListing::Listed OpenSearchListing::ListedStream(const std::string& name,
                                                          const std::vector<std::string>& backing,
                                                          const Indices& indices) const {
  Listed listed{.name = name, .is_stream = true, .backing = backing};
  const std::string& place = client_.Place();
  for (const std::string& index : backing) {
    const Json& metadata = MemberIn(indices.open, index);
    const bool is_shown =
        metadata.is_object() || !indices.closed.is_object() || indices.closed.contains(index);
    auto refusal = !is_shown              ? std::optional(IsNotShown(place, index))
                   : metadata.is_object() ? RefusalOf(place, index, metadata, pruned_)
                                          : std::optional(IsClosed(place, index));
    if (refusal) {
      listed.refusal = OfStream(*std::move(refusal), index, name);
      return listed;
    }
    listed.metadata = metadata;
  }
  return listed;
}

// Names that are not listed are asked for once more, with all that wildcards can stand for.
Result<std::vector<LeftOut>> OpenSearchListing::Unlisted() {
  MUSTER_ASSIGN(const std::vector<Listed> there, List());
  std::set<std::string> listed;
  std::set<std::string> streams;
  for (const Listed& one : there) {
    listed.insert(one.name);
    listed.insert(one.backing.begin(), one.backing.end());
    if (one.is_stream) streams.insert(one.name);
  }
  std::vector<LeftOut> left_out;
  const auto all = AskForJson(
      client_, env_,
      {.path = "/" + pattern_.Path() + "?expand_wildcards=all&filter_path=*.data_stream," +
               "*.settings.index.uuid,*.settings.index.hidden,*.mappings._meta"});
  if (!all && IsTransient(all.error().code)) return all.error();
  if (!all || !all->is_object()) return left_out;
  for (const auto& [name, about] : all->items()) {
    if (listed.contains(name)) continue;
    const std::string stream = TextIn(about, "data_stream");
    if (stream.empty() || streams.contains(stream)) {
      left_out.push_back({name, WhyUnlisted(name, about)});
    } else if (listed.insert(stream).second) {
      // As a whole, by the name that it is asked for by.
      left_out.push_back({stream, stream.starts_with('.') ? kLeftOutForDot : kHiddenStream});
    }
  }
  std::sort(left_out.begin(), left_out.end(),
            [](const LeftOut& a, const LeftOut& b) { return a.name < b.name; });
  return left_out;
}

}  // namespace muster::pipeline
