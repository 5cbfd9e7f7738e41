#include "store/opensearch/opensearch_reader.h"

#include <algorithm>
#include <utility>

#include "store/opensearch/opensearch_records.h"

namespace muster::store {
namespace {

// The prefix query is used only if `after` lies before it: beyond, key order leads through it,
// and only as many documents are visited as requested.
Json ScanQuery(std::string_view kind, std::string_view prefix, const std::string& after, int size) {
  Json conditions = Json::array({Term("kind", kind)});
  Json query{{"size", size}, {"sort", Json::array({Json{{"key", "asc"}}})}};
  if (after >= prefix && !after.empty()) {
    query["search_after"] = Json::array({after});
  } else if (!prefix.empty()) {
    conditions.push_back(Json{{"prefix", {{"key", std::string(prefix)}}}});
  }
  query["query"] = Where(std::move(conditions));
  return query;
}

}  // namespace

bool IsFound(const Json& document) {
  const Json& found = MemberIn(document, "found");
  return found.is_boolean() && found.get<bool>();
}

Json Term(const char* field, std::string_view value) {
  return Json{{"term", {{field, std::string(value)}}}};
}

Json Where(Json conditions) { return Json{{"bool", {{"filter", std::move(conditions)}}}}; }

OpenSearchReader::OpenSearchReader(OpenSearchCluster& client, const OpenSearchIndex& index)
    : client_(client),
      alias_(index.alias),
      // Replicas may lag, the primary does not.
      search_("/" + alias_ + "/_search?allow_partial_search_results=false" +
              (index.reads_primaries ? "&preference=_primary" : "")) {}

Result<Json> OpenSearchReader::Read(const std::vector<std::string>& ids) {
  MUSTER_ASSIGN(Json answer, client_.Call({.method = "POST",
                                           .target = "/" + alias_ + "/_mget",
                                           .body = ToJsonText(Json{{"ids", ids}})}));
  const Json& documents = MemberIn(answer, "docs");
  if (!documents.is_array() || documents.size() != ids.size()) {
    return Error{Code::kUnavailable, "the cluster's answer to a read is incomplete"};
  }
  for (const Json& document : documents) {
    const Json& error = MemberIn(document, "error");
    if (error.is_null()) continue;
    const bool gone = TextIn(error, "type") == "index_not_found_exception";
    return client_.Refusal(gone ? 404 : 503, error, false, alias_);
  }
  return documents;
}

Status OpenSearchReader::Refresh() {
  MUSTER_ASSIGN(const Json answer,
                client_.Call({.method = "POST", .target = "/" + alias_ + "/_refresh"}));
  if (NumberIn(MemberIn(answer, "_shards"), "failed") == 0) return {};
  return Error{Code::kUnavailable, "a shard of the store's index cannot be refreshed",
               "wait until GET _cluster/health shows the index as green or yellow"};
}

Result<Json> OpenSearchReader::Search(Json query) {
  query["track_total_hits"] = false;
  query["seq_no_primary_term"] = true;
  MUSTER_ASSIGN(Json answer,
                client_.Call({.method = "POST", .target = search_, .body = ToJsonText(query)}));
  const Json& hits = MemberIn(MemberIn(answer, "hits"), "hits");
  if (!hits.is_array() || MemberIn(answer, "timed_out") == true) {
    return Error{Code::kUnavailable, "the cluster's answer to a search is incomplete"};
  }
  return hits;
}

Result<std::vector<Record>> OpenSearchReader::Scan(std::string_view kind, std::string_view prefix,
                                                   std::string_view after, int limit) {
  std::vector<Record> records;
  MUSTER_TRY(Refresh());
  std::string last(after);
  while (records.size() < static_cast<size_t>(limit)) {
    const int size = std::min(limit - static_cast<int>(records.size()), kOpenSearchPage);
    MUSTER_ASSIGN(const Json hits, Search(ScanQuery(kind, prefix, last, size)));
    for (const Json& hit : hits) {
      Record record = RecordOf(hit);
      if (!record.key.starts_with(prefix)) return records;
      records.push_back(std::move(record));
    }
    if (hits.size() < static_cast<size_t>(size)) break;
    last = records.back().key;
  }
  return records;
}

}  // namespace muster::store
