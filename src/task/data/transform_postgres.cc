#include "core/number.h"
#include "core/wait_watch.h"
#include "sql/postgres.h"
#include "sql/postgres_copy.h"
#include "sql/postgres_table.h"
#include "task/data/postgres_fence.h"
#include "task/data/transform_target.h"

namespace muster::task {
namespace {

constexpr size_t kSendBytes = size_t{256} << 10;
// For one statement: loading millions of rows into an indexed table takes long.
constexpr std::chrono::hours kStatementTime{4};

// For every foreign key of a table: the parent's name for messages and for SQL, the join condition,
// the condition that the child's columns are not null, and those columns with their values.
constexpr const char* kForeignKeys = R"(
SELECT n.nspname || '.' || p.relname, quote_ident(n.nspname) || '.' || quote_ident(p.relname),
       string_agg('child.' || quote_ident(a.attname) || ' = parent.' || quote_ident(b.attname),
                  ' AND ' ORDER BY k.place),
       string_agg('child.' || quote_ident(a.attname) || ' IS NOT NULL', ' AND ' ORDER BY k.place),
       string_agg(quote_literal(a.attname || ' = ') || ' || quote_literal(child.'
                  || quote_ident(a.attname) || '::text)', ', ' ORDER BY k.place)
FROM pg_constraint c
JOIN pg_class p ON p.oid = c.confrelid
JOIN pg_namespace n ON n.oid = p.relnamespace
CROSS JOIN LATERAL unnest(c.conkey, c.confkey) WITH ORDINALITY AS k(child, parent, place)
JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.child
JOIN pg_attribute b ON b.attrelid = c.confrelid AND b.attnum = k.parent
WHERE c.contype = 'f' AND c.conrelid = $1::text::regclass
GROUP BY c.oid, n.nspname, p.relname ORDER BY c.conname)";

// A value in COPY's text format.
void AppendCopyValue(std::string& line, const sql::DuckValue& value) {
  const auto* text = std::get_if<std::string_view>(&value);
  if (text == nullptr) {
    line += "\\N";
    return;
  }
  for (const char c : *text) {
    switch (c) {
      case '\\':
        line += "\\\\";
        break;
      case '\t':
        line += "\\t";
        break;
      case '\n':
        line += "\\n";
        break;
      case '\r':
        line += "\\r";
        break;
      default:
        line += c;
    }
  }
}

Error Named(const Error& error) {
  if (error.message.find("[55P03]") != std::string::npos) {
    return Error{error.code, error.message,
                 "another session has held a lock on the table for ten minutes: end it"};
  }
  if (error.message.find("[23503]") != std::string::npos) {
    return Error{Code::kConflict, std::string(kForeignKeyViolated) + error.message,
                 kForeignKeyHint};
  }
  // A row that breaks another constraint is the data's fault, not a concurrent change.
  if (error.message.find("[23") != std::string::npos) {
    return Error{Code::kInvalid, error.message, error.hint};
  }
  return error;
}

class PostgresTarget : public TransformTarget {
 public:
  PostgresTarget(std::unique_ptr<sql::PgConnection> connection, std::string uri, int32_t pid,
                 Env& env, OnWait on_wait)
      : connection_(std::move(connection)),
        uri_(std::move(uri)),
        pid_(pid),
        env_(env),
        on_wait_(std::move(on_wait)) {}

  Result<std::optional<std::string>> Take(const LoadFence& fence,
                                          const std::stop_token& stop) override {
    fence_.emplace(fence, env_, on_wait_);
    return fence_->Take(*connection_, stop);
  }

  // Asks for the table's size, and so waits for its locks.
  Result<TargetTable> Describe(const std::string& schema, const std::string& table) override {
    StartWatch();
    MUSTER_ASSIGN(const sql::PgTable found, sql::DescribePgTable(*connection_, {schema, table}));
    TargetTable target{.name = schema.empty() ? table : schema + "." + table,
                       .sql = found.sql_name,
                       .columns = {},
                       .key = found.key};
    for (const auto& column : found.columns) {
      if (!column.generated) target.columns.push_back(column.name);
    }
    return target;
  }

  // Through a temporary table: COPY cannot replace rows.
  Result<int64_t> Load(sql::DuckDb& db, const RowsToLoad& rows, const TargetTable& table,
                       const std::stop_token& stop) override {
    MUSTER_TRY(BeginOnce());
    const std::string columns = ColumnList(rows.columns, sql::PgIdentifier);
    MUSTER_TRY(Say("CREATE TEMPORARY TABLE muster_load ON COMMIT DROP AS SELECT " + columns +
                   " FROM " + table.sql + " WITH NO DATA"));
    MUSTER_ASSIGN(
        sql::PgCopyIn copy,
        sql::PgCopyIn::Start(*connection_, "COPY muster_load (" + columns + ") FROM STDIN"));
    MUSTER_TRY(copy.Ready());
    if (Status sent = Send(db, rows, copy, stop); !sent) {
      static_cast<void>(copy.Abandon("cannot read the rows"));
      return sent.error();
    }
    MUSTER_ASSIGN(const auto refusal, copy.End());
    if (refusal)
      return Error{sql::PgCodeOf(refusal->sqlstate), table.name + ": " + refusal->message};
    MUSTER_ASSIGN(const sql::PgResult inserted,
                  Ask("INSERT INTO " + table.sql + " (" + columns + ") SELECT " + columns +
                      " FROM muster_load" + UpsertClause(rows, table, sql::PgIdentifier)));
    MUSTER_TRY(Say("DROP TABLE muster_load"));
    return inserted.affected();
  }

  Status Commit(const std::string& result) override {
    MUSTER_TRY(BeginOnce());
    const Status committed = fence_->Commit(*connection_, result);
    watch_.reset();
    return committed ? Status() : Status(Named(committed.error()));
  }

  Result<KeyCheck> CheckKeys(const TargetTable& table) override {
    StartWatch();
    sql::PgParams params;
    params.Text(table.sql);
    const sql::PgStatement statement{
        .name = "", .sql = kForeignKeys, .writes = false, .text_results = true};
    MUSTER_ASSIGN(const sql::PgResult keys, connection_->Execute(statement, params));
    KeyCheck check{.keys = keys.rows(), .violations = {}};
    for (int i = 0; i < keys.rows(); ++i) {
      const auto text = [&](int column) { return std::string(keys.Text(i, column)); };
      MUSTER_ASSIGN(const sql::PgResult orphans,
                    Ask("SELECT count(*), min(concat_ws(', ', " + text(4) + ")) FROM " + table.sql +
                        " AS child WHERE " + text(3) + " AND NOT EXISTS (SELECT FROM " + text(1) +
                        " AS parent WHERE " + text(2) + ")"));
      const auto rows = ParseNumber<int64_t>(orphans.Text(0, 0));
      if (!rows) return Error{Code::kInternal, "a row count is not a number"};
      if (*rows == 0) continue;
      check.violations.push_back({.child = table.name,
                                  .parent = text(0),
                                  .rows = *rows,
                                  .example = std::string(orphans.Text(0, 1))});
    }
    return check;
  }

 private:
  // Holds the lock on the fence's row until the end: through it another session finds, and can
  // terminate, the session of a suspended process.
  Status BeginOnce() {
    if (begun_) return {};
    StartWatch();
    MUSTER_TRY(Say("BEGIN"));
    begun_ = true;
    return fence_->Lock(*connection_);
  }

  // Started before the first statement that may wait for another session; runs until the load is
  // committed.
  void StartWatch() {
    if (watch_) return;
    watch_ = std::make_unique<WaitWatch>([this] { return Blocker(); }, on_wait_, env_);
  }

  // Called on the watch's thread, with a connection of its own.
  std::string Blocker() {
    if (!looking_ || !looking_->Usable()) {
      auto opened = sql::PgConnection::Open({.uri = uri_});
      if (!opened) return {};
      looking_ = *std::move(opened);
    }
    return DescribeBlocker(*looking_, pid_).value_or("");
  }

  Status Say(std::string sql) {
    auto said = Ask(std::move(sql));
    return said ? Status() : Status(said.error());
  }

  Result<sql::PgResult> Ask(std::string sql) {
    const sql::PgStatement statement{
        .name = "", .sql = std::move(sql), .writes = false, .text_results = true};
    auto answer = connection_->Execute(statement, sql::PgParams());
    if (!answer) return Named(answer.error());
    return answer;
  }

  static Status Send(sql::DuckDb& db, const RowsToLoad& rows, sql::PgCopyIn& copy,
                     const std::stop_token& stop) {
    std::string lines;
    const auto add = [&](std::span<const sql::DuckValue> values) -> Status {
      for (size_t i = 0; i < values.size(); ++i) {
        if (i > 0) lines += '\t';
        AppendCopyValue(lines, values[i]);
      }
      lines += '\n';
      if (lines.size() < kSendBytes) return {};
      MUSTER_TRY(copy.Send(lines));
      lines.clear();
      return {};
    };
    MUSTER_TRY(ForEachRow(db, rows, ColumnAsText, stop, add));
    return copy.Send(lines);
  }

  const std::unique_ptr<sql::PgConnection> connection_;
  const std::string uri_;
  const int32_t pid_;
  Env& env_;
  const OnWait on_wait_;
  std::optional<PostgresFence> fence_;
  bool begun_ = false;
  std::unique_ptr<sql::PgConnection> looking_;  // used by the watch
  std::unique_ptr<WaitWatch> watch_;            // last: uses the other members
};

}  // namespace

Result<std::unique_ptr<TransformTarget>> OpenPostgresTarget(const std::string& uri, Env& env,
                                                            const OnWait& on_wait) {
  MUSTER_ASSIGN(auto connection, sql::PgConnection::Open(
                                     {.uri = uri,
                                      .call_timeout = kStatementTime,
                                      .settings = {{"idle_in_transaction_session_timeout", "60s"},
                                                   {"lock_timeout", "10min"}}}));
  const sql::PgStatement ask{.name = "", .sql = "SELECT pg_backend_pid()", .writes = false};
  MUSTER_ASSIGN(const sql::PgResult pid, connection->Execute(ask, sql::PgParams()));
  return std::make_unique<PostgresTarget>(std::move(connection), uri, pid.Int32(0, 0), env,
                                          on_wait);
}

}  // namespace muster::task
