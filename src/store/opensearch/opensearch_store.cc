#include <algorithm>
#include <atomic>
#include <memory>

#include "core/backoff.h"
#include "core/mutex.h"
#include "store/backends.h"
#include "store/opensearch/opensearch_bulk.h"
#include "store/opensearch/opensearch_claims.h"
#include "store/opensearch/opensearch_clock.h"
#include "store/opensearch/opensearch_reader.h"
#include "store/opensearch/opensearch_schema.h"
#include "store/record_rules.h"

namespace muster::store {
namespace {

constexpr Backoff::Pauses kPolls{.first = milliseconds(50), .longest = milliseconds(1'000)};

class OpenSearchStore final : public Store {
 public:
  OpenSearchStore(std::unique_ptr<OpenSearchCluster> client, const OpenSearchIndex& index, Env& env)
      : env_(env),
        client_(std::move(client)),
        alias_(index.alias),
        clock_(*client_, env),
        reader_(*client_, index),
        claims_(*client_, reader_, clock_, alias_, env) {}

  Result<std::optional<Record>> Get(std::string_view kind, std::string_view key) override {
    MUSTER_TRY(CheckKind(kind));
    MUSTER_TRY(CheckKey(key));
    MUSTER_ASSIGN(const Json found, reader_.Read({DocumentId(kind, key)}));
    if (!IsFound(found.front())) return std::optional<Record>{};
    return std::optional<Record>(RecordOf(found.front()));
  }

  Result<std::vector<Record>> Scan(std::string_view kind, std::string_view prefix,
                                   std::string_view after, int limit) override {
    MUSTER_TRY(CheckScan(kind, prefix, after, limit));
    return reader_.Scan(kind, prefix, after, limit);
  }

  Result<std::vector<Written>> Write(std::span<const Change> changes) override {
    MUSTER_TRY(CheckChanges(changes));
    if (changes.empty()) return std::vector<Written>{};
    std::vector<BulkAction> actions;
    std::vector<size_t> which;  // the change of each action
    const std::string write_id = env_.NewId();
    for (size_t i = 0; i < changes.size(); ++i) {
      MUSTER_ASSIGN(BulkAction action, ActionOf(changes[i], write_id));
      // No document ever had such a version, and the server would reject it.
      if (action.op != BulkAction::Op::kCreate && action.version.primary_term == 0) continue;
      actions.push_back(std::move(action));
      which.push_back(i);
    }
    std::vector<BulkResult> results = SendBulk(*client_, env_, alias_, actions);
    ++own_changes_;
    MUSTER_TRY(FailureOf(results));
    MUSTER_TRY(Reconsider(actions, write_id, results));
    std::vector<Written> answers(changes.size());
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].kind != BulkResult::Kind::kApplied) continue;
      answers[which[i]].applied = true;
      if (actions[i].op != BulkAction::Op::kDelete) {
        answers[which[i]].version = results[i].version.Packed();
      }
    }
    return answers;
  }

  Result<std::vector<Record>> Claim(const ClaimRequest& request) override {
    MUSTER_TRY(CheckClaim(request));
    return claims_.Claim(request);
  }

  Result<WallTime> Now() override {
    MUSTER_ASSIGN(const ServerClock::Reading time, clock_.Read());
    return time.now;
  }

  void Wait(std::string_view /*kind*/, milliseconds timeout, std::stop_token stop) override {
    const MonoTime end = env_.MonoNow() + timeout;
    const uint64_t own = own_changes_;
    const int64_t seen = LastSeqNo(milliseconds(0));
    Backoff polls(env_, stop, kPolls);
    while (!stop.stop_requested()) {
      const auto left = end - env_.MonoNow();
      if (left <= left.zero()) return;
      const auto pause = std::min<std::chrono::nanoseconds>(left, polls.Next());
      env_.Sleep(pause, stop);
      if (own_changes_ != own || LastSeqNo(std::chrono::floor<milliseconds>(pause)) != seen) return;
    }
  }

 private:
  Result<std::optional<ServerClock::Times>> TimesOf(Due due) {
    if (!due.IsTimed()) return std::optional<ServerClock::Times>{};
    MUSTER_ASSIGN(const ServerClock::Reading time, clock_.Read());
    return std::optional(time.At(due));
  }

  Result<BulkAction> ActionOf(const Change& change, const std::string& write_id) {
    const Record& record = change.record;
    BulkAction action{.id = DocumentId(record.kind, record.key),
                      .version = DocumentVersion::Unpack(record.version)};
    if (change.op == Change::Op::kDelete) {
      action.op = BulkAction::Op::kDelete;
      return action;
    }
    MUSTER_ASSIGN(const auto times, TimesOf(change.due));
    if (record.version == 0) {
      action.fields = NewDocument(record, times, write_id);
    } else {
      action.op = BulkAction::Op::kUpdate;
      action.fields = ChangedFields(change, times, write_id);
    }
    return action;
  }

  // A cluster that loses a node retries a write by itself, and may then conflict with its own first
  // try. So a conflict is read back before it is reported.
  Status Reconsider(const std::vector<BulkAction>& actions, const std::string& write_id,
                    std::vector<BulkResult>& results) {
    std::vector<size_t> lost;
    std::vector<std::string> ids;
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].kind != BulkResult::Kind::kConflict) continue;
      if (actions[i].op == BulkAction::Op::kDelete) continue;
      lost.push_back(i);
      ids.push_back(actions[i].id);
    }
    if (ids.empty()) return {};
    auto found = reader_.Read(ids);
    if (!found) {
      return Error{Code::kUnknownOutcome,
                   "a conflict could not be resolved: " + found.error().message,
                   found.error().hint};
    }
    for (size_t i = 0; i < lost.size(); ++i) {
      const Json& document = (*found)[i];
      if (TextIn(MemberIn(document, "_source"), "write_id") != write_id) continue;
      results[lost[i]] = {.kind = BulkResult::Kind::kApplied, .version = VersionOf(document)};
    }
    return {};
  }

  // The index's last sequence number; 0 if unavailable. Read at most once per `max_age`.
  int64_t LastSeqNo(milliseconds max_age) {
    const MutexLock lock(sign_mutex_);
    const MonoTime now = env_.MonoNow();
    if (sign_asked_ != MonoTime{} && now - sign_asked_ < max_age) return sign_;
    const auto answer = client_->Call(
        {.target =
             "/" + alias_ + "/_stats/docs?level=shards&filter_path=indices.*.shards.*.seq_no"});
    sign_asked_ = env_.MonoNow();
    if (!answer) return sign_ = 0;
    int64_t sum = 0;  // over all shards
    for (const Json& index : MemberIn(*answer, "indices")) {
      for (const Json& shard : MemberIn(index, "shards")) {
        for (const Json& copy : shard) sum += NumberIn(MemberIn(copy, "seq_no"), "max_seq_no");
      }
    }
    return sign_ = sum;
  }

  Env& env_;
  const std::unique_ptr<OpenSearchCluster> client_;
  const std::string alias_;
  OpenSearchClock clock_;
  OpenSearchReader reader_;
  OpenSearchClaims claims_;
  std::atomic<uint64_t> own_changes_ = 0;

  Mutex sign_mutex_;
  MonoTime sign_asked_ GUARDED_BY(sign_mutex_){};
  int64_t sign_ GUARDED_BY(sign_mutex_) = 0;
};

}  // namespace

Result<std::unique_ptr<Store>> OpenOpenSearchStore(const net::OpenSearchEndpoint& endpoint,
                                                   const std::string& space, Env& env) {
  auto client = std::make_unique<OpenSearchCluster>(endpoint, env);
  MUSTER_TRY(ReadOpenSearchServer(*client));
  MUSTER_ASSIGN(const OpenSearchIndex index, OpenOpenSearchIndex(*client, space, env));
  auto store = std::make_unique<OpenSearchStore>(std::move(client), index, env);
  MUSTER_TRY(store->Now());  // fails early if the cluster's clock cannot be read
  return store;
}

}  // namespace muster::store
