#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/pipeline.h"
#include "pipeline/flow/copy_rows.h"
#include "pipeline/postgres/postgres_progress.h"
#include "pipeline/postgres/postgres_session.h"
#include "sql/postgres.h"
#include "sql/postgres_copy.h"

namespace muster::pipeline {

// Writes one item's documents into one table. Each batch is a COPY in a transaction that also
// advances the item's progress: a batch is applied exactly once, and older epochs are fenced off.
//
// Commits are asynchronous until Flush. A server that crashes in between loses rows and progress
// together; the next write notices and fails with kUnavailable, and whoever reopens the item
// continues from what the server has.
class PostgresWriter final : public Writer {
 public:
  // Opens the item; waits for a session that still has it locked, or terminates it.
  static Result<std::unique_ptr<PostgresWriter>> Open(Env& env, std::string uri,
                                                      const std::string& schema, PgTable table,
                                                      Fence fence);

  const std::optional<Progress>& Known() const override { return known_; }
  bool Sealed() const override { return stored_.sealed; }
  bool RecordsRefusals(RefusalRecorder record) override;
  Result<std::vector<Refused>> Write(const Batch& batch, const Progress& after,
                                     const Patience& patience) override;
  Status Flush() override;
  Result<std::optional<Progress>> Seal() override;
  Status Finish() override;

 private:
  // A write with an unknown outcome, until the progress row has been read.
  struct Attempt {
    std::string before;  // the progress stored, as JSON
    std::string after;
    Progress wanted;  // as requested by the caller
    std::vector<Refused> refused;
  };
  // Rows being sent in one COPY.
  struct Copying {
    sql::PgCopyIn copy;
    size_t first;  // row
    size_t sent;   // bytes of the rows' text
    bool ready = false;
  };

  PostgresWriter(Env& env, std::string uri, const std::string& schema, PgTable table, Fence fence);

  Status Connect(const Patience& patience);
  Status TakeItem(const Patience& patience);
  template <class Try>
  auto Persist(const Patience& patience, Try attempt) -> decltype(attempt());
  Result<std::vector<Refused>> TryWrite(const Batch& batch, const Progress& after);
  Status CopyBatch(const Batch& batch, std::vector<Refused>& refused);
  Status StartCopy(size_t row);
  Status AwaitReady();
  Status SendRows(size_t last_row);
  Status FinishCopy(size_t last_row, std::vector<Refused>& refused);
  Status Bisect(size_t first, size_t last, sql::PgRefusal refusal, std::vector<Refused>& refused);
  Result<std::optional<sql::PgRefusal>> CopyAgain(bool failed, size_t first, size_t last);
  void CountDropped(size_t first, size_t last, const sql::PgCopyIn& copy);
  Result<std::optional<Progress>> TrySeal();
  Status LockOnly();
  Result<size_t> DeleteRows(const Batch& batch, size_t first);
  Status CheckLocked(const sql::PgResult& answer);
  Status Record(const Batch& batch, const std::vector<Refused>& refused);
  Error Stale();
  Error ServerError(const sql::PgRefusal& refusal) const;

  Env& env_;
  const std::string uri_;
  const PgTable table_;
  const PostgresProgress progress_;
  CopyRows rows_;
  RefusalRecorder record_;
  std::unique_ptr<sql::PgConnection> connection_;
  StoredFence stored_;
  std::optional<Progress> known_;
  std::optional<Attempt> doubtful_;
  std::optional<Copying> copying_;
  std::vector<size_t> recorded_;  // documents of the current batch
  bool locked_ = false;           // the current transaction holds the item's row lock
  int64_t dropped_ = 0;           // rows of the current batch dropped by triggers
  bool constraints_now_ = false;  // a deferred constraint failed at an earlier commit
  bool durable_ = true;
  bool forgotten_ = false;  // a standalone item's progress has been deleted
  bool stale_ = false;      // the server lost the last writes: the item must be reopened
};

}  // namespace muster::pipeline
