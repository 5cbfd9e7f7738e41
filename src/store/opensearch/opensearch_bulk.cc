#include "store/opensearch/opensearch_bulk.h"

#include <algorithm>
#include <chrono>
#include <span>

#include "core/backoff.h"

namespace muster::store {
namespace {

using std::chrono::milliseconds;

// Amazon's small clusters accept 10 MiB per request, and responses may contain whole documents.
constexpr size_t kMaxRequestBytes = 4 * 1024 * 1024;
constexpr size_t kMaxSources = 100;

constexpr int kMaxTries = 6;
constexpr milliseconds kRetryPause{25};

const char* NameOf(BulkAction::Op op) {
  switch (op) {
    case BulkAction::Op::kCreate:
      return "create";
    case BulkAction::Op::kUpdate:
      return "update";
    case BulkAction::Op::kDelete:
      return "delete";
  }
  return "";
}

std::string LinesOf(const BulkAction& action) {
  Json header{{"_id", action.id}};
  if (action.op != BulkAction::Op::kCreate) {
    header["if_seq_no"] = action.version.seq_no;
    header["if_primary_term"] = action.version.primary_term;
  }
  std::string lines = ToJsonText(Json{{NameOf(action.op), std::move(header)}}) + "\n";
  switch (action.op) {
    case BulkAction::Op::kCreate:
      lines += ToJsonText(action.fields) + "\n";
      break;
    case BulkAction::Op::kUpdate:
      lines += "{\"doc\":" + ToJsonText(action.fields) +
               (action.answer_source ? ",\"_source\":true}\n" : "}\n");
      break;
    case BulkAction::Op::kDelete:
      break;
  }
  return lines;
}

BulkResult Failed(Error error) {
  return {.kind = BulkResult::Kind::kFailed, .error = std::move(error)};
}

BulkResult ResultOf(OpenSearchCluster& client, const Json& item, const std::string& alias) {
  const int status = static_cast<int>(NumberIn(item, "status"));
  const Json& error = MemberIn(item, "error");
  if (error.is_null() && status >= 200 && status < 300) {
    return {.kind = BulkResult::Kind::kApplied,
            .version = VersionOf(item),
            .source = MemberIn(MemberIn(item, "get"), "_source")};
  }
  const std::string type = TextIn(error, "type");
  if (status == 409 || type == "document_missing_exception") {
    return {.kind = BulkResult::Kind::kConflict};
  }
  return Failed(client.Refusal(status, error, true, alias));
}

// One request. The results of `which` actions are stored in `results`.
void SendSome(OpenSearchCluster& client, const std::string& alias, std::string body,
              std::span<const size_t> which, std::vector<BulkResult>& results) {
  // Waits for a relocating primary shard, but less than the request timeout.
  auto answer = client.Call({.method = "POST",
                             .target = "/" + alias + "/_bulk?require_alias=true&timeout=5s",
                             .body = std::move(body),
                             .writes = true});
  if (!answer) {
    for (const size_t i : which) results[i] = Failed(answer.error());
    return;
  }
  const Json& items = MemberIn(*answer, "items");
  for (size_t i = 0; i < which.size(); ++i) {
    const bool answered =
        items.is_array() && i < items.size() && items[i].is_object() && !items[i].empty();
    results[which[i]] =
        answered ? ResultOf(client, items[i].front(), alias)
                 : Failed({Code::kUnknownOutcome, "the cluster's answer to a _bulk is incomplete"});
  }
}

void SendThese(OpenSearchCluster& client, const std::string& alias,
               const std::vector<BulkAction>& actions, std::span<const size_t> which,
               std::vector<BulkResult>& results) {
  std::string body;
  size_t first = 0;
  size_t sources = 0;
  for (size_t i = 0; i < which.size(); ++i) {
    const BulkAction& action = actions[which[i]];
    std::string lines = LinesOf(action);
    if (action.answer_source) ++sources;
    if (!body.empty() && (body.size() + lines.size() > kMaxRequestBytes || sources > kMaxSources)) {
      SendSome(client, alias, std::move(body), which.subspan(first, i - first), results);
      body.clear();
      first = i;
      sources = action.answer_source ? 1 : 0;
    }
    body += lines;
  }
  if (!body.empty()) SendSome(client, alias, std::move(body), which.subspan(first), results);
}

}  // namespace

std::vector<BulkResult> SendBulk(OpenSearchCluster& client, Env& env, const std::string& alias,
                                 const std::vector<BulkAction>& actions) {
  std::vector<BulkResult> results(actions.size());
  std::vector<size_t> which(actions.size());
  for (size_t i = 0; i < which.size(); ++i) which[i] = i;
  Backoff backoff(env, {}, {.first = kRetryPause});
  for (int tries = 1; !which.empty(); ++tries) {
    SendThese(client, alias, actions, which, results);
    // A node that rejects one of several items may accept it a moment later.
    std::erase_if(which, [&](size_t i) {
      return results[i].kind != BulkResult::Kind::kFailed ||
             results[i].error.code != Code::kUnavailable;
    });
    if (tries == kMaxTries || which.size() == actions.size()) break;
    if (!which.empty()) backoff.Pause();
  }
  return results;
}

Status FailureOf(const std::vector<BulkResult>& results) {
  const Error* failure = nullptr;
  bool applied = false;
  for (const BulkResult& result : results) {
    applied = applied || result.kind == BulkResult::Kind::kApplied;
    if (result.kind != BulkResult::Kind::kFailed) continue;
    if (failure == nullptr || result.error.code == Code::kUnknownOutcome) failure = &result.error;
  }
  if (failure == nullptr) return {};
  if (!applied || failure->code == Code::kUnknownOutcome) return *failure;
  return Error{Code::kUnknownOutcome, "only some of the changes were applied: " + failure->message,
               failure->hint};
}

}  // namespace muster::store
