#include "pipeline/postgres/postgres_copier.h"

#include <algorithm>
#include <utility>

#include "core/log.h"
#include "pipeline/table/document_table.h"
#include "pipeline/table/table_shape.h"

namespace muster::pipeline {
namespace {

constexpr size_t kSendBytes = 64 * 1024;  // converted before sending, while the server reads
constexpr char kUniqueViolation[] = "23505";
constexpr char kSameKeyTwice[] = "21000";      // in one INSERT … ON CONFLICT
constexpr char kChanged[] = "muster_changed";  // the transaction's table for rows to merge

// Whether the server rejects a row rather than the whole statement.
bool IsAboutARow(std::string_view sqlstate) {
  return sqlstate.starts_with("22") || sqlstate.starts_with("23") || sqlstate.starts_with("44") ||
         sqlstate.starts_with("54") || sqlstate.starts_with("P0") || sqlstate == kSameKeyTwice;
}

}  // namespace

PostgresCopier::PostgresCopier(const sql::PgTable& table, bool replaces, Misfits misfits, Lock lock)
    : table_(table),
      lock_(std::move(lock)),
      rows_(table_, misfits),
      may_replace_(replaces && !table.key.empty()) {}

Result<PostgresCopier::Outcome> PostgresCopier::Write(sql::PgConnection& connection,
                                                      const Batch& batch, bool constraints_now) {
  connection_ = &connection;
  constraints_now_ = constraints_now;
  locked_ = false;
  outcome_ = {};
  MUSTER_TRY(CopyBatch(batch));
  std::sort(outcome_.refused.begin(), outcome_.refused.end(),
            [](const Refused& one, const Refused& other) { return one.index < other.index; });
  return std::exchange(outcome_, {});
}

// Converts and sends in parallel: the server reads one chunk while the next is converted.
Status PostgresCopier::CopyBatch(const Batch& batch) {
  rows_.Clear();
  copying_.reset();
  for (size_t i = 0; i < batch.documents.size(); ++i) {
    if (batch.documents[i].deleted) {
      if (copying_) MUSTER_TRY(FinishCopy(rows_.rows().size()));
      MUSTER_ASSIGN(i, DeleteRows(batch, i));
      continue;
    }
    if (auto added = rows_.Add(i, batch.documents[i]); !added) {
      outcome_.refused.push_back({i, std::move(added).error().message});
      continue;
    }
    const size_t row = rows_.rows().size() - 1;
    if (copying_ && rows_.rows()[row].defaults != rows_.rows()[copying_->first].defaults) {
      MUSTER_TRY(FinishCopy(row));
    }
    if (!copying_) MUSTER_TRY(StartCopy(row));
    if (rows_.text().size() - copying_->sent >= kSendBytes) MUSTER_TRY(SendRows(row + 1));
  }
  if (copying_) return FinishCopy(rows_.rows().size());
  return locked_ ? Status() : LockOnly();
}

Status PostgresCopier::StartCopy(size_t row) {
  std::string sql = locked_ ? "RELEASE rows; SAVEPOINT rows; "
                            : "BEGIN; SET LOCAL synchronous_commit = off; " + lock_.sql +
                                  (constraints_now_ ? "; SET CONSTRAINTS ALL IMMEDIATE" : "") +
                                  "; SAVEPOINT rows; ";
  sql += CopySql(row);
  MUSTER_ASSIGN(sql::PgCopyIn copy, sql::PgCopyIn::Start(*connection_, sql));
  copying_ = Copying{.copy = copy, .first = row, .sent = rows_.rows()[row].begin};
  return {};
}

Status PostgresCopier::AwaitReady() {
  if (copying_->ready) return {};
  MUSTER_ASSIGN(const auto answers, copying_->copy.Ready());
  copying_->ready = true;
  if (locked_) return {};
  // Only now is the current holder known, and nothing has been sent yet.
  Status mine = CheckLocked(answers[2]);
  if (!mine) MUSTER_TRY(copying_->copy.Abandon("the item is not this worker's"));
  return mine;
}

Status PostgresCopier::CheckLocked(const sql::PgResult& answer) {
  MUSTER_TRY(lock_.check(answer));
  locked_ = true;
  return {};
}

// A batch without rows still advances the progress.
Status PostgresCopier::LockOnly() {
  const sql::PgParams none = {};
  const sql::PgStatement begin{"", "BEGIN", false};
  const sql::PgStatement later{"", "SET LOCAL synchronous_commit = off", false};
  const sql::PgStatement lock{"", lock_.sql, false};
  const sql::PgCall calls[] = {{begin, none}, {later, none}, {lock, none}};
  MUSTER_ASSIGN(const auto answers, connection_->Execute(calls));
  return CheckLocked(answers[2]);
}

// Deletes a run of consecutive deleted documents. Returns the last one's index.
Result<size_t> PostgresCopier::DeleteRows(const Batch& batch, size_t first) {
  const std::string column = HoldsDocuments(table_) ? "id" : "_id";
  if (table_.Find(column) == nullptr) return NoIdColumn(table_.sql_name);
  size_t end = first;
  while (end < batch.documents.size() && batch.documents[end].deleted) ++end;
  sql::PgArray ids(sql::PgArray::Element::kText, end - first);
  for (size_t i = first; i < end; ++i) ids.Text(batch.documents[i].id);
  if (!locked_) {
    MUSTER_TRY(LockOnly());
    const sql::PgParams none = {};
    const sql::PgStatement savepoint{"", "SAVEPOINT rows", false};
    const sql::PgStatement now{"", "SET CONSTRAINTS ALL IMMEDIATE", false};
    const sql::PgCall calls[] = {{savepoint, none}, {now, none}};
    MUSTER_TRY(connection_->Execute(std::span(calls, constraints_now_ ? 2 : 1)));
  }
  sql::PgParams params;
  params.Text(ids.bytes());
  MUSTER_TRY(
      connection_->Execute(sql::PgStatement{"",
                                            "DELETE FROM " + table_.sql_name + " WHERE " +
                                                sql::PgIdentifier(column) + " = ANY($1::text[])",
                                            false},
                           params));
  return end - 1;
}

Status PostgresCopier::SendRows(size_t last_row) {
  MUSTER_TRY(AwaitReady());
  const size_t end =
      last_row < rows_.rows().size() ? rows_.rows()[last_row].begin : rows_.text().size();
  MUSTER_TRY(copying_->copy.Send(rows_.text().substr(copying_->sent, end - copying_->sent)));
  copying_->sent = end;
  return {};
}

Status PostgresCopier::FinishCopy(size_t last_row) {
  MUSTER_TRY(SendRows(last_row));
  const size_t first = copying_->first;
  MUSTER_ASSIGN(auto refusal, copying_->copy.End());
  if (!refusal) CountDropped(first, last_row, copying_->copy);
  copying_.reset();
  if (!refusal) return {};
  MUSTER_ASSIGN(refusal, MaybeReplace(first, last_row, *std::move(refusal)));
  if (!refusal) return {};
  return Bisect(first, last_row, *std::move(refusal));
}

// Rows [first, last) were refused. If that was because a key exists, they are written again by way
// of a temporary table, and all later rows too: COPY itself cannot replace rows.
Result<std::optional<sql::PgRefusal>> PostgresCopier::MaybeReplace(size_t first, size_t last,
                                                                   sql::PgRefusal refusal) {
  if (refusal.sqlstate != kUniqueViolation || !may_replace_ || replacing_) return refusal;
  replacing_ = true;
  auto again = CopyAgain(true, first, last);
  if (again && (!*again || IsAboutARow((*again)->sqlstate))) return again;
  replacing_ = false;  // a new attempt starts from a plain COPY
  const Error error = again ? ServerError(**again) : again.error();
  const bool forbidden = error.code == Code::kPermission && connection_->Usable();
  // The caller retries transient failures, such as a deadlock.
  if (IsTransient(error.code) || (!again && !forbidden)) return again;
  // Not every table can be merged into: not if its key is deferrable or a privilege is missing.
  may_replace_ = false;
  if (forbidden) {
    Log(Level::kWarning,
        "documents that changed while they were read are refused: replacing their rows requires "
        "the "
        "privileges SELECT and UPDATE on the table and TEMPORARY on the database",
        {{"table", table_.sql_name}, {"error", error.message}});
  }
  return refusal;
}

std::string PostgresCopier::CopySql(size_t row) const {
  const std::string columns = rows_.Columns(rows_.rows()[row].defaults);
  if (!replacing_) return "COPY " + table_.sql_name + " (" + columns + ") FROM STDIN";
  return "CREATE TEMPORARY TABLE IF NOT EXISTS " + std::string(kChanged) +
         " ON COMMIT DROP AS TABLE " + table_.sql_name + " WITH NO DATA; COPY pg_temp." + kChanged +
         " (" + columns + ") FROM STDIN; " + ReplaceSql(columns);
}

// Columns left to their defaults get them again, as if the row were inserted.
std::string PostgresCopier::ReplaceSql(const std::string& columns) const {
  std::string key;
  for (const std::string& name : table_.key) {
    key += (key.empty() ? "" : ", ") + sql::PgIdentifier(name);
  }
  std::string set;
  for (const sql::PgTable::Column& column : table_.columns) {
    if (column.generated) continue;
    if (std::find(table_.key.begin(), table_.key.end(), column.name) != table_.key.end()) continue;
    const std::string name = sql::PgIdentifier(column.name);
    const bool given = (", " + columns + ", ").find(", " + name + ", ") != std::string::npos;
    set += (set.empty() ? "" : ", ") + name + (given ? " = EXCLUDED." + name : " = DEFAULT");
  }
  // A table that is all key still has to report the row as written.
  if (set.empty()) {
    const std::string name = sql::PgIdentifier(table_.key[0]);
    set = name + " = EXCLUDED." + name;
  }
  return "WITH changed AS (DELETE FROM pg_temp." + std::string(kChanged) +
         " RETURNING *) INSERT INTO " + table_.sql_name + " (" + columns +
         ") OVERRIDING SYSTEM VALUE SELECT " + columns + " FROM changed ON CONFLICT (" + key +
         ") DO UPDATE SET " + set;
}

// The server rejected rows [first, last) because of at least one of them. Resends the rows before a
// bad one, refuses the bad one, and so on: in growing pieces while all goes well, in smaller ones
// if the server does not name the row or many are bad.
Status PostgresCopier::Bisect(size_t first, size_t last, sql::PgRefusal refusal) {
  size_t piece = last - first;
  bool failed = true;  // the last rows sent must be rolled back
  const auto copy = [&](size_t rows) -> Result<bool> {
    MUSTER_ASSIGN(auto again, CopyAgain(failed, first, first + rows));
    failed = again.has_value();
    if (failed) refusal = *std::move(again);
    if (!failed) first += rows;
    return !failed;
  };
  while (true) {
    if (!IsAboutARow(refusal.sqlstate)) return ServerError(refusal);
    if (refusal.line != 1 && piece > 1) {
      // Without the row in question this piece should succeed; that row is next.
      const size_t line = refusal.line;
      const size_t good = line > 1 && line <= piece ? line - 1 : piece / 2;
      MUSTER_ASSIGN(const bool taken, copy(good));
      if (!taken) {
        piece = good;
        continue;
      }
      if (line == good + 1) {
        outcome_.refused.push_back({rows_.rows()[first].document, refusal.message});
        ++first;
      }
    } else {
      outcome_.refused.push_back({rows_.rows()[first].document, refusal.message});
      ++first;
    }
    piece = std::max<size_t>(piece / 2, 1);
    // From here on no row is known to be bad.
    for (bool taken = true; taken; piece *= 2) {
      if (first == last) {
        if (!failed) return {};
        MUSTER_TRY(
            connection_->Execute(sql::PgStatement{"", "ROLLBACK TO rows", false}, sql::PgParams()));
        return {};
      }
      piece = std::min(piece, last - first);
      MUSTER_ASSIGN(taken, copy(piece));
      if (!taken) break;
    }
  }
}

Result<std::optional<sql::PgRefusal>> PostgresCopier::CopyAgain(bool failed, size_t first,
                                                                size_t last) {
  const std::string savepoint = failed ? "ROLLBACK TO rows; " : "RELEASE rows; SAVEPOINT rows; ";
  MUSTER_ASSIGN(sql::PgCopyIn copy, sql::PgCopyIn::Start(*connection_, savepoint + CopySql(first)));
  MUSTER_TRY(copy.Ready());
  MUSTER_TRY(copy.Send(rows_.Text(first, last)));
  MUSTER_ASSIGN(auto refusal, copy.End());
  if (refusal) return MaybeReplace(first, last, *std::move(refusal));
  CountDropped(first, last, copy);
  return std::nullopt;
}

// Rows [first, last) are copied, except those for which a BEFORE trigger returned NULL. A trigger
// that redirects rows to another table does the same, so this is not an error.
void PostgresCopier::CountDropped(size_t first, size_t last, const sql::PgCopyIn& copy) {
  outcome_.dropped += std::max<int64_t>(static_cast<int64_t>(last - first) - copy.stored(), 0);
}

Error PostgresCopier::ServerError(const sql::PgRefusal& refusal) const {
  return Error{sql::PgCodeOf(refusal.sqlstate), connection_->Place() + ": table " +
                                                    table_.sql_name + ": " + refusal.message +
                                                    " [" + refusal.sqlstate + "]"};
}

}  // namespace muster::pipeline
