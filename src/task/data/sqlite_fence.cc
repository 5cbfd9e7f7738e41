#include "task/data/sqlite_fence.h"

#include "sql/table_format.h"

namespace muster::task {

Result<StoredLoad> SqliteFence::Read(sql::SqliteDb& db) const {
  MUSTER_ASSIGN(auto find,
                db.Prepare("SELECT attempt, epoch, call, result, run FROM muster_transform "
                           "WHERE task = ?1"));
  find.Bind(fence_.task);
  MUSTER_ASSIGN(const bool found, find.Step());
  StoredLoad stored;
  if (!found) return stored;
  stored.attempt = find.Int(0);
  stored.epoch = find.Int(1);
  stored.call = find.Text(2);
  stored.run = find.Text(4);
  if (!find.IsNull(3)) stored.result = std::string(find.Text(3));
  return stored;
}

Result<std::optional<std::string>> SqliteFence::Take(sql::SqliteDb& db) {
  MUSTER_ASSIGN(auto transaction, sql::SqliteTransaction::Begin(db));
  MUSTER_TRY(
      db.Execute("CREATE TABLE IF NOT EXISTS muster_transform (task TEXT PRIMARY KEY, run TEXT NOT "
                 "NULL, attempt "
                 "INTEGER NOT NULL, epoch INTEGER NOT NULL, call TEXT NOT NULL, result TEXT, "
                 "updated TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, " +
                 sql::FormatColumn(kTransformFormat) + ") WITHOUT ROWID"));
  MUSTER_TRY(sql::CheckSqliteTable(db, kTransformFormat));
  MUSTER_ASSIGN(const StoredLoad stored, Read(db));
  MUSTER_ASSIGN(auto result, CheckOpen(fence_, stored));
  if (result) return result;
  epoch_ = stored.epoch + 1;
  MUSTER_ASSIGN(auto take, db.Prepare("INSERT OR REPLACE INTO muster_transform (task, run, "
                                      "attempt, epoch, call) VALUES (?1, ?2, ?3, ?4, ?5)"));
  MUSTER_TRY(take.Bind(fence_.task, fence_.run, fence_.attempt, epoch_, fence_.call).Run());
  MUSTER_TRY(transaction.Commit());
  return result;
}

Status SqliteFence::Check(sql::SqliteDb& db) const {
  MUSTER_ASSIGN(const StoredLoad stored, Read(db));
  return CheckHeld(fence_, epoch_, stored);
}

Status SqliteFence::Keep(sql::SqliteDb& db, const std::string& result) const {
  MUSTER_ASSIGN(auto keep, db.Prepare("UPDATE muster_transform SET result = ?1, updated = "
                                      "CURRENT_TIMESTAMP WHERE task = ?2"));
  return keep.Bind(result, fence_.task).Run();
}

}  // namespace muster::task
