#include "store/dynamodb/dynamodb_store.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "store/backends.h"
#include "store/dynamodb/dynamodb_candidates.h"
#include "store/dynamodb/dynamodb_client.h"
#include "store/dynamodb/dynamodb_items.h"
#include "store/dynamodb/dynamodb_table.h"
#include "store/record_rules.h"

namespace muster::store {
namespace {

// A transaction has at most 100 changes and 4 MB of items.
constexpr size_t kMaxTransaction = 100;
constexpr size_t kMaxTransactionBytes = 3'500'000;
constexpr size_t kItemBytes = 4'000;  // upper bound for all attributes but the body

// A claim of many is one request each: after this long it returns what it has.
constexpr std::chrono::seconds kClaimFor{4};

// Polling interval of waiters: initial, and after a long time without results.
constexpr milliseconds kFirstWait{100};
constexpr milliseconds kLongestWait{4'000};

constexpr std::string_view kConditionFailed = "ConditionalCheckFailedException";

using Candidate = DynamoDbCandidates::Candidate;

// The item that failed a conditional write; empty: none.
Json ItemOf(const Json& body) { return body.value("Item", Json::object()); }

// Keys that claims may have taken without knowing, because the response was lost. In memory, since
// only the process that made a claim repeats it.
class UnconfirmedWrites {
 public:
  void Remember(const std::string& claim_id, std::vector<std::string> keys) {
    std::lock_guard lock(mutex_);
    auto& known = keys_[claim_id];
    known.insert(keys.begin(), keys.end());
    order_.push_back(claim_id);
    if (order_.size() <= kMaxClaims) return;
    keys_.erase(order_.front());
    order_.pop_front();
  }

  std::set<std::string> Recall(const std::string& claim_id) const {
    std::lock_guard lock(mutex_);
    const auto found = keys_.find(claim_id);
    return found == keys_.end() ? std::set<std::string>{} : found->second;
  }

 private:
  static constexpr size_t kMaxClaims = 1'000;
  mutable std::mutex mutex_;
  std::map<std::string, std::set<std::string>> keys_;
  std::deque<std::string> order_;
};

class DynamoDbStore final : public Store {
 public:
  DynamoDbStore(const DynamoDbPlace& place, std::string space, Env& env,
                const DynamoDbLimits& limits)
      : env_(env),
        space_(std::move(space)),
        client_(place, env, limits),
        items_(place.table, space_),
        candidates_(env) {}

  Status Prepare() { return PrepareDynamoDbTable(client_, space_, env_); }

  Result<std::optional<Record>> Get(std::string_view kind, std::string_view key) override {
    MUSTER_TRY(CheckKind(kind));
    MUSTER_TRY(CheckKey(key));
    MUSTER_ASSIGN(const Json item, GetItem(kind, key));
    if (item.empty()) return std::optional<Record>{};
    MUSTER_ASSIGN(Record record, DynamoDbRecordOf(item, kind));
    return std::optional<Record>(std::move(record));
  }

  Result<std::vector<Record>> Scan(std::string_view kind, std::string_view prefix,
                                   std::string_view after, int limit) override {
    MUSTER_TRY(CheckScan(kind, prefix, after, limit));
    std::vector<Record> page;
    if (after > prefix && !after.starts_with(prefix)) return page;
    Json query{{"TableName", client_.place().table},
               {"ConsistentRead", true},
               {"KeyConditionExpression", "pk = :pk"},
               {"ExpressionAttributeValues", {{":pk", DynamoDbText(items_.Partition(kind))}}}};
    if (!prefix.empty()) {
      query["KeyConditionExpression"] = "pk = :pk AND begins_with(sk, :prefix)";
      query["ExpressionAttributeValues"][":prefix"] = DynamoDbText(prefix);
    }
    if (!after.empty() && after >= prefix) query["ExclusiveStartKey"] = items_.Key(kind, after);
    while (true) {
      query["Limit"] = static_cast<size_t>(limit) - page.size();
      MUSTER_ASSIGN(const Json answer, Query(query));
      for (const Json& item : answer.value("Items", Json::array())) {
        MUSTER_ASSIGN(Record record, DynamoDbRecordOf(item, kind));
        page.push_back(std::move(record));
      }
      const auto last = answer.find("LastEvaluatedKey");
      if (last == answer.end() || page.size() >= static_cast<size_t>(limit)) return page;
      query["ExclusiveStartKey"] = *last;
    }
  }

  Result<std::vector<Written>> Write(std::span<const Change> changes) override {
    MUSTER_TRY(CheckChanges(changes));
    if (changes.empty()) return std::vector<Written>{};
    auto written = changes.size() == 1 ? WriteOne(changes[0]) : WriteMany(changes);
    if (written) Announce(changes, *written);
    return written;
  }

  Result<std::vector<Record>> Claim(const ClaimRequest& request) override {
    MUSTER_TRY(CheckClaim(request));
    if (request.repeat) {
      MUSTER_ASSIGN(std::vector<Record> taken, TakenBefore(request));
      if (!taken.empty()) return taken;
    }
    auto claimed = request.key.empty() ? ClaimDue(request) : ClaimKey(request);
    if (claimed && !claimed->empty()) idle_waits_ = 0;
    return claimed;
  }

  Result<WallTime> Now() override {
    MUSTER_TRY(client_.AskForTime());
    MUSTER_ASSIGN(const ServerClock::Reading reading, client_.ReadClock());
    return reading.now;
  }

  // A table does not notify of changes, so callers poll, less often the longer nothing was found;
  // at once if this process wrote.
  void Wait(std::string_view /*kind*/, milliseconds timeout, std::stop_token stop) override {
    const milliseconds longest =
        std::min(kFirstWait * (1 << std::min(idle_waits_++, 10)), kLongestWait);
    const auto pause = std::chrono::floor<milliseconds>(longest / 2 + env_.Jitter(longest / 2));
    std::unique_lock lock(mutex_);
    const uint64_t seen = announced_;
    wake_up_.wait_for(lock, stop, std::min(timeout, pause), [&] { return announced_ != seen; });
  }

 private:
  Result<Json> GetItem(std::string_view kind, std::string_view key) {
    Json request = items_.Request(kind, key);
    request["ConsistentRead"] = true;
    MUSTER_ASSIGN(DynamoDbAnswer answer, client_.Call("GetItem", request));
    if (!answer.ok()) return client_.ErrorOf("GetItem", answer);
    return ItemOf(answer.body);
  }

  Result<Json> Query(const Json& request) {
    MUSTER_ASSIGN(DynamoDbAnswer answer, client_.Call("Query", request));
    if (!answer.ok()) return client_.ErrorOf("Query", answer);
    return std::move(answer.body);
  }

  // A change as an UpdateItem or DeleteItem request, or as part of a transaction.
  struct Request {
    Json json;
    std::string nonce;
    int64_t version = 0;  // of the record afterwards
  };

  // `reading` may be none unless a change is due after a delay.
  Request RequestOf(const Change& change, const std::optional<ServerClock::Reading>& reading) {
    const Record& record = change.record;
    Request request{.json = {}, .nonce = env_.NewId()};
    DynamoDbUpdate update(items_.Request(record.kind, record.key));
    if (record.version != 0) update.If("version", "=", record.version);
    if (change.op == Change::Op::kDelete) {
      request.json = std::move(update).Take();
      return request;
    }
    request.version = record.version != 0 ? record.version + 1 : FirstVersion(env_);
    update.Set("version", request.version)
        .Set("owner", record.owner)
        .Set("attempt", int64_t{record.attempt})
        .Set("body", record.body)
        .Set("nonce", request.nonce);
    if (change.due.IsTimed()) {
      const ServerClock::Times times = reading->At(change.due);
      update.Set("due", times.due).Set("ready", times.ready);
    }
    if (record.version == 0) {
      const int shard = static_cast<int>(env_.Random() % kDynamoDbShards);
      update.IfMissing()
          .Set("queue", record.queue)
          .Set("epoch", int64_t{0})
          .Set("due_in", items_.DueIn(record.kind, record.queue, shard));
    } else if (change.due.kind == Due::Kind::kNever) {
      update.Remove("due").Remove("ready");
    }
    request.json = std::move(update).Take();
    return request;
  }

  // One reading for all changes of a write, so that none is older than another.
  Result<std::optional<ServerClock::Reading>> ReadingFor(std::span<const Change> changes) {
    const bool timed = std::any_of(changes.begin(), changes.end(),
                                   [](const Change& change) { return change.due.IsTimed(); });
    if (!timed) return std::optional<ServerClock::Reading>{};
    MUSTER_ASSIGN(const ServerClock::Reading reading, client_.ReadClock());
    return std::optional<ServerClock::Reading>(reading);
  }

  Result<std::vector<Written>> WriteOne(const Change& change) {
    MUSTER_ASSIGN(const auto reading, ReadingFor({&change, 1}));
    const Request request = RequestOf(change, reading);
    const char* operation = change.op == Change::Op::kPut ? "UpdateItem" : "DeleteItem";
    MUSTER_ASSIGN(const DynamoDbAnswer answer, client_.Call(operation, request.json));
    const Written applied{.applied = true, .version = request.version};
    if (answer.ok()) return std::vector<Written>{applied};
    if (answer.error != kConditionFailed) return client_.ErrorOf(operation, answer);
    if (!answer.in_doubt) return std::vector<Written>{{}};
    // An earlier try may have been applied, and be the conflict.
    const Json item = ItemOf(answer.body);
    if (change.op == Change::Op::kPut && DynamoDbTextOf(item, "nonce") == request.nonce) {
      return std::vector<Written>{applied};
    }
    const bool replaced = change.op == Change::Op::kPut && change.record.version != 0;
    if (replaced && DynamoDbNumberOf(item, "version") == request.version) {
      return std::vector<Written>{{}};  // the conflicting change is another writer's
    }
    return Error{Code::kUnknownOutcome,
                 client_.place().Name() + ": it is not known whether '" + change.record.key +
                     "' was changed",
                 "read the record again"};
  }

  Result<std::vector<Written>> WriteMany(std::span<const Change> changes) {
    std::vector<Written> answers(changes.size());
    std::vector<size_t> group;
    size_t bytes = 0;
    bool wrote = false;
    const auto flush = [&]() -> Status {
      auto written = WriteGroup(changes, std::exchange(group, {}), answers);
      bytes = 0;
      if (written) return wrote = true, Status{};
      Error error = std::move(written).error();
      if (wrote) error.code = Code::kUnknownOutcome;  // earlier groups were applied
      return error;
    };
    for (size_t i = 0; i < changes.size(); ++i) {
      const size_t size = changes[i].record.body.size() + kItemBytes;
      if (group.size() == kMaxTransaction || bytes + size > kMaxTransactionBytes) {
        MUSTER_TRY(flush());
      }
      group.push_back(i);
      bytes += size;
    }
    MUSTER_TRY(flush());
    return answers;
  }

  // One transaction, retried without the changes whose conditions failed: those are decided. A
  // transaction with a token is applied once however often it is sent, so a final response is
  // certain.
  Status WriteGroup(std::span<const Change> changes, std::vector<size_t> group,
                    std::vector<Written>& answers) {
    DynamoDbPatience patience = client_.NewPatience();
    MUSTER_ASSIGN(const auto reading, ReadingFor(changes));
    while (!group.empty()) {
      Json transaction{{"ClientRequestToken", env_.NewId()}, {"TransactItems", Json::array()}};
      std::vector<int64_t> versions;
      for (const size_t i : group) {
        Request request = RequestOf(changes[i], reading);
        const char* name = changes[i].op == Change::Op::kPut ? "Update" : "Delete";
        transaction["TransactItems"].push_back(Json{{name, std::move(request.json)}});
        versions.push_back(request.version);
      }
      MUSTER_ASSIGN(const DynamoDbAnswer answer,
                    client_.Call("TransactWriteItems", transaction, patience));
      if (answer.ok()) {
        for (size_t i = 0; i < group.size(); ++i) answers[group[i]] = {true, versions[i]};
        return {};
      }
      MUSTER_ASSIGN(group, WithoutFailed(std::move(group), answer));
    }
    return {};
  }

  Result<std::vector<size_t>> WithoutFailed(std::vector<size_t> group,
                                            const DynamoDbAnswer& answer) {
    const Json reasons = answer.body.value("CancellationReasons", Json::array());
    std::vector<size_t> left;
    for (size_t i = 0; i < group.size() && i < reasons.size(); ++i) {
      const std::string code = reasons[i].value("Code", "");
      if (code == "ConditionalCheckFailed") continue;
      if (code == "ValidationError") return client_.ErrorOf("TransactWriteItems", answer);
      left.push_back(group[i]);
    }
    if (reasons.size() != group.size() || left.size() == group.size()) {
      return client_.ErrorOf("TransactWriteItems", answer);
    }
    return left;
  }

  void Announce(std::span<const Change> changes, const std::vector<Written>& written) {
    for (size_t i = 0; i < changes.size(); ++i) {
      const Due& due = changes[i].due;
      if (!due.HasCome() || !written[i].applied) continue;
      {
        std::lock_guard lock(mutex_);
        ++announced_;
      }
      return wake_up_.notify_all();
    }
  }

  Result<std::vector<Record>> ClaimDue(const ClaimRequest& request) {
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
        doubts_.Remember(request.claim_id, std::move(tried));
        return taken.error();
      }
      if (!taken && claimed.empty()) return taken.error();
      if (!taken) break;
      candidates_.Settled(request.kind, request.queue, candidate, taken->has_value());
      if (*taken) claimed.push_back(**std::move(taken));
    }
    return claimed;
  }

  Result<std::vector<Record>> ClaimKey(const ClaimRequest& request) {
    std::vector<Record> claimed;
    MUSTER_ASSIGN(const Json item, GetItem(request.kind, request.key));
    MUSTER_ASSIGN(const ServerClock::Reading reading, client_.ReadClock());
    if (!IsClaimable(item, request, reading)) return claimed;
    const auto attempt = DynamoDbNumberOf(item, "attempt").value_or(0);
    MUSTER_ASSIGN(auto taken, Take(request, request.key, attempt));
    if (taken) claimed.push_back(*std::move(taken));
    return claimed;
  }

  static bool IsClaimable(const Json& item, const ClaimRequest& request,
                          const ServerClock::Reading& reading) {
    const auto ready = DynamoDbNumberOf(item, "ready");
    return ready && *ready <= DynamoDbMilliseconds(reading.Horizon()) &&
           DynamoDbTextOf(item, "queue") == request.queue;
  }

  // None: not available any more.
  Result<std::optional<Record>> Take(const ClaimRequest& request, const std::string& key,
                                     int64_t attempt) {
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
      if (!answer.ok() && answer.error != kConditionFailed) {
        return client_.ErrorOf("UpdateItem", answer);
      }
      const Json item =
          answer.ok() ? answer.body.value("Attributes", Json::object()) : ItemOf(answer.body);
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

  Json IndexQuery(const ClaimRequest& request, int shard) const {
    return Json{{"TableName", client_.place().table},
                {"IndexName", kDynamoDbDueIndex},
                {"KeyConditionExpression", "due_in = :due_in"},
                {"ExpressionAttributeValues",
                 {{":due_in", DynamoDbText(items_.DueIn(request.kind, request.queue, shard))}}}};
  }

  Result<std::vector<Candidate>> AskIndex(const ClaimRequest& request, int limit) {
    MUSTER_ASSIGN(const ServerClock::Reading reading, client_.ReadClock());
    std::vector<std::pair<int64_t, Candidate>> found;
    for (int shard = 0; shard < kDynamoDbShards; ++shard) {
      Json query = IndexQuery(request, shard);
      query["KeyConditionExpression"] = "due_in = :due_in AND ready <= :horizon";
      query["ExpressionAttributeValues"][":horizon"] =
          DynamoDbNumber(DynamoDbMilliseconds(reading.Horizon()));
      query["Limit"] = limit;
      MUSTER_ASSIGN(const Json answer, Query(query));
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
  Result<std::vector<Record>> TakenBefore(const ClaimRequest& request) {
    std::set<std::string> keys{request.key};
    if (request.key.empty()) {
      keys = doubts_.Recall(request.claim_id);
      MUSTER_TRY(FindClaimed(request, keys));
    }
    std::vector<Record> taken;
    for (const std::string& key : keys) {
      MUSTER_ASSIGN(const Json item, GetItem(request.kind, key));
      if (DynamoDbTextOf(item, "claim") != request.claim_id || !item.contains("due") ||
          DynamoDbTextOf(item, "queue") != request.queue) {
        continue;
      }
      MUSTER_ASSIGN(Record record, DynamoDbRecordOf(item, request.kind));
      taken.push_back(std::move(record));
    }
    return taken;
  }

  Status FindClaimed(const ClaimRequest& request, std::set<std::string>& keys) {
    for (int shard = 0; shard < kDynamoDbShards; ++shard) {
      Json query = IndexQuery(request, shard);
      query["FilterExpression"] = "claim = :claim";
      query["ExpressionAttributeValues"][":claim"] = DynamoDbText(request.claim_id);
      while (true) {
        MUSTER_ASSIGN(const Json answer, Query(query));
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

  Env& env_;
  const std::string space_;
  DynamoDbClient client_;
  const DynamoDbItems items_;
  DynamoDbCandidates candidates_;
  UnconfirmedWrites doubts_;
  std::atomic<int> idle_waits_ = 0;
  std::mutex mutex_;
  std::condition_variable_any wake_up_;
  uint64_t announced_ = 0;
};

}  // namespace

Result<std::unique_ptr<Store>> OpenDynamoDbStore(const DynamoDbPlace& place,
                                                 const std::string& space, Env& env) {
  return OpenDynamoDbStore(place, space, env, DynamoDbLimits{});
}

Result<std::unique_ptr<Store>> OpenDynamoDbStore(const DynamoDbPlace& place,
                                                 const std::string& space, Env& env,
                                                 const DynamoDbLimits& limits) {
  auto store = std::make_unique<DynamoDbStore>(place, space, env, limits);
  MUSTER_TRY(store->Prepare());
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace muster::store
