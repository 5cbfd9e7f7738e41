#include "store/dynamodb/dynamodb_store.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "core/backoff.h"
#include "core/condition.h"
#include "core/mutex.h"
#include "store/backends.h"
#include "store/dynamodb/dynamodb_claims.h"
#include "store/dynamodb/dynamodb_client.h"
#include "store/dynamodb/dynamodb_items.h"
#include "store/dynamodb/dynamodb_table.h"
#include "store/dynamodb/dynamodb_writer.h"
#include "store/record_rules.h"

namespace muster::store {
namespace {

// Polling interval of waiters: initial, and after a long time without results.
constexpr Backoff::Pauses kWaits{.first = milliseconds(100), .longest = milliseconds(4'000)};

class DynamoDbStore final : public Store {
 public:
  DynamoDbStore(const DynamoDbPlace& place, std::string space, Env& env,
                const DynamoDbLimits& limits)
      : env_(env),
        space_(std::move(space)),
        client_(place, env, limits),
        items_(place.table, space_),
        writer_(client_, items_, env),
        claims_(client_, items_, env) {}

  Status Prepare() { return PrepareDynamoDbTable(client_, space_, env_); }

  Result<std::optional<Record>> Get(std::string_view kind, std::string_view key) override {
    MUSTER_TRY(CheckKind(kind));
    MUSTER_TRY(CheckKey(key));
    MUSTER_ASSIGN(const Json item, client_.GetItem(items_.Request(kind, key)));
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
      MUSTER_ASSIGN(const Json answer, client_.Fetch("Query", query));
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
    auto written = writer_.Write(changes);
    if (written) Announce(changes, *written);
    return written;
  }

  Result<std::vector<Record>> Claim(const ClaimRequest& request) override {
    MUSTER_TRY(CheckClaim(request));
    auto claimed = claims_.Claim(request);
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
    const milliseconds longest = kWaits.After(++idle_waits_);
    const auto pause = std::chrono::floor<milliseconds>(longest / 2 + env_.Jitter(longest / 2));
    MutexLock lock(mutex_);
    const uint64_t seen = announced_;
    wake_up_.WaitFor(lock, std::min(timeout, pause), stop,
                     [&]() REQUIRES(mutex_) { return announced_ != seen; });
  }

 private:
  void Announce(std::span<const Change> changes, const std::vector<Written>& written) {
    for (size_t i = 0; i < changes.size(); ++i) {
      const Due& due = changes[i].due;
      if (!due.HasCome() || !written[i].applied) continue;
      const MutexLock lock(mutex_);
      ++announced_;
      return wake_up_.NotifyAll();
    }
  }

  Env& env_;
  const std::string space_;
  DynamoDbClient client_;
  const DynamoDbItems items_;
  DynamoDbWriter writer_;
  DynamoDbClaims claims_;
  std::atomic<int> idle_waits_ = 0;
  Mutex mutex_;
  Condition wake_up_{env_};
  uint64_t announced_ GUARDED_BY(mutex_) = 0;
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
