#include "store/postgres/postgres_store.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "sql/postgres_pool.h"
#include "store/backends.h"
#include "store/postgres/postgres_due_floor.h"
#include "store/postgres/postgres_schema.h"
#include "store/postgres/postgres_statements.h"
#include "store/postgres/postgres_wakeups.h"
#include "store/record_rules.h"

namespace muster::store {
namespace {

sql::PgOptions SessionOptions(const std::string& uri, const PostgresLimits& limits) {
  return {uri, limits.connect_timeout, limits.call_timeout, PostgresSessionSettings()};
}

// Wake-ups are hints: closing the store must not wait long for them.
sql::PgOptions WakeupOptions(const std::string& uri, const PostgresLimits& limits) {
  constexpr milliseconds kPatience{2'000};
  return {uri, std::min(limits.connect_timeout, kPatience),
          std::min(limits.call_timeout, kPatience)};
}

Record RecordFrom(const sql::PgResult& result, int row, std::string_view kind) {
  Record record{.kind = std::string(kind),
                .queue = std::string(result.Text(row, 0)),
                .key = std::string(result.Text(row, 1)),
                .version = result.Int64(row, 2),
                .owner = std::string(result.Text(row, 4)),
                .epoch = result.Int64(row, 5),
                .attempt = result.Int32(row, 6),
                .body = std::string(result.Text(row, 7))};
  if (!result.IsNull(row, 3)) record.due = result.Time(row, 3);
  return record;
}

std::vector<Record> RecordsFrom(const sql::PgResult& result, std::string_view kind) {
  std::vector<Record> records;
  records.reserve(static_cast<size_t>(result.rows()));
  for (int row = 0; row < result.rows(); ++row) records.push_back(RecordFrom(result, row, kind));
  return records;
}

// In the statements' encoding; none: null.
std::optional<int64_t> DelayOf(Due due) {
  switch (due.kind) {
    case Due::Kind::kNever:
      return std::nullopt;
    case Due::Kind::kUnchanged:
      return -1;
    case Due::Kind::kAtOnce:
      return -2;
    case Due::Kind::kAfter:
      return due.delay.count();
  }
  return std::nullopt;
}

using Name = std::pair<std::string_view, std::string_view>;

Name NameOf(const Record& record) { return {record.kind, record.key}; }

// The changes of one kind within a Write, as arrays for one statement.
class ChangeArrays {
 public:
  ChangeArrays(const sql::PgStatement& statement, std::span<const Change> changes,
               std::vector<size_t> which, std::span<const int64_t> versions)
      : statement_(statement), changes_(changes), which_(std::move(which)) {
    size_t body_bytes = 0;
    for (const size_t i : which_) body_bytes += changes[i].record.body.size();
    using Element = sql::PgArray::Element;
    const size_t count = which_.size();
    sql::PgArray& kinds = Column(Element::kText, count);
    sql::PgArray& keys = Column(Element::kText, count);
    sql::PgArray& stored = Column(Element::kBigint, count);
    for (const size_t i : which_) {
      kinds.Text(changes[i].record.kind);
      keys.Text(changes[i].record.key);
      stored.Int64(versions[i]);
    }
    if (changes[which_.front()].op == Change::Op::kPut) {
      sql::PgArray& delays = Column(Element::kBigint, count);
      sql::PgArray& owners = Column(Element::kText, count);
      sql::PgArray& attempts = Column(Element::kInteger, count);
      sql::PgArray& bodies = Column(Element::kJson, count, body_bytes);
      for (const size_t i : which_) {
        const Record& record = changes[i].record;
        if (const auto delay = DelayOf(changes[i].due)) {
          delays.Int64(*delay);
        } else {
          delays.Null();
        }
        owners.Text(record.owner);
        attempts.Int32(record.attempt);
        bodies.Text(record.body);
      }
    }
    if (changes[which_.front()].record.version == 0) {
      sql::PgArray& queues = Column(Element::kText, count);
      for (const size_t i : which_) queues.Text(changes[i].record.queue);
    }
    for (const sql::PgArray& column : columns_) params_.Text(column.bytes());
  }

  sql::PgCall call() const { return {statement_, params_}; }

  // Marks what the statement reports as applied.
  void Answer(const sql::PgResult& result, std::span<const int64_t> new_versions,
              std::vector<Written>& answers) const {
    const auto apply = [&](size_t i) {
      answers[i] = {.applied = true, .version = new_versions[i]};
    };
    if (static_cast<size_t>(result.rows()) == which_.size()) {
      for (const size_t i : which_) apply(i);
      return;
    }
    for (int row = 0; row < result.rows(); ++row) {
      const Name name{result.Text(row, 0), result.Text(row, 1)};
      apply(*std::lower_bound(
          which_.begin(), which_.end(), name,
          [&](size_t i, const Name& wanted) { return NameOf(changes_[i].record) < wanted; }));
    }
  }

 private:
  sql::PgArray& Column(sql::PgArray::Element element, size_t count, size_t bytes = 0) {
    return columns_.emplace_back(element, count, bytes);
  }

  const sql::PgStatement& statement_;
  std::span<const Change> changes_;
  std::vector<size_t> which_;  // sorted by name
  std::deque<sql::PgArray> columns_;
  sql::PgParams params_;
};

class PostgresStore final : public Store {
 public:
  PostgresStore(const std::string& uri, const std::string& space, Env& env,
                const PostgresLimits& limits)
      : env_(env),
        statements_(space),
        pool_(SessionOptions(uri, limits), limits.connections),
        due_floor_(env),
        wakeups_(WakeupOptions(uri, limits), space, env) {}

  Status Prepare(const std::string& space) {
    MUSTER_ASSIGN(auto connection, pool_.Take());
    return MigratePostgres(*connection, space);
  }

  Result<std::optional<Record>> Get(std::string_view kind, std::string_view key) override {
    MUSTER_TRY(CheckKind(kind));
    MUSTER_TRY(CheckKey(key));
    MUSTER_ASSIGN(const auto result, Run(statements_.get, sql::PgParams().Text(kind).Text(key)));
    if (result.rows() == 0) return std::optional<Record>{};
    return std::optional<Record>(RecordFrom(result, 0, kind));
  }

  Result<std::vector<Record>> Scan(std::string_view kind, std::string_view prefix,
                                   std::string_view after, int limit) override {
    MUSTER_TRY(CheckScan(kind, prefix, after, limit));
    MUSTER_ASSIGN(
        const auto result,
        Run(statements_.scan, sql::PgParams().Text(kind).Text(prefix).Text(after).Int64(limit)));
    return RecordsFrom(result, kind);
  }

  Result<std::vector<Written>> Write(std::span<const Change> changes) override {
    MUSTER_TRY(CheckChanges(changes));
    if (changes.empty()) return std::vector<Written>{};
    const bool one_replaced =
        changes.size() == 1 && changes[0].op == Change::Op::kPut && changes[0].record.version != 0;
    auto written = one_replaced ? Replace(changes[0]) : WriteMany(changes);
    if (written) Announce(changes, *written);
    return written;
  }

  Result<std::vector<Record>> Claim(const ClaimRequest& request) override {
    MUSTER_TRY(CheckClaim(request));
    const bool by_key = !request.key.empty();
    if (!by_key && !request.repeat) return ClaimDue(request);
    sql::PgParams params;
    SetParams(request, params);
    const sql::PgStatement& statement = !by_key          ? statements_.claim_again
                                        : request.repeat ? statements_.claim_key_again
                                                         : statements_.claim_key;
    MUSTER_ASSIGN(const auto result, Run(statement, params));
    return RecordsFrom(result, request.kind);
  }

  Result<WallTime> Now() override {
    MUSTER_ASSIGN(const auto result, Run(statements_.now, sql::PgParams()));
    return result.Time(0, 0);
  }

  void Wait(std::string_view kind, milliseconds timeout, std::stop_token stop) override {
    wakeups_.Wait(kind, timeout, stop);
  }

 private:
  Result<std::vector<sql::PgResult>> Run(std::span<const sql::PgCall> calls) {
    return pool_.Run(calls, env_);
  }
  Result<sql::PgResult> Run(const sql::PgStatement& statement, const sql::PgParams& params) {
    return pool_.Run(statement, params, env_);
  }

  static void SetParams(const ClaimRequest& request, sql::PgParams& params) {
    params.Text(request.kind).Text(request.queue);
    request.key.empty() ? params.Int64(request.limit) : params.Text(request.key);
    params.Text(request.owner).Text(request.claim_id);
    params.Int64(request.lease.count()).Int64(request.max_lease.count());
    params.Int64(ClaimStep(request));
  }

  Result<std::vector<Record>> ClaimDue(const ClaimRequest& request) {
    const WallTime floor = due_floor_.Get(request.kind, request.queue);
    MUSTER_ASSIGN(auto records, ClaimDueFrom(floor, request));
    if (!records.empty() || floor == PostgresDueFloor::kNone) return records;
    return ClaimDueFrom(PostgresDueFloor::kNone, request);
  }

  Result<std::vector<Record>> ClaimDueFrom(WallTime floor, const ClaimRequest& request) {
    sql::PgParams params;
    SetParams(request, params);
    params.Time(floor);
    MUSTER_ASSIGN(const auto result, Run(statements_.claim, params));
    if (result.rows() > 0) due_floor_.Set(request.kind, request.queue, result.Time(0, 8));
    return RecordsFrom(result, request.kind);
  }

  Result<std::vector<Written>> Replace(const Change& change) {
    const Record& record = change.record;
    sql::PgParams params;
    params.Text(record.kind).Text(record.key).Int64(record.version);
    const auto delay = DelayOf(change.due);
    delay ? params.Int64(*delay) : params.Null();
    params.Text(record.owner).Int32(record.attempt).Text(record.body);
    MUSTER_ASSIGN(const auto result, Run(statements_.replace, params));
    if (result.affected() == 0) return std::vector<Written>{{}};
    return std::vector<Written>{{.applied = true, .version = record.version + 1}};
  }

  // At most three statements, one round trip, one transaction. Each locks its rows in name order,
  // so that two writers of the same records wait instead of deadlocking.
  Result<std::vector<Written>> WriteMany(std::span<const Change> changes) {
    std::vector<size_t> order(changes.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return NameOf(changes[a].record) < NameOf(changes[b].record);
    });
    std::vector<size_t> created, replaced, deleted;
    std::vector<int64_t> expected(changes.size());  // or a new record's first version
    std::vector<int64_t> following(changes.size());
    for (const size_t i : order) {
      const Change& change = changes[i];
      const int64_t version = change.record.version;
      const bool put = change.op == Change::Op::kPut;
      expected[i] = version != 0 ? version : FirstVersion(env_);
      following[i] = !put ? 0 : version != 0 ? version + 1 : expected[i];
      (!put ? deleted : version != 0 ? replaced : created).push_back(i);
    }
    std::deque<ChangeArrays> sorts;
    std::vector<sql::PgCall> calls;
    const auto add = [&](const sql::PgStatement& statement, std::vector<size_t>& which) {
      if (which.empty()) return;
      calls.push_back(sorts.emplace_back(statement, changes, std::move(which), expected).call());
    };
    add(statements_.create_many, created);
    add(statements_.replace_many, replaced);
    add(statements_.delete_many, deleted);
    MUSTER_ASSIGN(const auto results, Run(calls));
    std::vector<Written> answers(changes.size());
    for (size_t i = 0; i < sorts.size(); ++i) sorts[i].Answer(results[i], following, answers);
    return answers;
  }

  void Announce(std::span<const Change> changes, const std::vector<Written>& written) {
    std::string_view last;
    for (size_t i = 0; i < changes.size(); ++i) {
      if (!changes[i].due.HasCome() || !written[i].applied || changes[i].record.kind == last)
        continue;
      last = changes[i].record.kind;
      wakeups_.Announce(last);
    }
  }

  Env& env_;
  const PostgresStatements statements_;
  sql::PostgresPool pool_;
  PostgresDueFloor due_floor_;
  PostgresWakeups wakeups_;
};

}  // namespace

Result<std::unique_ptr<Store>> OpenPostgresStore(const std::string& uri, const std::string& space,
                                                 Env& env) {
  return OpenPostgresStore(uri, space, env, PostgresLimits{});
}

Result<std::unique_ptr<Store>> OpenPostgresStore(const std::string& uri, const std::string& space,
                                                 Env& env, const PostgresLimits& limits) {
  auto store = std::make_unique<PostgresStore>(uri, space, env, limits);
  MUSTER_TRY(store->Prepare(space));
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace muster::store
