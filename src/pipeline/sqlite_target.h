#pragma once

#include <string>

#include "base/sqlite.h"
#include "muster/pipeline.h"
#include "muster/result.h"
#include "pipeline/sqlite_table.h"

namespace muster {

// The mark of one table that documents are written to: a row of muster_progress without a run, with
// the table as its item. `incarnation` is the table's identity, `sealed` says that it holds
// documents of ours: if it is empty all the same, it was emptied or dropped and created again. A
// file without the row is another file. Used by one thread; `db` must outlive it.
class SqliteTarget {
 public:
  SqliteTarget(SqliteDb& db, std::string table)
      : db_(db), table_(SqliteTable::FoldedName(std::move(table))) {}

  // Marks a table that is there. One that has lost what was written to it gets a new identity.
  Status Mark();

  // As Sink::Identity. A file of an earlier version has no marks: empty.
  Result<std::string> Identity();

  // Inside the transaction of a batch, before it: kIncompatible if the table has lost what was
  // written to it. And after it.
  Status CheckBefore();
  Status NoteAfter(const Batch& batch);

 private:
  Result<bool> WasEmptied();
  Result<bool> IsEmpty();
  Status SetFilled(bool filled);

  SqliteDb& db_;
  const std::string table_;
};

}  // namespace muster
