#pragma once

#include <string>

#include "base/postgres.h"
#include "muster/pipeline.h"
#include "muster/result.h"
#include "pipeline/item_fence.h"

namespace muster {

// The row of one item in the target's table `muster_progress`:
//
//   run, item     the key
//   incarnation   of the run that wrote last
//   epoch         of the holder that opened the item last; an older one cannot write any more
//   holder        its id: neither can another of the same epoch
//   sealed        nobody can
//   progress      where the item is, as of the rows committed; null: nothing written yet
//   holder_pid, holder_since   the server process of the holder's session
//   updated       when the row changed last
//
// It changes in the same transaction as the rows of the target.
class PostgresProgress {
 public:
  // `schema` empty: the first of the search path.
  PostgresProgress(const std::string& schema, Fence fence);

  // Creates the table, unless it is there. Any number of processes may do so at once.
  static Status EnsureTable(PgConnection& connection, const std::string& schema);

  // Opens the item for this session: from now on older epochs are refused. Errors as CheckOpen;
  // kUnavailable: somebody else holds the row's lock. Repeatable.
  Result<StoredFence> Take(PgConnection& connection) const;

  // Ends the session of an earlier holder that keeps the row locked, as one that was stopped in the
  // middle of a transaction does. Only what an older epoch, or this one over a connection that was
  // lost, has opened.
  Status EndEarlierHolder(PgConnection& connection) const;

  // A query that locks the row until the transaction ends, and the answer to it.
  const std::string& LockSql() const { return lock_sql_; }
  Result<StoredFence> Locked(const PgResult& answer, const PgConnection& connection) const;

  // Ends the transaction under way. kUnknownOutcome: only the row can tell.
  Status CommitWith(PgConnection& connection, const std::string& progress) const;
  Status CommitSealed(PgConnection& connection) const;

  // Commits in a way that all earlier commits of this server are durable, too.
  Status MakeDurable(PgConnection& connection) const;

  // The same by deleting the row: nobody will ever ask for it.
  Status Forget(PgConnection& connection) const;

  const Fence& fence() const { return fence_; }

 private:
  const Fence fence_;
  const std::string table_;
  const std::string where_;
  const std::string lock_sql_;
};

}  // namespace muster
