#include "store/opensearch/opensearch_cluster.h"

#include <algorithm>
#include <chrono>
#include <string_view>

namespace muster::store {
namespace {

using std::chrono::milliseconds;

// Less than a third of any sensible lease.
constexpr milliseconds kTimeout{10'000};
constexpr size_t kMaxAnswerBytes = 256 * 1024 * 1024;

constexpr int kMaxTries = 6;
constexpr milliseconds kRetryFor{2'000};
constexpr milliseconds kRetryPause{25};
constexpr milliseconds kMissedForGood{5'000};
// Less than a server's restart: two restarts are separate incidents.
constexpr milliseconds kMissedLongAgo{4'000};

constexpr std::string_view kRoleHint =
    "give it the role that docs/guide/stores.md lists, or name another user in the store's URL";

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

Error BlockedError(int status, const std::string& reason) {
  if (Contains(reason, "flood-stage")) {
    return {Code::kReadOnly, "OpenSearch rejects writes: " + reason,
            "free disk space in the cluster, then try again; Elasticsearch before 7.4 also needs "
            "index.blocks.read_only_allow_delete set to null"};
  }
  if (Contains(reason, "read-only") || status == 403) {
    return {Code::kReadOnly, "OpenSearch rejects writes: " + reason,
            "set the index's index.blocks.* to null, or the cluster's cluster.blocks.read_only"};
  }
  return {Code::kUnavailable, "the cluster is not ready: " + reason,
          "wait until GET _cluster/health shows a cluster manager and no red index"};
}

Error PermissionError(int status, const std::string& reason) {
  if (Contains(reason, "expired")) {
    return {Code::kPermission, "the cluster refuses the credentials: " + reason,
            "get new ones: where they come from has none that are still valid"};
  }
  if (status == 401) {
    return {Code::kPermission,
            "the cluster does not accept the credentials" + (reason.empty() ? "" : ": " + reason),
            "check user and password, API key or AWS credentials of the store's URL"};
  }
  return {Code::kPermission, "the cluster denies access" + (reason.empty() ? "" : ": " + reason),
          std::string(kRoleHint)};
}

// Whether the request was certainly not applied, and retrying may help.
bool MayTryAgain(const net::OpenSearchAnswer& response, const Json& error, bool writes) {
  if (response.status == 429) return !Contains(TextOf(error, "reason"), "flood-stage");
  // A 503 from an intermediary may come after it forwarded the request.
  if (response.status == 503) return !writes || error.is_object();
  return !writes && (response.status == 502 || response.status == 504);
}

// The first path segment: the alias in "/alias/_search?size=1".
std::string_view FirstSegment(std::string_view target) {
  target.remove_prefix(target.starts_with('/') ? 1 : 0);
  target = target.substr(0, target.find_first_of("/?"));
  return target.starts_with('_') ? std::string_view() : target;
}

ClusterAnswer AnswerOf(const net::OpenSearchAnswer& response) {
  // Responses are bounded and machine-written: the careful parser for user files would be slower
  // and find nothing more.
  Json body = Json::parse(response.body, nullptr, false);
  return {response.status, body.is_discarded() ? Json() : std::move(body)};
}

// Whatever responded may have forwarded a write.
Error MalformedReply(const std::string& base, bool writes) {
  return {writes ? Code::kUnknownOutcome : Code::kInvalid,
          base + " answers, but not as OpenSearch does",
          "check host, port and path of the store's URL"};
}

}  // namespace

const Json& MemberOf(const Json& object, const char* name) {
  static const Json kNone;
  if (!object.is_object()) return kNone;
  const auto found = object.find(name);
  return found == object.end() ? kNone : *found;
}

std::string TextOf(const Json& object, const char* name) {
  const Json& member = MemberOf(object, name);
  return member.is_string() ? member.get<std::string>() : "";
}

int64_t NumberOf(const Json& object, const char* name) {
  const Json& member = MemberOf(object, name);
  return member.is_number_integer() ? member.get<int64_t>() : 0;
}

std::string ClusterAnswer::ErrorType() const { return TextOf(MemberOf(body, "error"), "type"); }

Error RefusalOf(int status, const Json& error, bool writes, std::string_view alias) {
  const std::string type = TextOf(error, "type");
  const std::string reason = TextOf(error, "reason");
  const std::string said = type.empty() ? "status " + std::to_string(status) : type + ": " + reason;
  if (type == "cluster_block_exception") return BlockedError(status, reason);
  if (type == "index_not_found_exception") {
    // The error names a missing index as requested. Any other name is what the cluster resolved it
    // to, so it knows the index: a node that just started does not have it yet.
    if (!alias.empty() && reason.find("[" + std::string(alias) + "]") == reason.npos) {
      return {Code::kUnavailable, "the store's index is not ready: " + reason, "try again later"};
    }
    return {Code::kNotFound, "the store's index is gone: " + reason,
            "if it was deleted on purpose, start again: a new one is created"};
  }
  if (status == 401 || status == 403) return PermissionError(status, reason);
  if (status == 413) {
    return {Code::kInvalid, "a request is larger than the cluster takes",
            "raise http.max_content_length, or the limit of the proxy before it"};
  }
  if (status == 429) {
    return {Code::kUnavailable, "the cluster is overloaded: " + said,
            "try again later, or with fewer workers"};
  }
  if (status == 503 && (!writes || !type.empty())) {
    return {Code::kUnavailable, "the cluster is not ready: " + said, "try again later"};
  }
  if (status >= 300 && status < 400) {
    return {Code::kInvalid, "the cluster's address answers with a redirect",
            "name the address that it redirects to in the store's URL"};
  }
  if (status >= 500 || status == 408) {
    if (!writes) return {Code::kUnavailable, "the cluster failed: " + said, "try again later"};
    return {Code::kUnknownOutcome, "the cluster failed and may have applied the write: " + said};
  }
  if (Contains(reason, "maximum") && Contains(reason, "shards open")) {
    return {Code::kFull, "the cluster takes no more indices: " + reason,
            "delete indices that are no longer needed, or raise cluster.max_shards_per_node"};
  }
  return {Code::kInternal, "the cluster refuses a request: " + said};
}

Error OpenSearchCluster::Refusal(int status, const Json& error, bool writes,
                                 std::string_view alias) {
  Error refusal = RefusalOf(status, error, writes, alias);
  if (refusal.code != Code::kNotFound || alias.empty()) return refusal;
  std::lock_guard lock(mutex_);
  const MonoTime now = env_.MonoNow();
  // After a gap it is a new incident: it may have existed in between.
  if (missed_last_ == MonoTime::min() || now - missed_last_ > kMissedLongAgo) missed_first_ = now;
  missed_last_ = now;
  if (now - missed_first_ < kMissedForGood) refusal.code = Code::kUnavailable;
  return refusal;
}

OpenSearchCluster::OpenSearchCluster(net::OpenSearchEndpoint endpoint, Env& env)
    : endpoint_(std::move(endpoint)), env_(env), client_(endpoint_, env) {}

Result<net::OpenSearchAnswer> OpenSearchCluster::SendOnce(const ClusterRequest& request) {
  const bool lines = request.body.ends_with('\n');
  const MonoTime asked = env_.MonoNow();
  auto answer = client_.Send({.method = request.method,
                              .path = request.target,
                              .body = request.body,
                              .content_type = lines ? "application/x-ndjson" : "application/json",
                              .writes = request.writes,
                              .timeout = kTimeout,
                              .max_response_bytes = kMaxAnswerBytes});
  if (!answer && answer.error().code != Code::kCancelled && env_.MonoNow() - asked >= kTimeout) {
    Error slow = answer.error();
    slow.hint = "the store must answer within " + std::to_string(kTimeout.count() / 1000) +
                " s: check the cluster's load and the network, or use a store that is closer";
    return slow;
  }
  return answer;
}

Result<ClusterAnswer> OpenSearchCluster::Send(const ClusterRequest& request) {
  const MonoTime give_up = env_.MonoNow() + kRetryFor;
  milliseconds pause = kRetryPause;
  for (int tries = 1;; ++tries, pause *= 2) {
    const bool last = tries == kMaxTries || env_.MonoNow() + pause > give_up;
    auto response = SendOnce(request);
    if (!response) {
      if (last || response.error().code != Code::kUnavailable) return response.error();
    } else {
      ClusterAnswer answer = AnswerOf(*response);
      // Signed with expired credentials, or with a wrong clock: both are known now.
      const bool refused = !endpoint_.aws_region.empty() && response->status == 403 && tries == 1;
      if (!refused &&
          (last || !MayTryAgain(*response, MemberOf(answer.body, "error"), request.writes))) {
        return answer;
      }
    }
    env_.Sleep(pause + env_.Jitter(pause), {});
  }
}

Result<Json> OpenSearchCluster::Call(const ClusterRequest& request) {
  MUSTER_ASSIGN(ClusterAnswer answer, Send(request));
  if (answer.status >= 300) {
    const Json& error = MemberOf(answer.body, "error");
    // AWS and proxies have their own error formats.
    Json said = error.is_object() ? error : Json();
    if (said.is_null() && !TextOf(answer.body, "message").empty()) {
      said = Json{{"reason", TextOf(answer.body, "message")}};
    } else if (said.is_null() && !TextOf(answer.body, "Message").empty()) {
      said = Json{{"reason", TextOf(answer.body, "Message")}};
    }
    return Refusal(answer.status, said, request.writes, FirstSegment(request.target));
  }
  if (!answer.body.is_object()) return MalformedReply(endpoint_.base_url, request.writes);
  return std::move(answer.body);
}

}  // namespace muster::store
