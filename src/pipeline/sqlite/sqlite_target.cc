#include "pipeline/sqlite/sqlite_target.h"

#include "pipeline/flow/item_fence.h"

namespace muster::pipeline {
namespace {

constexpr const char* kOfTable = " FROM muster_progress WHERE run = '' AND item = ?";

}  // namespace

Status SqliteTarget::Mark() {
  MUSTER_ASSIGN(sql::SqliteTransaction transaction, sql::SqliteTransaction::Begin(db_));
  MUSTER_ASSIGN(const bool lost, WasEmptied());
  if (lost) {
    MUSTER_ASSIGN(sql::SqliteStatement forget, db_.Prepare(std::string("DELETE") + kOfTable));
    MUSTER_TRY(forget.Bind(table_).Run());
  }
  MUSTER_ASSIGN(
      sql::SqliteStatement mark,
      db_.Prepare("INSERT INTO muster_progress (run, item, incarnation, epoch, holder)"
                  " VALUES ('', ?, lower(hex(randomblob(16))), 0, '') ON CONFLICT DO NOTHING"));
  MUSTER_TRY(mark.Bind(table_).Run());
  return transaction.Commit();
}

Result<std::string> SqliteTarget::Identity() {
  MUSTER_ASSIGN(sql::SqliteStatement tables,
                db_.Prepare("SELECT count(*) FROM sqlite_schema WHERE type IN ('table', 'view')"
                            " AND lower(name) IN (?, 'muster_progress')"));
  tables.Bind(table_);
  MUSTER_ASSIGN(const bool counted, tables.Step());
  if (!counted || tables.Int(0) < 2) {
    return Error{Code::kNotFound,
                 "the SQLite file has no table '" + table_ + "' that documents were written to"};
  }
  tables.Reset();
  MUSTER_ASSIGN(const bool lost, WasEmptied());
  if (lost) {
    return Error{Code::kNotFound,
                 "table '" + table_ + "' is empty, though documents were written to it"};
  }
  MUSTER_ASSIGN(sql::SqliteStatement mark,
                db_.Prepare(std::string("SELECT incarnation") + kOfTable));
  mark.Bind(table_);
  MUSTER_ASSIGN(const bool there, mark.Step());
  return there ? std::string(mark.Text(0)) : std::string();
}

Status SqliteTarget::CheckBefore() {
  MUSTER_ASSIGN(const bool lost, WasEmptied());
  if (!lost) return {};
  return Error{Code::kIncompatible,
               "table '" + table_ +
                   "' has lost the documents that were written to it: it was "
                   "emptied, or dropped and created again",
               kLostTargetHint};
}

Status SqliteTarget::NoteAfter(const Batch& batch) {
  if (batch.documents.empty()) return {};
  // The whole batch may have been refused, or may have deleted the last document.
  MUSTER_ASSIGN(const bool empty, IsEmpty());
  return SetFilled(!empty);
}

Result<bool> SqliteTarget::WasEmptied() {
  MUSTER_ASSIGN(sql::SqliteStatement filled, db_.Prepare(std::string("SELECT sealed") + kOfTable));
  filled.Bind(table_);
  MUSTER_ASSIGN(const bool there, filled.Step());
  if (!there || filled.Int(0) == 0) return false;
  filled.Reset();
  return IsEmpty();
}

Result<bool> SqliteTarget::IsEmpty() {
  MUSTER_ASSIGN(const int64_t rows, db_.QueryInt("SELECT EXISTS (SELECT 1 FROM " +
                                                 sql::SqliteIdentifier(table_) + ")"));
  return rows == 0;
}

Status SqliteTarget::SetFilled(bool filled) {
  MUSTER_ASSIGN(sql::SqliteStatement set,
                db_.Prepare("UPDATE muster_progress SET sealed = ?2"
                            " WHERE run = '' AND item = ?1 AND sealed <> ?2"));
  return set.Bind(table_, filled ? 1 : 0).Run();
}

}  // namespace muster::pipeline
