#include "pipeline/sqlite/sqlite_writer.h"

#include <algorithm>
#include <utility>

#include "core/backoff.h"
#include "sql/table_format.h"

namespace muster::pipeline {
namespace {

using namespace std::chrono_literals;

constexpr auto kLongestOutage = 120s;  // that a write will sit out
constexpr Backoff::Pauses kPauses{.first = 50ms, .longest = 200ms};
constexpr const char* kWhere = " WHERE run = ?1 AND item = ?2";

bool IsAboutARow(Code code) { return code == Code::kInvalid || code == Code::kConflict; }

}  // namespace

SqliteWriter::SqliteWriter(Env& env, std::unique_ptr<sql::SqliteDb> db, std::string place,
                           sql::SqliteTable table, Misfits misfits, Fence fence)
    : env_(env),
      db_(std::move(db)),
      place_(std::move(place)),
      fence_(std::move(fence)),
      target_(*db_, table.name),
      rows_(*db_, std::move(table), ReplacesRows(fence_), misfits) {}

Result<std::unique_ptr<SqliteWriter>> SqliteWriter::Open(Env& env,
                                                         std::unique_ptr<sql::SqliteDb> db,
                                                         std::string place, sql::SqliteTable table,
                                                         Misfits misfits, Fence fence) {
  // Commits reach the disk in Flush; until then they survive a process crash but not a power
  // failure.
  MUSTER_TRY(db->Execute("PRAGMA synchronous=NORMAL"));
  std::unique_ptr<SqliteWriter> writer(new SqliteWriter(
      env, std::move(db), std::move(place), std::move(table), misfits, std::move(fence)));
  MUSTER_TRY(writer->Take());
  MUSTER_ASSIGN(writer->known_, ProgressOf(writer->stored_));
  return writer;
}

Status SqliteWriter::EnsureProgressTable(sql::SqliteDb& db) {
  MUSTER_TRY(db.Execute(
      "CREATE TABLE IF NOT EXISTS muster_progress (run TEXT NOT NULL, item TEXT NOT NULL,"
      " incarnation TEXT NOT NULL, epoch INTEGER NOT NULL, holder TEXT NOT NULL,"
      " sealed INTEGER NOT NULL DEFAULT 0, progress TEXT, updated TEXT NOT NULL DEFAULT "
      "(datetime('now')), " +
      sql::FormatColumn(kProgressFormat) + ", PRIMARY KEY (run, item)) STRICT, WITHOUT ROWID"));
  return sql::CheckSqliteTable(db, kProgressFormat);
}

Result<std::optional<StoredFence>> SqliteWriter::Stored() {
  MUSTER_ASSIGN(sql::SqliteStatement select,
                db_->Prepare(std::string("SELECT incarnation, epoch, holder, sealed,"
                                         " coalesce(progress, '') FROM muster_progress") +
                             kWhere));
  select.Bind(fence_.run, fence_.item);
  MUSTER_ASSIGN(const bool there, select.Step());
  if (!there) return std::nullopt;
  return StoredFence{.incarnation = std::string(select.Text(0)),
                     .epoch = select.Int(1),
                     .holder = std::string(select.Text(2)),
                     .sealed = select.Int(3) != 0,
                     .progress = std::string(select.Text(4))};
}

Status SqliteWriter::Take() {
  MUSTER_ASSIGN(sql::SqliteTransaction transaction, sql::SqliteTransaction::Begin(*db_));
  MUSTER_ASSIGN(const auto stored, Stored());
  if (stored) {
    MUSTER_TRY(CheckOpen(fence_, *stored, place_));
    stored_ = *stored;
  }
  MUSTER_ASSIGN(sql::SqliteStatement put,
                db_->Prepare("INSERT INTO muster_progress (run, item, incarnation, epoch, holder)"
                             " VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO UPDATE SET"
                             " incarnation = ?3, epoch = ?4, holder = ?5,"
                             " updated = datetime('now')"));
  MUSTER_TRY(
      put.Bind(fence_.run, fence_.item, fence_.incarnation, fence_.epoch, fence_.holder).Run());
  MUSTER_TRY(transaction.Commit());
  stored_.incarnation = fence_.incarnation;
  stored_.epoch = fence_.epoch;
  stored_.holder = fence_.holder;
  return {};
}

Status SqliteWriter::Store(const std::string& column, std::string_view value) {
  MUSTER_ASSIGN(sql::SqliteStatement update,
                db_->Prepare("UPDATE muster_progress SET " + column +
                             " = ?3, updated = datetime('now')" + kWhere));
  return update.Bind(fence_.run, fence_.item, value).Run();
}

Result<std::vector<Refused>> SqliteWriter::Write(const Batch& batch, const Progress& after,
                                                 const Patience& patience) {
  const MonoTime deadline = std::min(patience.deadline, env_.MonoNow() + kLongestOutage);
  StartRecording();
  if (!rows_.HasKey() && !batch.documents.empty()) WarnOfTwoVersions(fence_, rows_.table());
  Backoff backoff(env_, patience.stop, kPauses);
  for (;;) {
    auto refused = TryWrite(batch, after);
    const bool again = !refused && (refused.error().code == Code::kUnavailable ||
                                    refused.error().code == Code::kUnknownOutcome);
    if (!again || !backoff.PauseBefore(deadline)) return refused;
  }
}

Result<std::vector<Refused>> SqliteWriter::TryWrite(const Batch& batch, const Progress& after) {
  MUSTER_ASSIGN(sql::SqliteTransaction transaction, sql::SqliteTransaction::Begin(*db_));
  MUSTER_ASSIGN(const auto stored, Stored());
  if (!stored) {
    return Error{Code::kConflict,
                 place_ + ": the row of item " + fence_.item + " is gone from muster_progress",
                 "do not delete rows of a run while it is running"};
  }
  MUSTER_TRY(CheckWrite(fence_, *stored, place_));
  if (doubtful_) {
    Attempt attempt = *std::exchange(doubtful_, std::nullopt);
    if (stored->progress == attempt.after && attempt.wanted == after) {
      stored_.progress = std::move(attempt.after);
      known_ = WithRefused(after, attempt.refused);
      return std::move(attempt.refused);
    }
  }
  if (stored->progress != stored_.progress) {
    return Error{Code::kInternal, place_ + ": the progress of item " + fence_.item +
                                      " was changed by another process"};
  }
  MUSTER_TRY(target_.CheckBefore());
  MUSTER_ASSIGN(std::vector<Refused> refused, InsertRows(batch));
  MUSTER_TRY(target_.NoteAfter(batch));
  const Progress kept = WithRefused(after, refused);
  std::string json = kept.ToString();
  MUSTER_TRY(Store("progress", json));
  if (auto done = transaction.Commit(); !done) {
    if (done.error().code == Code::kUnknownOutcome) {
      doubtful_ = Attempt{std::move(json), after, std::move(refused)};
    }
    return std::move(done).error();
  }
  stored_.progress = std::move(json);
  known_ = kept;
  durable_ = false;
  return refused;
}

Result<std::vector<Refused>> SqliteWriter::InsertRows(const Batch& batch) {
  std::vector<Refused> refused;
  for (size_t i = 0; i < batch.documents.size(); ++i) {
    const Document& document = batch.documents[i];
    const int64_t before = db_->TotalChanges();
    auto done = document.deleted ? rows_.Delete(document) : rows_.Insert(document);
    if (done) {
      if (!document.deleted && db_->TotalChanges() == before) {
        refused.push_back({.index = i, .reason = "a trigger dropped it", .skipped = true});
      }
      continue;
    }
    if (!IsAboutARow(done.error().code)) return std::move(done).error();
    refused.push_back({i, std::move(done).error().message});
  }
  MUSTER_TRY(Record(batch, refused));
  return refused;
}

Status SqliteWriter::Flush() {
  MUSTER_TRY(CheckPlace());
  if (durable_) return {};
  return RunDurably("UPDATE muster_progress SET updated = datetime('now')");
}

Status SqliteWriter::Finish() {
  // A standalone item's progress is never read again.
  MUSTER_TRY(CheckPlace());
  return fence_.alone ? RunDurably("DELETE FROM muster_progress") : Flush();
}

// Writing to a file that was moved or deleted is useless.
Status SqliteWriter::CheckPlace() const {
  if (!db_->HasMoved()) return {};
  return Error{Code::kIncompatible, place_ + " was removed or replaced while it was written to",
               kLostTargetHint};
}

// A synchronous commit of any change makes earlier ones durable too.
Status SqliteWriter::RunDurably(const std::string& sql) {
  MUSTER_TRY(db_->Execute("PRAGMA synchronous=FULL"));
  MUSTER_ASSIGN(sql::SqliteStatement change, db_->Prepare(sql + kWhere));
  Status done = change.Bind(fence_.run, fence_.item).Run();
  MUSTER_TRY(db_->Execute("PRAGMA synchronous=NORMAL"));
  durable_ = done.has_value();
  return done;
}

Result<std::optional<Progress>> SqliteWriter::Seal() {
  MUSTER_TRY(db_->Execute("PRAGMA synchronous=FULL"));
  MUSTER_ASSIGN(sql::SqliteTransaction transaction, sql::SqliteTransaction::Begin(*db_));
  MUSTER_ASSIGN(auto stored, Stored());
  if (!stored) return Error{Code::kConflict, place_ + ": the item's row is gone"};
  // Sealing is idempotent; a newer holder's item must not be touched.
  stored->sealed = false;
  MUSTER_TRY(CheckWrite(fence_, *stored, place_));
  MUSTER_TRY(Store("sealed", "1"));
  MUSTER_TRY(transaction.Commit());
  stored->sealed = true;
  stored_ = *std::move(stored);
  doubtful_.reset();
  MUSTER_ASSIGN(known_, ProgressOf(stored_));
  return known_;
}

}  // namespace muster::pipeline
