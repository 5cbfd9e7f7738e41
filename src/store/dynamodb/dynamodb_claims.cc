#include "store/dynamodb/dynamodb_claims.h"

#include <algorithm>
#include <utility>

#include "store/record_rules.h"

namespace muster::store {
namespace {

// A claim of many is one request each: after this long it returns what it has.
constexpr std::chrono::seconds kClaimFor{4};

bool IsClaimable(const Json& item, const ClaimRequest& request,
                 const ServerClock::Reading& reading) {
  const auto ready = DynamoDbNumberOf(item, "ready");
  return ready && *ready <= DynamoDbMilliseconds(reading.Horizon()) &&
         DynamoDbTextOf(item, "queue") == request.queue;
}

}  // namespace

Result<std::vector<Record>> DynamoDbClaims::Claim(const ClaimRequest& request) {
  if (request.repeat) {
    MUSTER_ASSIGN(std::vector<Record> taken, TakenBefore(request));
    if (!taken.empty()) return taken;
  }
  return request.key.empty() ? ClaimDue(request) : ClaimKey(request);
}

Result<std::vector<Record>> DynamoDbClaims::ClaimDue(const ClaimRequest& request) {
  const MonoTime end = env_.MonoNow() + kClaimFor;
  const auto ask = [&](int limit) { return AskIndex(request, limit); };
  std::vector<Record> claimed;
  std::vector<std::string> tried;
  while (claimed.size() < static_cast<size_t>(request.limit)) {
    if (!claimed.empty() && env_.MonoNow() > end) break;
    auto next = candidates_.Next(request.kind, request.queue, ask);
    if (!next && claimed.empty()) return next.error();
    if (!next || !*next) break;
    const Candidate& candidate = **next;
    tried.push_back(candidate.key);
    auto taken = Take(request, candidate.key, candidate.attempt);
    if (!taken && taken.error().code == Code::kUnknownOutcome) {
      unconfirmed_.Remember(request.claim_id, tried);
      return taken.error();
    }
    if (!taken && claimed.empty()) return taken.error();
    if (!taken) break;
    candidates_.Settled(request.kind, request.queue, candidate, taken->has_value());
    if (*taken) claimed.push_back(**std::move(taken));
  }
  return claimed;
}

Result<std::vector<Record>> DynamoDbClaims::ClaimKey(const ClaimRequest& request) {
  std::vector<Record> claimed;
  MUSTER_ASSIGN(const Json item, client_.GetItem(items_.Request(request.kind, request.key)));
  MUSTER_ASSIGN(const ServerClock::Reading reading, client_.ReadClock());
  if (!IsClaimable(item, request, reading)) return claimed;
  const auto attempt = DynamoDbNumberOf(item, "attempt").value_or(0);
  MUSTER_ASSIGN(auto taken, Take(request, request.key, attempt));
  if (taken) claimed.push_back(*std::move(taken));
  return claimed;
}

Result<std::optional<Record>> DynamoDbClaims::Take(const ClaimRequest& request,
                                                   const std::string& key, int64_t attempt) {
  // The index may have an older attempt; the second try gets it from the item itself.
  constexpr int kTries = 3;
  for (int tries = 0; tries < kTries; ++tries) {
    MUSTER_ASSIGN(const ServerClock::Reading reading, client_.ReadClock());
    const int next = static_cast<int>(attempt) + 1;
    const auto times = reading.After(LeaseFor(next, request.lease, request.max_lease));
    DynamoDbUpdate update(items_.Request(request.kind, key));
    update.Set("owner", request.owner)
        .Set("claim", request.claim_id)
        .Set("due", times.due)
        .Set("ready", times.ready)
        .Add("version", ClaimStep(request))
        .Add("epoch", 1)
        .Add("attempt", 1)
        .If("queue", "=", request.queue)
        .If("attempt", "=", attempt)
        .If("ready", "<=", DynamoDbMilliseconds(reading.Horizon()));
    Json update_item = std::move(update).Take();
    update_item["ReturnValues"] = "ALL_NEW";
    MUSTER_ASSIGN(const DynamoDbAnswer answer, client_.Call("UpdateItem", update_item));
    if (!answer.ok() && !answer.ConditionFailed()) {
      return client_.ErrorOf("UpdateItem", answer);
    }
    const Json item =
        answer.ok() ? answer.body.value("Attributes", Json::object()) : DynamoDbItemIn(answer.body);
    // An earlier try with a lost response is recognised by its claim.
    if (answer.ok() || (answer.in_doubt && DynamoDbTextOf(item, "claim") == request.claim_id)) {
      MUSTER_ASSIGN(Record record, DynamoDbRecordOf(item, request.kind));
      return std::optional<Record>(std::move(record));
    }
    const int64_t actual = DynamoDbNumberOf(item, "attempt").value_or(attempt);
    if (actual == attempt || !IsClaimable(item, request, reading)) break;
    attempt = actual;
  }
  return std::optional<Record>{};
}

Json DynamoDbClaims::IndexQuery(const ClaimRequest& request, int shard) const {
  return Json{{"TableName", client_.place().table},
              {"IndexName", kDynamoDbDueIndex},
              {"KeyConditionExpression", "due_in = :due_in"},
              {"ExpressionAttributeValues",
               {{":due_in", DynamoDbText(items_.DueIn(request.kind, request.queue, shard))}}}};
}

Result<std::vector<DynamoDbClaims::Candidate>> DynamoDbClaims::AskIndex(const ClaimRequest& request,
                                                                        int limit) {
  MUSTER_ASSIGN(const ServerClock::Reading reading, client_.ReadClock());
  std::vector<std::pair<int64_t, Candidate>> found;
  for (int shard = 0; shard < kDynamoDbShards; ++shard) {
    Json query = IndexQuery(request, shard);
    query["KeyConditionExpression"] = "due_in = :due_in AND ready <= :horizon";
    query["ExpressionAttributeValues"][":horizon"] =
        DynamoDbNumber(DynamoDbMilliseconds(reading.Horizon()));
    query["Limit"] = limit;
    MUSTER_ASSIGN(const Json answer, client_.Fetch("Query", query));
    for (const Json& item : answer.value("Items", Json::array())) {
      const auto number = [&](const char* name) {
        return DynamoDbNumberOf(item, name).value_or(0);
      };
      found.emplace_back(number("ready"),
                         Candidate{.key = DynamoDbTextOf(item, "sk").value_or(""),
                                   .version = number("version"),
                                   .attempt = static_cast<int>(number("attempt"))});
    }
  }
  // Records due at once have no order: each caller gets them shuffled.
  for (size_t i = found.size(); i > 1; --i) {
    std::swap(found[i - 1], found[env_.Random() % i]);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Candidate> proposed;
  for (auto& [ready, candidate] : found) proposed.push_back(std::move(candidate));
  return proposed;
}

// What this claim took before and still holds. Where to look is known from memory, if this store
// made it, and from the index, unless that lags; the items themselves decide.
Result<std::vector<Record>> DynamoDbClaims::TakenBefore(const ClaimRequest& request) {
  std::set<std::string> keys{request.key};
  if (request.key.empty()) {
    keys = unconfirmed_.Recall(request.claim_id);
    MUSTER_TRY(FindClaimed(request, keys));
  }
  std::vector<Record> taken;
  for (const std::string& key : keys) {
    MUSTER_ASSIGN(const Json item, client_.GetItem(items_.Request(request.kind, key)));
    if (DynamoDbTextOf(item, "claim") != request.claim_id || !item.contains("due") ||
        DynamoDbTextOf(item, "queue") != request.queue) {
      continue;
    }
    MUSTER_ASSIGN(Record record, DynamoDbRecordOf(item, request.kind));
    taken.push_back(std::move(record));
  }
  return taken;
}

Status DynamoDbClaims::FindClaimed(const ClaimRequest& request, std::set<std::string>& keys) {
  for (int shard = 0; shard < kDynamoDbShards; ++shard) {
    Json query = IndexQuery(request, shard);
    query["FilterExpression"] = "claim = :claim";
    query["ExpressionAttributeValues"][":claim"] = DynamoDbText(request.claim_id);
    while (true) {
      MUSTER_ASSIGN(const Json answer, client_.Fetch("Query", query));
      for (const Json& item : answer.value("Items", Json::array())) {
        keys.insert(DynamoDbTextOf(item, "sk").value_or(""));
      }
      const auto last = answer.find("LastEvaluatedKey");
      if (last == answer.end()) break;
      query["ExclusiveStartKey"] = *last;
    }
  }
  return {};
}

void DynamoDbClaims::Unconfirmed::Remember(const std::string& claim_id,
                                           const std::vector<std::string>& keys) {
  const MutexLock lock(mutex_);
  auto& known = keys_[claim_id];
  known.insert(keys.begin(), keys.end());
  order_.push_back(claim_id);
  if (order_.size() <= kMaxClaims) return;
  keys_.erase(order_.front());
  order_.pop_front();
}

std::set<std::string> DynamoDbClaims::Unconfirmed::Recall(const std::string& claim_id) const {
  const MutexLock lock(mutex_);
  const auto found = keys_.find(claim_id);
  return found == keys_.end() ? std::set<std::string>{} : found->second;
}

}  // namespace muster::store
