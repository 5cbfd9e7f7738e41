#pragma once

#include <string>

#include "muster/pipeline.h"
#include "muster/result.h"
#include "pipeline/flow/item_fence.h"
#include "sql/postgres.h"

namespace muster::pipeline {

// The row of one item in the target's table `muster_progress`:
//
//   run, item     the key
//   incarnation   of the run that wrote last
//   epoch         of the last holder to open the item; older ones are fenced off
//   holder        its id, which fences off another holder with the same epoch
//   sealed        nothing can be written any more
//   progress      the item's progress as of the committed rows; null: nothing written yet
//   holder_pid, holder_since   the server process of the holder's session
//   updated       time of the last change
//
// It changes in the same transaction as the target's rows.
class PostgresProgress {
 public:
  // `schema` empty: the first in the search path.
  PostgresProgress(const std::string& schema, Fence fence);

  // Creates the table if needed. Safe for concurrent processes.
  static Status EnsureTable(sql::PgConnection& connection, const std::string& schema);

  // Opens the item for this session and fences off older epochs. Errors as CheckOpen; kUnavailable:
  // another session holds the row lock. Idempotent.
  Result<StoredFence> Take(sql::PgConnection& connection) const;

  // Terminates the session of an earlier holder that keeps the row locked, such as one stopped in
  // mid-transaction. Only sessions opened by an older epoch, or by this one over a connection since
  // lost.
  Status EndEarlierHolder(sql::PgConnection& connection) const;

  // A query that locks the row until the transaction ends, and its parsed result.
  const std::string& LockSql() const { return lock_sql_; }
  Result<StoredFence> Locked(const sql::PgResult& answer,
                             const sql::PgConnection& connection) const;

  // Ends the current transaction. kUnknownOutcome: only the row can tell.
  Status CommitWith(sql::PgConnection& connection, const std::string& progress) const;
  Status CommitSealed(sql::PgConnection& connection) const;

  // Commits so that all earlier commits on this server become durable too.
  Status MakeDurable(sql::PgConnection& connection) const;

  // The same, deleting the row: it will never be needed.
  Status Forget(sql::PgConnection& connection) const;

  const Fence& fence() const { return fence_; }

 private:
  const Fence fence_;
  const std::string table_;
  const std::string where_;
  const std::string lock_sql_;
};

}  // namespace muster::pipeline
