#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>

#include "store/backends.h"
#include "store/opensearch/opensearch_bulk.h"
#include "store/opensearch/opensearch_candidates.h"
#include "store/opensearch/opensearch_clock.h"
#include "store/opensearch/opensearch_schema.h"
#include "store/record_rules.h"

namespace muster::store {
namespace {

constexpr int kScanPage = 100;  // documents that fit in one response, even if large
constexpr size_t kMaxQueues = 64;
constexpr milliseconds kClaimFor{8'000};
constexpr milliseconds kFirstPoll{50};
constexpr milliseconds kSlowestPoll{1'000};

Json Term(const char* field, std::string_view value) {
  return Json{{"term", {{field, std::string(value)}}}};
}

Json Where(Json conditions) { return Json{{"bool", {{"filter", std::move(conditions)}}}}; }

class OpenSearchStore final : public Store {
 public:
  OpenSearchStore(net::OpenSearchEndpoint endpoint, Env& env)
      : env_(env), client_(std::move(endpoint), env), clock_(client_, env) {}

  Status Open(const std::string& space) {
    MUSTER_TRY(ReadOpenSearchServer(client_));
    MUSTER_ASSIGN(const OpenSearchIndex index, OpenOpenSearchIndex(client_, space, env_));
    alias_ = index.alias;
    search_ = "/" + alias_ + "/_search?allow_partial_search_results=false";
    // Replicas may lag, the primary does not.
    if (index.reads_primaries) search_ += "&preference=_primary";
    MUSTER_TRY(clock_.Read());
    return {};
  }

  Result<std::optional<Record>> Get(std::string_view kind, std::string_view key) override {
    MUSTER_TRY(CheckKind(kind));
    MUSTER_TRY(CheckKey(key));
    MUSTER_ASSIGN(const Json found, Read({DocumentId(kind, key)}));
    if (!IsFound(found.front())) return std::optional<Record>{};
    return std::optional<Record>(RecordOf(found.front()));
  }

  Result<std::vector<Record>> Scan(std::string_view kind, std::string_view prefix,
                                   std::string_view after, int limit) override {
    MUSTER_TRY(CheckScan(kind, prefix, after, limit));
    std::vector<Record> records;
    MUSTER_TRY(Refresh());
    std::string last(after);
    while (records.size() < static_cast<size_t>(limit)) {
      const int size = std::min(limit - static_cast<int>(records.size()), kScanPage);
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
    std::vector<BulkResult> results = SendBulk(client_, env_, alias_, actions);
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

  Result<WallTime> Now() override {
    MUSTER_ASSIGN(const ServerClock::Reading time, clock_.Read());
    return time.now;
  }

  void Wait(std::string_view /*kind*/, milliseconds timeout, std::stop_token stop) override {
    const MonoTime end = env_.MonoNow() + timeout;
    const uint64_t own = own_changes_;
    const int64_t seen = LastSeqNo(milliseconds(0));
    milliseconds pause = kFirstPoll;
    while (!stop.stop_requested()) {
      const auto left = end - env_.MonoNow();
      if (left <= left.zero()) return;
      env_.Sleep(std::min<std::chrono::nanoseconds>(left, pause + env_.Jitter(pause)), stop);
      if (own_changes_ != own || LastSeqNo(pause) != seen) return;
      pause = std::min(pause * 2, kSlowestPoll);
    }
  }

 private:
  static bool IsFound(const Json& document) {
    const Json& found = MemberOf(document, "found");
    return found.is_boolean() && found.get<bool>();
  }

  // A field's only value.
  static const Json& OnlyValue(const Json& fields, const char* name) {
    const Json& values = MemberOf(fields, name);
    return values.is_array() && !values.empty() ? values[0] : values;
  }

  static int64_t NumberIn(const Json& value) {
    return value.is_number_integer() ? value.get<int64_t>() : 0;
  }

  static bool IsUnknown(const std::vector<BulkResult>& results) {
    return std::any_of(results.begin(), results.end(), [](const BulkResult& result) {
      return result.kind == BulkResult::Kind::kFailed && result.error.code == Code::kUnknownOutcome;
    });
  }

  // Documents by id, in their current state, whatever searches show.
  Result<Json> Read(const std::vector<std::string>& ids) {
    MUSTER_ASSIGN(Json answer, client_.Call({.method = "POST",
                                             .target = "/" + alias_ + "/_mget",
                                             .body = ToJsonText(Json{{"ids", ids}})}));
    const Json& documents = MemberOf(answer, "docs");
    if (!documents.is_array() || documents.size() != ids.size()) {
      return Error{Code::kUnavailable, "the cluster's answer to a read is incomplete"};
    }
    for (const Json& document : documents) {
      const Json& error = MemberOf(document, "error");
      if (error.is_null()) continue;
      const bool gone = TextOf(error, "type") == "index_not_found_exception";
      return client_.Refusal(gone ? 404 : 503, error, false, alias_);
    }
    return documents;
  }

  // Makes all earlier writes visible to searches.
  Status Refresh() {
    MUSTER_ASSIGN(const Json answer,
                  client_.Call({.method = "POST", .target = "/" + alias_ + "/_refresh"}));
    if (NumberOf(MemberOf(answer, "_shards"), "failed") == 0) return {};
    return Error{Code::kUnavailable, "a shard of the store's index cannot be refreshed",
                 "wait until GET _cluster/health shows the index as green or yellow"};
  }

  Result<Json> Search(Json query) {
    query["track_total_hits"] = false;
    query["seq_no_primary_term"] = true;
    MUSTER_ASSIGN(Json answer,
                  client_.Call({.method = "POST", .target = search_, .body = ToJsonText(query)}));
    const Json& hits = MemberOf(MemberOf(answer, "hits"), "hits");
    if (!hits.is_array() || MemberOf(answer, "timed_out") == true) {
      return Error{Code::kUnavailable, "the cluster's answer to a search is incomplete"};
    }
    return hits;
  }

  // The prefix query is used only if `after` lies before it: beyond, key order leads through it,
  // and only as many documents are visited as requested.
  static Json ScanQuery(std::string_view kind, std::string_view prefix, const std::string& after,
                        int size) {
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
    auto found = Read(ids);
    if (!found) {
      return Error{Code::kUnknownOutcome,
                   "a conflict could not be looked into: " + found.error().message,
                   found.error().hint};
    }
    for (size_t i = 0; i < lost.size(); ++i) {
      const Json& document = (*found)[i];
      if (TextOf(MemberOf(document, "_source"), "write_id") != write_id) continue;
      results[lost[i]] = {.kind = BulkResult::Kind::kApplied, .version = VersionOf(document)};
    }
    return {};
  }

  // The due records. A search only proposes: they may have been taken since. It reads only columns,
  // no documents.
  Result<std::vector<Candidate>> FindDue(const ClaimRequest& request, size_t size) {
    MUSTER_ASSIGN(const ServerClock::Reading time, clock_.Read());
    MUSTER_TRY(Refresh());
    const int64_t horizon = time.Horizon().time_since_epoch().count();
    MUSTER_ASSIGN(
        const Json hits,
        Search(Json{
            {"size", size},
            {"query", Where(Json::array({Term("kind", request.kind), Term("queue", request.queue),
                                         Json{{"range", {{"ready", {{"lte", horizon}}}}}}}))},
            {"sort", Json::array({Json{{"ready", "asc"}}})},
            {"stored_fields", "_none_"},
            {"docvalue_fields", Json::array({"key", "epoch", "attempt"})}}));
    std::vector<Candidate> found;
    found.reserve(hits.size());
    for (const Json& hit : hits) {
      const Json& fields = MemberOf(hit, "fields");
      const Json& key = OnlyValue(fields, "key");
      if (!key.is_string()) continue;
      found.push_back({.id = DocumentId(request.kind, key.get_ref<const std::string&>()),
                       .version = VersionOf(hit),
                       .epoch = NumberIn(OnlyValue(fields, "epoch")),
                       .attempt = static_cast<int>(NumberIn(OnlyValue(fields, "attempt")))});
    }
    return found;
  }

  // Claims each that is unchanged.
  std::vector<BulkResult> TryClaim(const ClaimRequest& request,
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

  Result<std::vector<Record>> ClaimKey(const ClaimRequest& request) {
    const MonoTime give_up = env_.MonoNow() + kClaimFor;
    while (env_.MonoNow() < give_up) {
      MUSTER_ASSIGN(const Json found, Read({DocumentId(request.kind, request.key)}));
      const Json& source = MemberOf(found.front(), "_source");
      const Json& ready = MemberOf(source, "ready");
      MUSTER_ASSIGN(const ServerClock::Reading time, clock_.Read());
      const int64_t horizon = time.Horizon().time_since_epoch().count();
      if (!IsFound(found.front()) || TextOf(source, "queue") != request.queue ||
          !ready.is_number_integer() || ready.get<int64_t>() > horizon) {
        return std::vector<Record>{};
      }
      const std::vector<BulkResult> results =
          TryClaim(request, {{.id = TextOf(found.front(), "_id"),
                              .version = VersionOf(found.front()),
                              .epoch = NumberOf(source, "epoch"),
                              .attempt = static_cast<int>(NumberOf(source, "attempt"))}});
      MUSTER_TRY(FailureOf(results));
      const BulkResult& result = results.front();
      if (result.kind == BulkResult::Kind::kApplied) {
        return std::vector<Record>{RecordOf(result.source, result.version)};
      }
    }
    return Error{Code::kUnavailable, "record '" + request.key + "' changes all the time",
                 "try again"};
  }

  // What this claim took before, unless others have claimed it since. Found by a search, decided by
  // reading.
  Result<std::vector<Record>> TakenBy(const ClaimRequest& request) {
    MUSTER_TRY(Refresh());
    MUSTER_ASSIGN(const Json hits,
                  Search(Json{{"size", kMaxBatch},
                              {"query", Where(Json::array({Term("claim_id", request.claim_id),
                                                           Term("kind", request.kind),
                                                           Term("queue", request.queue)}))},
                              {"_source", false}}));
    std::vector<Record> taken;
    std::vector<std::string> ids;
    for (const Json& hit : hits) {
      ids.push_back(TextOf(hit, "_id"));
      if (ids.size() < kScanPage && &hit != &hits.back()) continue;
      MUSTER_ASSIGN(const Json found, Read(ids));
      for (const Json& document : found) {
        Record record = RecordOf(document);
        const std::string claim_id = TextOf(MemberOf(document, "_source"), "claim_id");
        if (record.due && claim_id == request.claim_id) taken.push_back(std::move(record));
      }
      ids.clear();
    }
    return taken;
  }

  std::shared_ptr<Candidates> CandidatesOf(const ClaimRequest& request) {
    std::lock_guard lock(queues_mutex_);
    // Queues in use live on. A dropped one costs one search.
    if (queues_.size() >= kMaxQueues) queues_.clear();
    auto& candidates = queues_[{request.kind, request.queue}];
    if (candidates == nullptr) candidates = std::make_shared<Candidates>(env_);
    return candidates;
  }

  // The index's last sequence number; 0 if unavailable. Read at most once per `max_age`.
  int64_t LastSeqNo(milliseconds max_age) {
    std::lock_guard lock(sign_mutex_);
    const MonoTime now = env_.MonoNow();
    if (sign_asked_ != MonoTime{} && now - sign_asked_ < max_age) return sign_;
    const auto answer =
        client_.Call({.target = "/" + alias_ +
                                "/_stats/docs?level=shards&filter_path=indices.*.shards.*.seq_no"});
    sign_asked_ = env_.MonoNow();
    if (!answer) return sign_ = 0;
    int64_t sum = 0;  // over all shards
    for (const Json& index : MemberOf(*answer, "indices")) {
      for (const Json& shard : MemberOf(index, "shards")) {
        for (const Json& copy : shard) sum += NumberOf(MemberOf(copy, "seq_no"), "max_seq_no");
      }
    }
    return sign_ = sum;
  }

  Env& env_;
  OpenSearchCluster client_;
  OpenSearchClock clock_;
  std::string alias_;
  std::string search_;
  std::atomic<uint64_t> own_changes_ = 0;

  std::mutex queues_mutex_;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<Candidates>> queues_;

  std::mutex sign_mutex_;
  MonoTime sign_asked_{};
  int64_t sign_ = 0;
};

}  // namespace

Result<std::unique_ptr<Store>> OpenOpenSearchStore(const net::OpenSearchEndpoint& endpoint,
                                                   const std::string& space, Env& env) {
  auto store = std::make_unique<OpenSearchStore>(endpoint, env);
  MUSTER_TRY(store->Open(space));
  return store;
}

}  // namespace muster::store
