#include "net/opensearch_errors.h"

#include <string_view>

namespace muster::net {
namespace {

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

Error BlockError(const OpenSearchRefusal& refusal) {
  // A disk past its flood stage is reported with the status of a full queue.
  if (refusal.status == 429 || Contains(refusal.reason, "flood-stage")) {
    return {Code::kReadOnly, "OpenSearch rejects writes: " + refusal.reason,
            "free disk space in the cluster, then try again; Elasticsearch before 7.4 also needs "
            "index.blocks.read_only_allow_delete set to null"};
  }
  if (refusal.status == 403 || Contains(refusal.reason, "read-only")) {
    return {Code::kReadOnly, "OpenSearch rejects writes: " + refusal.reason,
            "set the index's index.blocks.* to null, or the cluster's cluster.blocks.read_only"};
  }
  return {Code::kUnavailable, "the cluster is not ready: " + refusal.reason,
          "wait until GET _cluster/health shows a cluster manager and no red index"};
}

Error PermissionError(const OpenSearchRefusal& refusal) {
  const std::string reason = refusal.reason.empty() ? "" : ": " + refusal.reason;
  if (Contains(refusal.reason, "expired")) {
    return {Code::kPermission, "the cluster rejects the credentials" + reason,
            "renew the credentials: those found have expired"};
  }
  if (refusal.status == 401) {
    return {Code::kPermission, "the cluster rejects the credentials" + reason,
            "check the user and password, API key or AWS credentials of the URL"};
  }
  return {Code::kPermission, "the cluster denies access" + reason,
          "grant the user or role the permission that the reason names"};
}

}  // namespace

Error OpenSearchError(const OpenSearchRefusal& refusal, bool writes) {
  const int status = refusal.status;
  const std::string& type = refusal.type;
  const std::string said =
      type.empty() ? "status " + std::to_string(status) : type + ": " + refusal.reason;
  if (type == "cluster_block_exception" || type == "index_create_block_exception") {
    return BlockError(refusal);
  }
  if (type == "index_closed_exception") {
    return {writes ? Code::kReadOnly : Code::kUnavailable, "the index is closed: " + said,
            "open it (POST /INDEX/_open)"};
  }
  if (Contains(refusal.reason, "no write index is defined for alias")) {
    return {Code::kReadOnly, "the alias has no write index: " + said,
            "set is_write_index for one of its indices (POST /_aliases)"};
  }
  if (status == 401 || status == 403) return PermissionError(refusal);
  if (status < 400) {
    return {Code::kPermission, "the server answers with a redirect",
            "use the address of the cluster itself"};
  }
  if (status == 405 || status == 407) {
    return {Code::kPermission, "something other than the cluster answers: " + said,
            "check the URL and any proxies"};
  }
  if (status == 404) return {Code::kNotFound, "not found: " + said};
  if (status == 409) return {Code::kConflict, "conflict: " + said};
  if (status == 413) {
    return {Code::kInvalid, "a request is larger than the cluster accepts",
            "raise http.max_content_length, or the limit of the proxy in front of the cluster"};
  }
  if (status == 429) {
    return {Code::kUnavailable, "the cluster is overloaded: " + said,
            "try again later, or with fewer workers"};
  }
  // A 503 without a type is from an intermediary, which may have forwarded the request.
  if (status == 503 && (!writes || !type.empty())) {
    return {Code::kUnavailable, "the cluster is not ready: " + said, "try again later"};
  }
  if (status >= 500 || status == 408) {
    if (!writes) return {Code::kUnavailable, "the cluster failed: " + said, "try again later"};
    return {Code::kUnknownOutcome, "the cluster failed and may have applied the write: " + said};
  }
  if (Contains(refusal.reason, "maximum") && Contains(refusal.reason, "shards open")) {
    return {Code::kFull, "the cluster accepts no more indices: " + refusal.reason,
            "delete indices that are no longer needed, or raise cluster.max_shards_per_node"};
  }
  return {Code::kInvalid, "the cluster rejects the request: " + said};
}

}  // namespace muster::net
