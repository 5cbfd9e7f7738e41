#include <optional>

#include "sql/postgres.h"
#include "sql/table_format.h"
#include "task/call/sql_call.h"
#include "task/data/postgres_fence.h"

namespace muster::task {
namespace {

constexpr const char* kPrepared = "muster_task_call";

Result<std::unique_ptr<sql::PgConnection>> Open(const SqlCall& call) {
  return sql::PgConnection::Open({.uri = call.place, .call_timeout = call.timeout});
}

Result<sql::PgResult> Say(sql::PgConnection& connection, std::string sql, bool writes = true) {
  const sql::PgStatement statement{.name = "", .sql = std::move(sql), .writes = writes};
  return connection.Execute(statement, sql::PgParams());
}

// A literal without a type: the server infers it.
std::string Literal(const Json& value) {
  if (value.is_null()) return "NULL";
  return sql::PgLiteral(value.is_string() ? value.get<std::string>() : ToJsonText(value));
}

// A statement that the server does not understand is the caller's mistake.
Error Refused(Error error) {
  if (error.code == Code::kInternal && error.message.find("[42") != std::string::npos) {
    error.code = Code::kInvalid;
  }
  return error;
}

// Binds parameters with the server's own PREPARE, which infers their types.
Result<sql::PgResult> RunPrepared(sql::PgConnection& connection, const std::string& sql,
                                  const Json& parameters, bool writes) {
  MUSTER_TRY(Say(connection, "PREPARE " + std::string(kPrepared) + " AS " + sql, false));
  std::string values;
  for (const Json& value : parameters) values += (values.empty() ? "" : ", ") + Literal(value);
  return Say(connection, "EXECUTE " + std::string(kPrepared) + "(" + values + ")", writes);
}

Result<sql::PgResult> RunWith(sql::PgConnection& connection, const std::string& sql,
                              const Json& parameters, bool writes) {
  auto result = parameters.empty() ? Say(connection, sql, writes)
                                   : RunPrepared(connection, sql, parameters, writes);
  if (!result) return Refused(result.error());
  return result;
}

Result<std::optional<int64_t>> Earlier(sql::PgConnection& connection, const std::string& token) {
  MUSTER_ASSIGN(
      const sql::PgResult found,
      Say(connection, "SELECT changed FROM muster_task WHERE token = " + sql::PgLiteral(token),
          false));
  if (found.rows() == 0) return std::optional<int64_t>();
  return std::optional<int64_t>(found.Int64(0, 0));
}

// CREATE TABLE on every call would serialise callers.
Status MakeTable(sql::PgConnection& connection) {
  MUSTER_ASSIGN(const bool there,
                sql::FindPgTable(connection, std::string(kTaskFormat.name), kTaskFormat));
  if (there) return {};
  auto made = Say(connection,
                  "CREATE TABLE IF NOT EXISTS muster_task "
                  "(token text PRIMARY KEY, changed bigint NOT NULL, " +
                      sql::FormatColumn(kTaskFormat) + ")");
  // A concurrent caller created it.
  if (!made && made.error().code != Code::kConflict) return std::move(made).error();
  return {};
}

}  // namespace

Result<Json> QueryPostgres(const SqlCall& call) {
  MUSTER_ASSIGN(auto connection, Open(call));
  const std::string limit = std::to_string(kMaxSqlRows + 1);
  std::string sql = call.sql;
  sql.erase(sql.find_last_not_of(" \t\r\n;") + 1);
  // The server converts its types to JSON. The newline ends a trailing comment.
  MUSTER_ASSIGN(const sql::PgResult result,
                RunWith(*connection,
                        "SELECT coalesce(json_agg(row_to_json(t.*)), '[]')::text FROM (SELECT * "
                        "FROM (" +
                            sql + "\n) q LIMIT " + limit + ") t",
                        call.parameters, false));
  return ParseJson(result.Text(0, 0), "the rows");
}

Result<int64_t> ExecutePostgres(const SqlCall& call, Env& env, const OnWait& say,
                                const std::stop_token& stop) {
  MUSTER_ASSIGN(auto connection, Open(call));
  MUSTER_TRY(MakeTable(*connection));
  PostgresFence fence(FenceOf(call), env, say);
  MUSTER_ASSIGN(auto done, fence.Take(*connection, stop));
  if (done) return ChangedIn(*done);
  if (stop.stop_requested()) return Error{Code::kCancelled, "stopped"};
  MUSTER_TRY(Say(*connection, "BEGIN", false));
  // Until the end: no later try can begin meanwhile, and if one has begun, this one changes
  // nothing.
  MUSTER_TRY(fence.Lock(*connection));
  MUSTER_ASSIGN(const std::optional<int64_t> earlier, Earlier(*connection, call.token));
  if (earlier) return *earlier;
  MUSTER_ASSIGN(const sql::PgResult result, RunWith(*connection, call.sql, call.parameters, false));
  const int64_t changed = result.affected();
  MUSTER_TRY(Say(*connection,
                 "INSERT INTO muster_task (token, changed) VALUES (" + sql::PgLiteral(call.token) +
                     ", " + std::to_string(changed) + ")",
                 false));
  const Status committed = fence.Commit(*connection, std::to_string(changed));
  if (committed) return changed;
  if (committed.error().code != Code::kUnknownOutcome) return committed.error();
  // The server may still be at it: from here on it has committed, or cannot any more.
  auto again = Open(call);
  if (!again) return committed.error();
  auto found = fence.Take(**again, stop);
  if (!found) return committed.error();
  if (*found) return ChangedIn(**found);
  return Error{Code::kUnavailable, "the connection was lost, and nothing was committed"};
}

}  // namespace muster::task
