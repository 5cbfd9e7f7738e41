#include "pipeline/postgres/postgres_writer.h"

#include <algorithm>
#include <utility>

#include "core/backoff.h"

namespace muster::pipeline {
namespace {

using namespace std::chrono_literals;

constexpr auto kOpenPatience = 20s;
constexpr auto kSealPatience = 5s;
constexpr auto kLongestOutage = 120s;  // that a write will sit out
constexpr Backoff::Pauses kPauses{.first = 20ms, .longest = 1s};

// At COMMIT, where deferred constraints and constraint triggers are checked: RAISE EXCEPTION is
// kInternal.
bool MayBeAboutARow(Code code) {
  return code == Code::kConflict || code == Code::kInvalid || code == Code::kInternal;
}

bool MayTryAgain(Code code) { return code == Code::kUnavailable || code == Code::kUnknownOutcome; }

}  // namespace

PostgresWriter::PostgresWriter(Env& env, std::string uri, const std::string& schema,
                               sql::PgTable table, Misfits misfits, Fence fence)
    : env_(env),
      uri_(std::move(uri)),
      table_(std::move(table)),
      progress_(schema, std::move(fence)),
      copier_(table_, ReplacesRows(progress_.fence()), misfits,
              {.sql = progress_.LockSql(),
               .check = [this](const sql::PgResult& answer) { return CheckLocked(answer); }}) {}

Result<std::unique_ptr<PostgresWriter>> PostgresWriter::Open(Env& env, std::string uri,
                                                             const std::string& schema,
                                                             sql::PgTable table, Misfits misfits,
                                                             Fence fence) {
  std::unique_ptr<PostgresWriter> writer(
      new PostgresWriter(env, std::move(uri), schema, std::move(table), misfits, std::move(fence)));
  const Patience patience{.deadline = env.MonoNow() + kOpenPatience};
  MUSTER_TRY(writer->Persist(patience, [&] { return writer->Connect(patience); }));
  MUSTER_ASSIGN(writer->known_, ProgressOf(writer->stored_));
  return writer;
}

// Retries failures caused by a lost connection or a lock until patience runs out.
template <class Try>
auto PostgresWriter::Persist(const Patience& patience, Try attempt) -> decltype(attempt()) {
  Backoff backoff(env_, patience.stop, kPauses);
  for (;;) {
    auto outcome = attempt();
    if (outcome || stale_ || !MayTryAgain(outcome.error().code)) return outcome;
    if (!backoff.PauseBefore(patience.deadline)) return outcome;
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
                   " is not what was last written: the server has lost commits that it had not "
                   "made durable, or another process has changed muster_progress",
               "open the item again: it continues from what the server has"};
}

Result<std::vector<Refused>> PostgresWriter::Write(const Batch& batch, const Progress& after,
                                                   const Patience& given) {
  const Patience patience{.deadline = std::min(given.deadline, env_.MonoNow() + kLongestOutage),
                          .stop = given.stop};
  StartRecording();
  if (table_.key.empty() && !batch.documents.empty()) {
    WarnOfTwoVersions(progress_.fence(), table_.sql_name);
  }
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
  MUSTER_ASSIGN(auto written, copier_.Write(*connection_, batch, constraints_now_));
  std::vector<Refused> refused = std::move(written.refused);
  MUSTER_TRY(Record(batch, refused));
  refused.insert(refused.end(), static_cast<size_t>(written.dropped),
                 {.index = 0, .reason = "a trigger of the table dropped it", .skipped = true});
  const Progress kept = WithRefused(after, refused);
  std::string json = kept.ToString();
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

Status PostgresWriter::CheckLocked(const sql::PgResult& answer) {
  MUSTER_ASSIGN(const StoredFence stored, progress_.Locked(answer, *connection_));
  MUSTER_TRY(CheckWrite(progress_.fence(), stored, connection_->Place()));
  if (stored.progress != stored_.progress) return Stale();
  return {};
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
