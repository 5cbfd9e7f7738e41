#include "pipeline/postgres/postgres_writer.h"

#include <algorithm>
#include <utility>

#include "pipeline/table/table_shape.h"

namespace muster::pipeline {
namespace {

using namespace std::chrono_literals;

constexpr size_t kSendBytes = 64 * 1024;  // converted before sending, while the server reads
constexpr auto kOpenPatience = 20s;
constexpr auto kSealPatience = 5s;
constexpr auto kLongestOutage = 120s;  // that a write will sit out
constexpr auto kLongestPause = 1s;

// Whether the server rejects a row rather than the whole statement.
bool IsAboutARow(std::string_view sqlstate) {
  return sqlstate.starts_with("22") || sqlstate.starts_with("23") || sqlstate.starts_with("44") ||
         sqlstate.starts_with("54") || sqlstate.starts_with("P0");
}

// At COMMIT, where deferred constraints and constraint triggers are checked: RAISE EXCEPTION is
// kInternal.
bool MayBeAboutARow(Code code) {
  return code == Code::kConflict || code == Code::kInvalid || code == Code::kInternal;
}

bool MayTryAgain(Code code) { return code == Code::kUnavailable || code == Code::kUnknownOutcome; }

}  // namespace

PostgresWriter::PostgresWriter(Env& env, std::string uri, const std::string& schema, PgTable table,
                               Fence fence)
    : env_(env),
      uri_(std::move(uri)),
      table_(std::move(table)),
      progress_(schema, std::move(fence)),
      rows_(table_) {}

Result<std::unique_ptr<PostgresWriter>> PostgresWriter::Open(Env& env, std::string uri,
                                                             const std::string& schema,
                                                             PgTable table, Fence fence) {
  std::unique_ptr<PostgresWriter> writer(
      new PostgresWriter(env, std::move(uri), schema, std::move(table), std::move(fence)));
  const Patience patience{.deadline = env.MonoNow() + kOpenPatience};
  MUSTER_TRY(writer->Persist(patience, [&] { return writer->Connect(patience); }));
  MUSTER_ASSIGN(writer->known_, ProgressOf(writer->stored_));
  return writer;
}

bool PostgresWriter::RecordsRefusals(RefusalRecorder record) {
  record_ = std::move(record);
  return true;
}

// Retries failures caused by a lost connection or a lock until patience runs out.
template <class Try>
auto PostgresWriter::Persist(const Patience& patience, Try attempt) -> decltype(attempt()) {
  for (auto pause = std::chrono::nanoseconds(20ms);;
       pause = std::min<std::chrono::nanoseconds>(pause * 2, kLongestPause)) {
    auto outcome = attempt();
    if (outcome || stale_ || !MayTryAgain(outcome.error().code)) return outcome;
    const auto wait = pause / 2 + env_.Jitter(pause);
    if (env_.MonoNow() + wait >= patience.deadline || patience.stop.stop_requested()) {
      return outcome;
    }
    env_.Sleep(wait, patience.stop);
  }
}

Status PostgresWriter::Connect(const Patience& patience) {
  if (connection_ && connection_->Usable()) {
    connection_->SetDeadline(patience.deadline);
    return {};
  }
  MUSTER_ASSIGN(connection_, OpenPgWriteSession(uri_));
  connection_->SetDeadline(patience.deadline);
  Status taken = TakeItem(patience);
  if (!taken) connection_.reset();
  return taken;
}

Status PostgresWriter::TakeItem(const Patience& patience) {
  auto stored = progress_.Take(*connection_);
  if (!stored && stored.error().code == Code::kUnavailable && !connection_->lost() &&
      env_.MonoNow() < patience.deadline) {
    MUSTER_TRY(progress_.EndEarlierHolder(*connection_));
    stored = progress_.Take(*connection_);
  }
  MUSTER_TRY(stored);
  // The row shows whether a write with an unknown outcome was applied.
  const bool as_expected =
      doubtful_ ? stored->progress == doubtful_->after || stored->progress == doubtful_->before
                : !known_ || stored->progress == stored_.progress;
  if (!as_expected) return Stale();
  stored_ = *std::move(stored);
  return {};
}

Error PostgresWriter::Stale() {
  stale_ = true;
  return Error{Code::kUnavailable,
               connection_->Place() + ": the progress of item " + progress_.fence().item +
                   " is not what was written last: the server has lost commits that it had not "
                   "made durable, or another process has changed muster_progress",
               "open the item again: it goes on from what the server has"};
}

Result<std::vector<Refused>> PostgresWriter::Write(const Batch& batch, const Progress& after,
                                                   const Patience& given) {
  const Patience patience{.deadline = std::min(given.deadline, env_.MonoNow() + kLongestOutage),
                          .stop = given.stop};
  recorded_.clear();
  return Persist(patience, [&]() -> Result<std::vector<Refused>> {
    MUSTER_TRY(Connect(patience));
    auto refused = TryWrite(batch, after);
    // After any failure the session is in an unknown state.
    if (!refused) connection_.reset();
    if (!refused && MayBeAboutARow(refused.error().code) && !constraints_now_) {
      constraints_now_ = true;
      MUSTER_TRY(Connect(patience));
      refused = TryWrite(batch, after);
      if (!refused) connection_.reset();
    }
    return refused;
  });
}

Result<std::vector<Refused>> PostgresWriter::TryWrite(const Batch& batch, const Progress& after) {
  if (doubtful_) {
    Attempt attempt = *std::exchange(doubtful_, std::nullopt);
    if (stored_.progress == attempt.after) {
      if (attempt.wanted != after) return Stale();
      known_ = WithRefused(after, attempt.refused);
      durable_ = false;
      return std::move(attempt.refused);
    }
  }
  std::vector<Refused> refused;
  locked_ = false;
  dropped_ = 0;
  MUSTER_TRY(CopyBatch(batch, refused));
  std::sort(refused.begin(), refused.end(),
            [](const Refused& one, const Refused& other) { return one.index < other.index; });
  MUSTER_TRY(Record(batch, refused));
  refused.insert(refused.end(), static_cast<size_t>(dropped_),
                 {.index = 0, .reason = "a trigger of the table dropped it", .skipped = true});
  const Progress kept = WithRefused(after, refused);
  std::string json = kept.ToJson();
  if (auto done = progress_.CommitWith(*connection_, json); !done) {
    if (done.error().code == Code::kUnknownOutcome) {
      doubtful_ = Attempt{stored_.progress, std::move(json), after, std::move(refused)};
    }
    return std::move(done).error();
  }
  stored_.progress = std::move(json);
  known_ = kept;
  durable_ = false;
  return refused;
}

// Converts and sends in parallel: the server reads one chunk while the next is converted.
Status PostgresWriter::CopyBatch(const Batch& batch, std::vector<Refused>& refused) {
  rows_.Clear();
  copying_.reset();
  for (size_t i = 0; i < batch.documents.size(); ++i) {
    if (batch.documents[i].deleted) {
      if (copying_) MUSTER_TRY(FinishCopy(rows_.rows().size(), refused));
      MUSTER_ASSIGN(i, DeleteRows(batch, i));
      continue;
    }
    if (auto added = rows_.Add(i, batch.documents[i]); !added) {
      refused.push_back({i, std::move(added).error().message});
      continue;
    }
    const size_t row = rows_.rows().size() - 1;
    if (copying_ && rows_.rows()[row].defaults != rows_.rows()[copying_->first].defaults) {
      MUSTER_TRY(FinishCopy(row, refused));
    }
    if (!copying_) MUSTER_TRY(StartCopy(row));
    if (rows_.text().size() - copying_->sent >= kSendBytes) MUSTER_TRY(SendRows(row + 1));
  }
  if (copying_) return FinishCopy(rows_.rows().size(), refused);
  return locked_ ? Status() : LockOnly();
}

Status PostgresWriter::StartCopy(size_t row) {
  std::string sql = locked_ ? "RELEASE rows; SAVEPOINT rows; "
                            : "BEGIN; SET LOCAL synchronous_commit = off; " + progress_.LockSql() +
                                  (constraints_now_ ? "; SET CONSTRAINTS ALL IMMEDIATE" : "") +
                                  "; SAVEPOINT rows; ";
  sql += rows_.Statement(rows_.rows()[row].defaults);
  MUSTER_ASSIGN(sql::PgCopyIn copy, sql::PgCopyIn::Start(*connection_, sql));
  copying_ = Copying{.copy = copy, .first = row, .sent = rows_.rows()[row].begin};
  return {};
}

Status PostgresWriter::AwaitReady() {
  if (copying_->ready) return {};
  MUSTER_ASSIGN(const auto answers, copying_->copy.Ready());
  copying_->ready = true;
  if (locked_) return {};
  // Only now is the current holder known, and nothing has been sent yet.
  Status mine = CheckLocked(answers[2]);
  if (!mine) MUSTER_TRY(copying_->copy.Abandon("the item is not this worker's"));
  return mine;
}

Status PostgresWriter::CheckLocked(const sql::PgResult& answer) {
  MUSTER_ASSIGN(const StoredFence stored, progress_.Locked(answer, *connection_));
  MUSTER_TRY(CheckWrite(progress_.fence(), stored, connection_->Place()));
  if (stored.progress != stored_.progress) return Stale();
  locked_ = true;
  return {};
}

// A batch without rows still advances the progress.
Status PostgresWriter::LockOnly() {
  const sql::PgParams none = {};
  const sql::PgStatement begin{"", "BEGIN", false};
  const sql::PgStatement later{"", "SET LOCAL synchronous_commit = off", false};
  const sql::PgStatement lock{"", progress_.LockSql(), false};
  const sql::PgCall calls[] = {{begin, none}, {later, none}, {lock, none}};
  MUSTER_ASSIGN(const auto answers, connection_->Execute(calls));
  return CheckLocked(answers[2]);
}

// Deletes a run of consecutive deleted documents. Returns the last one's index.
Result<size_t> PostgresWriter::DeleteRows(const Batch& batch, size_t first) {
  const std::string column = table_.HoldsDocuments() ? "id" : "_id";
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

Status PostgresWriter::SendRows(size_t last_row) {
  MUSTER_TRY(AwaitReady());
  const size_t end =
      last_row < rows_.rows().size() ? rows_.rows()[last_row].begin : rows_.text().size();
  MUSTER_TRY(copying_->copy.Send(rows_.text().substr(copying_->sent, end - copying_->sent)));
  copying_->sent = end;
  return {};
}

Status PostgresWriter::FinishCopy(size_t last_row, std::vector<Refused>& refused) {
  MUSTER_TRY(SendRows(last_row));
  const size_t first = copying_->first;
  MUSTER_ASSIGN(auto refusal, copying_->copy.End());
  if (!refusal) CountDropped(first, last_row, copying_->copy);
  copying_.reset();
  if (!refusal) return {};
  return Bisect(first, last_row, *std::move(refusal), refused);
}

// The server rejected rows [first, last) because of at least one of them. Resends the rows before a
// bad one, refuses the bad one, and so on: in growing pieces while all goes well, in smaller ones
// if the server does not name the row or many are bad.
Status PostgresWriter::Bisect(size_t first, size_t last, sql::PgRefusal refusal,
                              std::vector<Refused>& refused) {
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
        refused.push_back({rows_.rows()[first].document, refusal.message});
        ++first;
      }
    } else {
      refused.push_back({rows_.rows()[first].document, refusal.message});
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

Result<std::optional<sql::PgRefusal>> PostgresWriter::CopyAgain(bool failed, size_t first,
                                                                size_t last) {
  const std::string savepoint = failed ? "ROLLBACK TO rows; " : "RELEASE rows; SAVEPOINT rows; ";
  MUSTER_ASSIGN(sql::PgCopyIn copy,
                sql::PgCopyIn::Start(*connection_,
                                     savepoint + rows_.Statement(rows_.rows()[first].defaults)));
  MUSTER_TRY(copy.Ready());
  MUSTER_TRY(copy.Send(rows_.Text(first, last)));
  MUSTER_ASSIGN(auto refusal, copy.End());
  if (!refusal) CountDropped(first, last, copy);
  return refusal;
}

// Rows [first, last) are copied, except those for which a BEFORE trigger returned NULL. A trigger
// that redirects rows to another table does the same, so this is not an error.
void PostgresWriter::CountDropped(size_t first, size_t last, const sql::PgCopyIn& copy) {
  dropped_ += std::max<int64_t>(static_cast<int64_t>(last - first) - copy.stored(), 0);
}

// Before the commit: after it, a crash would leave documents counted as failed but recorded
// nowhere.
Status PostgresWriter::Record(const Batch& batch, const std::vector<Refused>& refused) {
  if (!record_) return {};
  for (const Refused& one : refused) {
    if (std::find(recorded_.begin(), recorded_.end(), one.index) != recorded_.end()) continue;
    MUSTER_TRY(record_(batch.documents[one.index], one.reason));
    recorded_.push_back(one.index);
  }
  return {};
}

Error PostgresWriter::ServerError(const sql::PgRefusal& refusal) const {
  return Error{sql::PgCodeOf(refusal.sqlstate), connection_->Place() + ": table " +
                                                    table_.sql_name + ": " + refusal.message +
                                                    " [" + refusal.sqlstate + "]"};
}

Status PostgresWriter::Flush() {
  if (durable_) return {};
  const Patience patience{.deadline = env_.MonoNow() + kOpenPatience};
  return Persist(patience, [&]() -> Status {
    MUSTER_TRY(Connect(patience));
    MUSTER_TRY(progress_.MakeDurable(*connection_));
    durable_ = true;
    return {};
  });
}

Status PostgresWriter::Finish() {
  if (!progress_.fence().alone) return Flush();
  const Patience patience{.deadline = env_.MonoNow() + kOpenPatience};
  return Persist(patience, [&]() -> Status {
    if (forgotten_) return {};
    MUSTER_TRY(Connect(patience));
    MUSTER_TRY(progress_.Forget(*connection_));
    forgotten_ = durable_ = true;
    return {};
  });
}

Result<std::optional<Progress>> PostgresWriter::Seal() {
  const Patience patience{.deadline = env_.MonoNow() + kSealPatience};
  // Authoritative: the row overrides what this worker believes.
  doubtful_.reset();
  known_.reset();
  stale_ = false;
  return Persist(patience, [&]() -> Result<std::optional<Progress>> {
    MUSTER_TRY(Connect(patience));
    auto sealed = TrySeal();
    if (!sealed) connection_.reset();
    return sealed;
  });
}

Result<std::optional<Progress>> PostgresWriter::TrySeal() {
  const sql::PgParams none = {};
  const sql::PgStatement begin{"", "BEGIN", false};
  const sql::PgStatement lock{"", progress_.LockSql(), false};
  const sql::PgCall calls[] = {{begin, none}, {lock, none}};
  MUSTER_ASSIGN(const auto answers, connection_->Execute(calls));
  MUSTER_ASSIGN(StoredFence stored, progress_.Locked(answers[1], *connection_));
  // Sealing is idempotent; a newer holder's item must not be touched.
  stored.sealed = false;
  MUSTER_TRY(CheckWrite(progress_.fence(), stored, connection_->Place()));
  MUSTER_TRY(progress_.CommitSealed(*connection_));
  stored.sealed = true;
  stored_ = std::move(stored);
  durable_ = true;
  MUSTER_ASSIGN(known_, ProgressOf(stored_));
  return known_;
}

}  // namespace muster::pipeline
