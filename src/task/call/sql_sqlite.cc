#include <optional>

#include "core/base64.h"
#include "sql/sqlite.h"
#include "sql/table_format.h"
#include "task/call/sql_call.h"
#include "task/data/sqlite_fence.h"

namespace muster::task {
namespace {

Result<std::unique_ptr<sql::SqliteDb>> Open(const SqlCall& call) {
  return sql::SqliteDb::Open(call.place, sql::SqliteDb::Mode::kExisting,
                             std::chrono::milliseconds(5'000));
}

// `texts` holds the bound strings: it must outlive the statement.
void BindAll(sql::SqliteStatement& statement, const Json& parameters,
             std::vector<std::string>& texts) {
  texts.reserve(parameters.size());
  int index = 0;
  for (const Json& value : parameters) {
    ++index;
    if (value.is_null()) {
      statement.BindAt(index, nullptr);
    } else if (value.is_boolean()) {
      statement.BindAt(index, value.get<bool>() ? 1 : 0);
    } else if (value.is_number_integer()) {
      statement.BindAt(index, value.get<int64_t>());
    } else if (value.is_number()) {
      statement.BindAt(index, value.get<double>());
    } else {
      texts.push_back(value.is_string() ? value.get<std::string>() : ToJsonText(value));
      statement.BindAt(index, std::string_view(texts.back()));
    }
  }
}

// A statement that SQLite does not understand is the caller's mistake.
Result<sql::SqliteStatement> PrepareGiven(sql::SqliteDb& db, const std::string& sql) {
  auto statement = db.Prepare(sql);
  if (statement || statement.error().code != Code::kInternal) return statement;
  return Error{Code::kInvalid, statement.error().message, statement.error().hint};
}

Json ValueOf(const sql::SqliteStatement& statement, int column) {
  switch (statement.TypeOf(column)) {
    case sql::SqliteStatement::Type::kNull:
      return nullptr;
    case sql::SqliteStatement::Type::kInteger:
      return statement.Int(column);
    case sql::SqliteStatement::Type::kFloat:
      return statement.Double(column);
    case sql::SqliteStatement::Type::kText:
      return std::string(statement.Text(column));
    case sql::SqliteStatement::Type::kBlob:
      return EncodeBase64(statement.Blob(column));
  }
  return nullptr;
}

Result<std::optional<int64_t>> Earlier(sql::SqliteDb& db, const std::string& token) {
  MUSTER_ASSIGN(auto find, db.Prepare("SELECT changed FROM muster_task WHERE token = ?1"));
  find.Bind(token);
  MUSTER_ASSIGN(const bool found, find.Step());
  if (!found) return std::optional<int64_t>();
  return std::optional<int64_t>(find.Int(0));
}

Result<int64_t> ExecuteOnce(sql::SqliteDb& db, const SqlCall& call, SqliteFence& fence) {
  MUSTER_ASSIGN(auto done, fence.Take(db));
  if (done) return ChangedIn(*done);
  MUSTER_ASSIGN(auto transaction, sql::SqliteTransaction::Begin(db));
  MUSTER_TRY(fence.Check(db));
  MUSTER_TRY(
      db.Execute("CREATE TABLE IF NOT EXISTS muster_task "
                 "(token TEXT PRIMARY KEY, changed INTEGER NOT NULL, " +
                 sql::FormatColumn(kTaskFormat) + ") WITHOUT ROWID"));
  MUSTER_TRY(sql::CheckSqliteTable(db, kTaskFormat));
  MUSTER_ASSIGN(const std::optional<int64_t> earlier, Earlier(db, call.token));
  if (earlier) return *earlier;
  int64_t changed = 0;
  {
    std::vector<std::string> texts;
    MUSTER_ASSIGN(auto statement, PrepareGiven(db, call.sql));
    BindAll(statement, call.parameters, texts);
    MUSTER_ASSIGN(const int64_t before, db.QueryInt("SELECT total_changes()"));
    while (true) {
      MUSTER_ASSIGN(const bool row, statement.Step());
      if (!row) break;
    }
    MUSTER_ASSIGN(const int64_t after, db.QueryInt("SELECT total_changes()"));
    changed = after - before;
  }
  MUSTER_ASSIGN(auto remember,
                db.Prepare("INSERT INTO muster_task (token, changed) VALUES (?1, ?2)"));
  MUSTER_TRY(remember.Bind(call.token, changed).Run());
  MUSTER_TRY(fence.Keep(db, std::to_string(changed)));
  MUSTER_TRY(transaction.Commit());
  return changed;
}

}  // namespace

Result<Json> QuerySqlite(const SqlCall& call) {
  MUSTER_ASSIGN(auto db, Open(call));
  MUSTER_TRY(db->Execute("PRAGMA query_only = ON"));
  std::vector<std::string> texts;
  MUSTER_ASSIGN(auto statement, PrepareGiven(*db, call.sql));
  BindAll(statement, call.parameters, texts);
  Json rows = Json::array();
  while (true) {
    MUSTER_ASSIGN(const bool more, statement.Step());
    if (!more) return rows;
    if (static_cast<int64_t>(rows.size()) > kMaxSqlRows) return rows;
    Json row = Json::object();
    for (int column = 0; column < statement.columns(); ++column) {
      row[std::string(statement.ColumnName(column))] = ValueOf(statement, column);
    }
    rows.push_back(std::move(row));
  }
}

Result<int64_t> ExecuteSqlite(const SqlCall& call) {
  MUSTER_ASSIGN(auto db, Open(call));
  SqliteFence fence(FenceOf(call));
  auto changed = ExecuteOnce(*db, call, fence);
  if (changed || changed.error().code != Code::kUnknownOutcome) return changed;
  db.reset();
  auto again = Open(call);
  if (!again) return changed;
  auto found = fence.Take(**again);
  if (!found || !*found) return changed;
  return ChangedIn(**found);
}

}  // namespace muster::task
