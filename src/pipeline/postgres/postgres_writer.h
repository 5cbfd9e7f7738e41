#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/pipeline.h"
#include "pipeline/postgres/postgres_copier.h"
#include "pipeline/postgres/postgres_progress.h"
#include "pipeline/postgres/postgres_session.h"
#include "pipeline/table/table_writer.h"
#include "sql/postgres.h"

namespace muster::pipeline {

// Writes one item's documents into one table. Each batch is a COPY in a transaction that also
// advances the item's progress: a batch is applied exactly once, and older epochs are fenced off.
//
// Commits are asynchronous until Flush. A server that crashes in between loses rows and progress
// together; the next write notices and fails with kUnavailable, and the next holder of the item
// continues from what the server has.
class PostgresWriter final : public TableWriter {
 public:
  // Opens the item; waits for a session that still has it locked, or terminates it.
  static Result<std::unique_ptr<PostgresWriter>> Open(Env& env, std::string uri,
                                                      const std::string& schema, sql::PgTable table,
                                                      Misfits misfits, Fence fence);

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

  PostgresWriter(Env& env, std::string uri, const std::string& schema, sql::PgTable table,
                 Misfits misfits, Fence fence);

  Status Connect(const Patience& patience);
  Status TakeItem(const Patience& patience);
  template <class Try>
  auto Persist(const Patience& patience, Try attempt) -> decltype(attempt());
  Result<std::vector<Refused>> TryWrite(const Batch& batch, const Progress& after);
  Result<std::optional<Progress>> TrySeal();
  Status CheckLocked(const sql::PgResult& answer);
  Error Stale();

  Env& env_;
  const std::string uri_;
  const sql::PgTable table_;
  const PostgresProgress progress_;
  PostgresCopier copier_;
  std::unique_ptr<sql::PgConnection> connection_;
  std::optional<Attempt> doubtful_;
  bool constraints_now_ = false;  // a deferred constraint failed at an earlier commit
  bool durable_ = true;
  bool forgotten_ = false;  // a standalone item's progress has been deleted
  bool stale_ = false;      // the server lost the last writes: the item must be reopened
};

}  // namespace muster::pipeline
