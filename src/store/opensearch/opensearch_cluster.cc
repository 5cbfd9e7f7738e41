#include "store/opensearch/opensearch_cluster.h"

#include <algorithm>
#include <chrono>
#include <string_view>

#include "core/backoff.h"
#include "core/mutex.h"
#include "net/opensearch_errors.h"

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
    "grant it the role in docs/guide/stores.md, or name another user in the store's URL";

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

net::OpenSearchRefusal RefusalIn(int status, const Json& error) {
  return {.status = status, .type = TextIn(error, "type"), .reason = TextIn(error, "reason")};
}

// Whether the request was certainly not applied, and retrying may help.
bool MayTryAgain(int status, const Json& error, bool writes) {
  if (status < 429) return false;
  return net::OpenSearchError(RefusalIn(status, error), writes).code == Code::kUnavailable;
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
          base + " does not respond like OpenSearch",
          "check the host, port and path in the store's URL"};
}

}  // namespace

std::string ClusterAnswer::ErrorType() const { return TextIn(MemberIn(body, "error"), "type"); }

Error RefusalOf(int status, const Json& error, bool writes, std::string_view alias) {
  const net::OpenSearchRefusal refusal = RefusalIn(status, error);
  if (refusal.type == "index_not_found_exception") {
    // The error names a missing index as requested. Any other name is what the cluster resolved it
    // to, so it knows the index: a node that just started does not have it yet.
    if (!alias.empty() && !Contains(refusal.reason, "[" + std::string(alias) + "]")) {
      return {Code::kUnavailable, "the store's index is not ready: " + refusal.reason,
              "try again later"};
    }
    return {Code::kNotFound, "the store's index is gone: " + refusal.reason,
            "if it was deleted on purpose, start again: a new one is created"};
  }
  Error meaning = net::OpenSearchError(refusal, writes);
  // A store sends only requests that any cluster understands.
  const bool is_bug = meaning.code == Code::kInvalid && status != 413;
  if (is_bug || meaning.code == Code::kNotFound || meaning.code == Code::kConflict) {
    meaning.code = Code::kInternal;
  }
  if (refusal.status == 403 && meaning.code == Code::kPermission &&
      !Contains(refusal.reason, "expired")) {
    meaning.hint = kRoleHint;
  }
  return meaning;
}

Error OpenSearchCluster::Refusal(int status, const Json& error, bool writes,
                                 std::string_view alias) {
  Error refusal = RefusalOf(status, error, writes, alias);
  if (refusal.code != Code::kNotFound || alias.empty()) return refusal;
  const MutexLock lock(mutex_);
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
  Backoff backoff(env_, {}, {.first = kRetryPause, .longest = kRetryFor});
  for (int tries = 1;; ++tries) {
    const auto response = SendOnce(request);
    if (!response) {
      const bool again = response.error().code == Code::kUnavailable && tries < kMaxTries;
      if (!again || !backoff.PauseBefore(give_up)) return response.error();
      continue;
    }
    ClusterAnswer answer = AnswerOf(*response);
    // Signed with expired credentials, or with a wrong clock: both are known now.
    const bool refused = !endpoint_.aws_region.empty() && response->status == 403 && tries == 1;
    const bool again =
        refused || (tries < kMaxTries &&
                    MayTryAgain(response->status, MemberIn(answer.body, "error"), request.writes));
    if (!again || !backoff.PauseBefore(give_up)) return answer;
  }
}

Result<Json> OpenSearchCluster::Call(const ClusterRequest& request) {
  MUSTER_ASSIGN(ClusterAnswer answer, Send(request));
  if (answer.status >= 300) {
    const Json& error = MemberIn(answer.body, "error");
    // AWS and proxies have their own error formats.
    Json said = error.is_object() ? error : Json();
    if (said.is_null() && !TextIn(answer.body, "message").empty()) {
      said = Json{{"reason", TextIn(answer.body, "message")}};
    } else if (said.is_null() && !TextIn(answer.body, "Message").empty()) {
      said = Json{{"reason", TextIn(answer.body, "Message")}};
    }
    return Refusal(answer.status, said, request.writes, FirstSegment(request.target));
  }
  if (!answer.body.is_object()) return MalformedReply(endpoint_.base_url, request.writes);
  return std::move(answer.body);
}

}  // namespace muster::store
