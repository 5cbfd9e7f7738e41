#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/postgres.h"
#include "base/postgres_copy.h"
#include "muster/env.h"
#include "muster/pipeline.h"
#include "pipeline/copy_rows.h"
#include "pipeline/postgres_progress.h"
#include "pipeline/postgres_session.h"

namespace muster {

// Writes one item's documents into one table, each batch a COPY in a transaction that also moves
// the item's progress: a batch is there once or not at all, and an older epoch cannot write.
//
// Commits do not wait for the disk until Flush. A server that crashed in between has lost rows and
// progress alike; the next write notices and fails with kUnavailable, and who opens the item again
// goes on from what the server has.
class PostgresWriter final : public Writer {
 public:
  // Opens the item; waits for a session that still has it locked, or ends it.
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
  // A write whose outcome is not known, until the progress row has been read.
  struct Attempt {
    std::string before;  // the progress stored, as JSON
    std::string after;
    Progress wanted;  // what the caller asked for
    std::vector<Refused> refused;
  };
  // Rows under way in one COPY.
  struct Copying {
    PgCopyIn copy;
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
  Status Bisect(size_t first, size_t last, PgRefusal refusal, std::vector<Refused>& refused);
  Result<std::optional<PgRefusal>> CopyAgain(bool failed, size_t first, size_t last);
  void CountDropped(size_t first, size_t last, const PgCopyIn& copy);
  Result<std::optional<Progress>> TrySeal();
  Status LockOnly();
  Result<size_t> DeleteRows(const Batch& batch, size_t first);
  Status CheckLocked(const PgResult& answer);
  Status Record(const Batch& batch, const std::vector<Refused>& refused);
  Error Stale();
  Error ServerError(const PgRefusal& refusal) const;

  Env& env_;
  const std::string uri_;
  const PgTable table_;
  const PostgresProgress progress_;
  CopyRows rows_;
  RefusalRecorder record_;
  std::unique_ptr<PgConnection> connection_;
  StoredFence stored_;
  std::optional<Progress> known_;
  std::optional<Attempt> doubtful_;
  std::optional<Copying> copying_;
  std::vector<size_t> recorded_;  // documents of the batch under way
  bool locked_ = false;           // the transaction under way holds the item's row
  int64_t dropped_ = 0;           // rows of the batch under way that triggers dropped
  bool constraints_now_ = false;  // a deferred one has failed at a commit before
  bool durable_ = true;
  bool forgotten_ = false;  // an item that is nobody else's has no progress any more
  bool stale_ = false;      // the server has not what was written last: only opening anew helps
};

}  // namespace muster
