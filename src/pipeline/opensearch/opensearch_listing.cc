#include "pipeline/opensearch/opensearch_listing.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "core/json_fields.h"
#include "pipeline/opensearch/opensearch_refusals.h"
#include "pipeline/opensearch/opensearch_requests.h"
#include "pipeline/opensearch/opensearch_target.h"

namespace muster::pipeline {

Result<std::vector<OpenSearchListing::Listed>> OpenSearchListing::List() {
  MUSTER_ASSIGN(const Json indices,
                AskForJson(client_, env_,
                           {.path = "/" + pattern_.Path() + "?expand_wildcards=open",
                            .max_response_bytes = 512 * 1024 * 1024}));
  MUSTER_ASSIGN(std::vector<Listed> all, ListIndices(indices));
  MUSTER_ASSIGN(std::vector<Listed> streams, ListStreams(indices));
  std::move(streams.begin(), streams.end(), std::back_inserter(all));
  if (indices.empty() && all.empty() && !pattern_.IsAll()) {
    return Error{Code::kNotFound, client_.Place() + " has no index '" + pattern_.text() + "'",
                 "list the indices with GET /_cat/indices"};
  }
  return all;
}

Result<std::vector<OpenSearchListing::Listed>> OpenSearchListing::ListIndices(const Json& indices) {
  std::map<std::string, Listed> listed;
  for (const auto& [name, metadata] : indices.items()) {
    const std::string stream = TextIn(metadata, "data_stream");
    // A backing index is part of its stream, unless it is asked for itself.
    if (!stream.empty() && pattern_.SelectsDataStream(stream)) continue;
    if (!pattern_.Selects(name, MemberIn(metadata, "aliases")) || IsOurStore(metadata)) continue;
    listed.emplace(name, Listed{name, metadata, RefusalOf(client_.Place(), name, metadata)});
  }
  // Names are returned here too, open or not.
  const auto closed =
      AskForJson(client_, env_,
                 {.path = "/" + pattern_.Path() + "/_settings/index.uuid?expand_wildcards=closed"});
  if (!closed && IsTransient(closed.error().code)) return closed.error();
  if (closed) {
    for (const auto& [name, settings] : closed->items()) {
      if (indices.contains(name) || !pattern_.Selects(name, Json())) continue;
      listed.emplace(name, Listed{name, Json::object(), IsClosed(client_.Place(), name)});
    }
  }
  std::vector<Listed> all;
  for (auto& [name, one] : listed) all.push_back(std::move(one));
  return all;
}

Result<std::vector<OpenSearchListing::Listed>> OpenSearchListing::ListStreams(const Json& indices) {
  std::map<std::string, std::vector<std::string>> selected;
  for (const auto& [index, metadata] : indices.items()) {
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
                                                          const Json& indices) const {
  Listed listed{.name = name, .is_stream = true};
  for (const std::string& index : backing) {
    const Json& metadata = MemberIn(indices, index);
    auto refusal = metadata.is_object() ? RefusalOf(client_.Place(), index, metadata)
                                        : std::optional(IsClosed(client_.Place(), index));
    if (refusal) {
      refusal->message += "; it is part of data stream " + name;
      listed.refusal = std::move(refusal);
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
  for (const Listed& one : there) listed.insert(one.name);
  std::vector<LeftOut> left_out;
  const auto all = AskForJson(
      client_, env_,
      {.path = "/" + pattern_.Path() + "?expand_wildcards=all&filter_path=*.data_stream," +
               "*.settings.index.uuid,*.settings.index.hidden,*.mappings._meta"});
  if (!all && IsTransient(all.error().code)) return all.error();
  if (!all || !all->is_object()) return left_out;
  for (const auto& [name, about] : all->items()) {
    if (listed.contains(name) || listed.contains(TextIn(about, "data_stream"))) continue;
    left_out.push_back({name, WhyUnlisted(name, about)});
  }
  std::sort(left_out.begin(), left_out.end(),
            [](const LeftOut& a, const LeftOut& b) { return a.name < b.name; });
  return left_out;
}

}  // namespace muster::pipeline
