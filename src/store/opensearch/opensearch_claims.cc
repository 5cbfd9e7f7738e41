#include "store/opensearch/opensearch_claims.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "store/record_rules.h"

namespace muster::store {
namespace {

constexpr size_t kMaxQueues = 64;
constexpr milliseconds kClaimFor{8'000};

// A field's only value.
const Json& OnlyValue(const Json& fields, const char* name) {
  const Json& values = MemberIn(fields, name);
  return values.is_array() && !values.empty() ? values[0] : values;
}

int64_t IntegerOf(const Json& value) {
  return value.is_number_integer() ? value.get<int64_t>() : 0;
}

bool IsUnknown(const std::vector<BulkResult>& results) {
  return std::any_of(results.begin(), results.end(), [](const BulkResult& result) {
    return result.kind == BulkResult::Kind::kFailed && result.error.code == Code::kUnknownOutcome;
  });
}

}  // namespace

Result<std::vector<Record>> OpenSearchClaims::Claim(const ClaimRequest& request) {
  if (request.repeat) {
    MUSTER_ASSIGN(std::vector<Record> taken, TakenBy(request));
    if (!taken.empty()) return taken;
  }
  if (!request.key.empty()) return ClaimKey(request);
  const std::shared_ptr<Candidates> candidates = CandidatesOf(request);
  const MonoTime give_up = env_.MonoNow() + kClaimFor;
  while (env_.MonoNow() < give_up) {
    MUSTER_ASSIGN(const std::vector<Candidate> chosen,
                  candidates->Take(static_cast<size_t>(request.limit), env_.MonoNow(),
                                   [&](size_t size) { return FindDue(request, size); }));
    if (chosen.empty()) return std::vector<Record>{};
    const std::vector<BulkResult> results = TryClaim(request, chosen);
    std::vector<Record> claimed;
    bool collided = false;
    for (size_t i = 0; i < chosen.size(); ++i) {
      const BulkResult& result = results[i];
      if (result.kind == BulkResult::Kind::kApplied) {
        claimed.push_back(RecordOf(result.source, result.version));
      }
      if (result.kind == BulkResult::Kind::kFailed) candidates->GiveBack(chosen[i]);
      collided = collided || result.kind == BulkResult::Kind::kConflict;
    }
    if (collided) candidates->Collided();
    auto failure = FailureOf(results);
    // What was claimed before a node rejected the rest is a valid result.
    if (!failure && (claimed.empty() || IsUnknown(results))) return failure.error();
    if (!claimed.empty()) return claimed;
  }
  return Error{Code::kUnavailable, "too many workers compete for queue '" + request.queue + "'",
               "try again, or with fewer workers"};
}

// The due records. A search only proposes: they may have been taken since. It reads only columns,
// no documents.
Result<std::vector<Candidate>> OpenSearchClaims::FindDue(const ClaimRequest& request, size_t size) {
  MUSTER_ASSIGN(const ServerClock::Reading time, clock_.Read());
  MUSTER_TRY(reader_.Refresh());
  const int64_t horizon = time.Horizon().time_since_epoch().count();
  MUSTER_ASSIGN(
      const Json hits,
      reader_.Search(Json{
          {"size", size},
          {"query", Where(Json::array({Term("kind", request.kind), Term("queue", request.queue),
                                       Json{{"range", {{"ready", {{"lte", horizon}}}}}}}))},
          {"sort", Json::array({Json{{"ready", "asc"}}})},
          {"stored_fields", "_none_"},
          {"docvalue_fields", Json::array({"key", "epoch", "attempt"})}}));
  std::vector<Candidate> found;
  found.reserve(hits.size());
  for (const Json& hit : hits) {
    const Json& fields = MemberIn(hit, "fields");
    const Json& key = OnlyValue(fields, "key");
    if (!key.is_string()) continue;
    found.push_back({.id = DocumentId(request.kind, key.get_ref<const std::string&>()),
                     .version = VersionOf(hit),
                     .epoch = IntegerOf(OnlyValue(fields, "epoch")),
                     .attempt = static_cast<int>(IntegerOf(OnlyValue(fields, "attempt")))});
  }
  return found;
}

std::vector<BulkResult> OpenSearchClaims::TryClaim(const ClaimRequest& request,
                                                   const std::vector<Candidate>& candidates) {
  auto time = clock_.Read();
  if (!time) {
    return std::vector<BulkResult>(candidates.size(), BulkResult{.error = time.error()});
  }
  std::vector<BulkAction> actions;
  actions.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    const int attempt = candidate.attempt + 1;
    const auto times = time->After(LeaseFor(attempt, request.lease, request.max_lease));
    actions.push_back({.op = BulkAction::Op::kUpdate,
                       .id = candidate.id,
                       .version = candidate.version,
                       .fields = {{"owner", request.owner},
                                  {"epoch", candidate.epoch + 1},
                                  {"attempt", attempt},
                                  {"due", times.due.time_since_epoch().count()},
                                  {"ready", times.ready.time_since_epoch().count()},
                                  {"claim_id", request.claim_id},
                                  {"write_id", request.claim_id}},
                       .answer_source = true});
  }
  return SendBulk(client_, env_, alias_, actions);
}

Result<std::vector<Record>> OpenSearchClaims::ClaimKey(const ClaimRequest& request) {
  const MonoTime give_up = env_.MonoNow() + kClaimFor;
  while (env_.MonoNow() < give_up) {
    MUSTER_ASSIGN(const Json found, reader_.Read({DocumentId(request.kind, request.key)}));
    const Json& source = MemberIn(found.front(), "_source");
    const Json& ready = MemberIn(source, "ready");
    MUSTER_ASSIGN(const ServerClock::Reading time, clock_.Read());
    const int64_t horizon = time.Horizon().time_since_epoch().count();
    if (!IsFound(found.front()) || TextIn(source, "queue") != request.queue ||
        !ready.is_number_integer() || ready.get<int64_t>() > horizon) {
      return std::vector<Record>{};
    }
    const std::vector<BulkResult> results =
        TryClaim(request, {{.id = TextIn(found.front(), "_id"),
                            .version = VersionOf(found.front()),
                            .epoch = NumberIn(source, "epoch"),
                            .attempt = static_cast<int>(NumberIn(source, "attempt"))}});
    MUSTER_TRY(FailureOf(results));
    const BulkResult& result = results.front();
    if (result.kind == BulkResult::Kind::kApplied) {
      return std::vector<Record>{RecordOf(result.source, result.version)};
    }
  }
  return Error{Code::kUnavailable,
               "concurrent updates to record '" + request.key + "'; gave up after " +
                   std::to_string(kClaimFor.count() / 1000) + " s",
               "try again"};
}

// What this claim took before, unless others have claimed it since. Found by a search, decided by
// reading.
Result<std::vector<Record>> OpenSearchClaims::TakenBy(const ClaimRequest& request) {
  MUSTER_TRY(reader_.Refresh());
  MUSTER_ASSIGN(
      const Json hits,
      reader_.Search(Json{
          {"size", kMaxBatch},
          {"query", Where(Json::array({Term("claim_id", request.claim_id),
                                       Term("kind", request.kind), Term("queue", request.queue)}))},
          {"_source", false}}));
  std::vector<Record> taken;
  std::vector<std::string> ids;
  for (const Json& hit : hits) {
    ids.push_back(TextIn(hit, "_id"));
    if (ids.size() < kOpenSearchPage && &hit != &hits.back()) continue;
    MUSTER_ASSIGN(const Json found, reader_.Read(ids));
    for (const Json& document : found) {
      Record record = RecordOf(document);
      const std::string claim_id = TextIn(MemberIn(document, "_source"), "claim_id");
      if (record.due && claim_id == request.claim_id) taken.push_back(std::move(record));
    }
    ids.clear();
  }
  return taken;
}

std::shared_ptr<Candidates> OpenSearchClaims::CandidatesOf(const ClaimRequest& request) {
  const MutexLock lock(mutex_);
  // Claims in progress keep theirs alive. A dropped one costs one search.
  if (queues_.size() >= kMaxQueues) queues_.clear();
  auto& candidates = queues_[{request.kind, request.queue}];
  if (candidates == nullptr) candidates = std::make_shared<Candidates>(env_);
  return candidates;
}

}  // namespace muster::store
