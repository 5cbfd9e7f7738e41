#include "pipeline/postgres/postgres_progress.h"

#include <charconv>

#include "pipeline/flow/item_fence.h"
#include "sql/table_format.h"

namespace muster::pipeline {
namespace {

std::string TableName(const std::string& schema) {
  return (schema.empty() ? "" : sql::PgIdentifier(schema) + ".") + "muster_progress";
}

sql::PgStatement Read(std::string sql) { return {"", std::move(sql), false}; }

// Only the COMMIT that ends a transaction can have an unknown outcome.
sql::PgStatement Inside(std::string sql) { return Read(std::move(sql)); }

const sql::PgStatement kCommit{"", "COMMIT", true};

}  // namespace

PostgresProgress::PostgresProgress(const std::string& schema, Fence fence)
    : fence_(std::move(fence)),
      table_(TableName(schema)),
      where_(" WHERE run = " + sql::PgLiteral(fence_.run) +
             " AND item = " + sql::PgLiteral(fence_.item)),
      lock_sql_(
          "SELECT incarnation, epoch::text, holder, sealed::text, coalesce(progress::text, '')"
          " FROM " +
          table_ + where_ + " FOR UPDATE") {}

Status PostgresProgress::EnsureTable(sql::PgConnection& connection, const std::string& schema) {
  const std::string table = TableName(schema);
  const sql::PgParams none = {};
  MUSTER_ASSIGN(const bool there, sql::FindPgTable(connection, table, kProgressFormat));
  if (there) return {};
  // Two concurrent CREATE TABLE IF NOT EXISTS can fail.
  const sql::PgStatement lock = Inside("SELECT pg_advisory_xact_lock(hashtext('muster_progress'))");
  const sql::PgStatement create{
      "",
      "CREATE TABLE IF NOT EXISTS " + table +
          " (run text, item text, incarnation text NOT NULL,"
          " epoch bigint NOT NULL, holder text NOT NULL, sealed boolean NOT NULL DEFAULT false,"
          " progress json, holder_pid integer, holder_since timestamptz,"
          " updated timestamptz NOT NULL DEFAULT now(), " +
          sql::FormatColumn(kProgressFormat) +
          ","
          " PRIMARY KEY (run, item)) WITH (fillfactor = 50)",
      true};
  const sql::PgCall calls[] = {{lock, none}, {create, none}};
  MUSTER_TRY(connection.Execute(calls));
  return {};
}

Result<StoredFence> PostgresProgress::Take(sql::PgConnection& connection) const {
  const sql::PgParams none = {};
  sql::PgParams first;
  first.Text(fence_.run)
      .Text(fence_.item)
      .Text(fence_.incarnation)
      .Int64(fence_.epoch)
      .Text(fence_.holder);
  const sql::PgStatement begin = Inside("BEGIN");
  const sql::PgStatement patience = Inside("SET LOCAL lock_timeout = '500ms'");
  const sql::PgStatement insert = Inside("INSERT INTO " + table_ +
                                         " (run, item, incarnation, epoch, holder)"
                                         " VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING");
  const sql::PgStatement lock = Inside(lock_sql_);
  const sql::PgCall look[] = {{begin, none}, {patience, none}, {insert, first}, {lock, none}};
  auto answers = connection.Execute(look);
  Result<StoredFence> stored =
      answers ? Locked((*answers)[3], connection) : Result<StoredFence>(answers.error());
  if (stored) {
    if (auto open = CheckOpen(fence_, *stored, connection.Place()); !open) stored = open.error();
  }
  if (!stored) {
    if (!connection.lost()) MUSTER_TRY(connection.Execute(Inside("ROLLBACK"), none));
    return stored;
  }
  sql::PgParams holder;
  holder.Text(fence_.incarnation).Int64(fence_.epoch).Text(fence_.holder);
  const sql::PgStatement take =
      Inside("UPDATE " + table_ + " SET incarnation = $1, epoch = $2, holder = $3," +
             " updated = now(), holder_pid = pg_backend_pid(), holder_since = (SELECT "
             "backend_start FROM pg_stat_activity"
             " WHERE pid = pg_backend_pid())" +
             where_);
  const sql::PgCall taking[] = {{take, holder}, {kCommit, none}};
  MUSTER_TRY(connection.Execute(taking));
  stored->incarnation = fence_.incarnation;
  stored->epoch = fence_.epoch;
  stored->holder = fence_.holder;
  return stored;
}

Status PostgresProgress::EndEarlierHolder(sql::PgConnection& connection) const {
  sql::PgParams params;
  params.Int64(fence_.epoch).Text(fence_.incarnation).Text(fence_.holder);
  MUSTER_TRY(connection.Execute(
      Read("SELECT pg_terminate_backend(a.pid) FROM " + table_ +
           " p JOIN pg_stat_activity a ON a.pid = p.holder_pid AND a.backend_start = "
           "p.holder_since" +
           where_ +
           " AND (p.epoch < $1 OR p.epoch = $1 AND p.holder = $3 OR p.incarnation <> $2)"
           " AND a.pid <> pg_backend_pid()"),
      params));
  return {};
}

Result<StoredFence> PostgresProgress::Locked(const sql::PgResult& answer,
                                             const sql::PgConnection& connection) const {
  if (answer.rows() == 0) {
    return Error{Code::kConflict,
                 connection.Place() + ": the row of item " + fence_.item + " of run " + fence_.run +
                     " is gone from muster_progress",
                 "do not delete rows of a run while it is running"};
  }
  StoredFence stored{.incarnation = std::string(answer.Text(0, 0)),
                     .holder = std::string(answer.Text(0, 2)),
                     .sealed = answer.Text(0, 3) == "true",
                     .progress = std::string(answer.Text(0, 4))};
  const std::string_view epoch = answer.Text(0, 1);
  std::from_chars(epoch.data(), epoch.data() + epoch.size(), stored.epoch);
  return stored;
}

Status PostgresProgress::CommitWith(sql::PgConnection& connection,
                                    const std::string& progress) const {
  const sql::PgParams none = {};
  sql::PgParams params;
  params.Text(progress);
  const sql::PgStatement update{
      "progress", "UPDATE " + table_ + " SET progress = $1, updated = now()" + where_, false};
  const sql::PgCall calls[] = {{update, params}, {kCommit, none}};
  MUSTER_TRY(connection.Execute(calls));
  return {};
}

Status PostgresProgress::CommitSealed(sql::PgConnection& connection) const {
  const sql::PgParams none = {};
  const sql::PgStatement update =
      Inside("UPDATE " + table_ + " SET sealed = true, updated = now()" + where_);
  const sql::PgCall calls[] = {{update, none}, {kCommit, none}};
  MUSTER_TRY(connection.Execute(calls));
  return {};
}

Status PostgresProgress::MakeDurable(sql::PgConnection& connection) const {
  MUSTER_TRY(connection.Execute(
      sql::PgStatement{"", "UPDATE " + table_ + " SET updated = now()" + where_, true},
      sql::PgParams()));
  return {};
}

Status PostgresProgress::Forget(sql::PgConnection& connection) const {
  MUSTER_TRY(connection.Execute(sql::PgStatement{"", "DELETE FROM " + table_ + where_, true},
                                sql::PgParams()));
  return {};
}

}  // namespace muster::pipeline
