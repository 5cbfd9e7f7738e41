#pragma once

#include <string>

#include "muster/pipeline.h"
#include "muster/result.h"
#include "sql/sqlite.h"
#include "sql/sqlite_table.h"

namespace muster::pipeline {

// The marker of a target table: a row of muster_progress without a run, with the table as its item.
// `incarnation` is the table's identity; `sealed` means that it contains our documents, so if it is
// empty it was truncated or recreated. A file without the row is a different file. Used by one
// thread; `db` must outlive it.
class SqliteTarget {
 public:
  SqliteTarget(sql::SqliteDb& db, std::string table)
      : db_(db), table_(sql::SqliteTable::FoldedName(std::move(table))) {}

  // Marks an existing table. One that has lost what was written to it gets a new identity.
  Status Mark();

  // As Sink::Identity. Files of earlier versions have no markers: empty.
  Result<std::string> Identity();

  // Called within a batch's transaction, before and after the batch. CheckBefore fails with
  // kIncompatible if the table has lost what was written to it.
  Status CheckBefore();
  Status NoteAfter(const Batch& batch);

 private:
  Result<bool> WasEmptied();
  Result<bool> IsEmpty();
  Status SetFilled(bool filled);

  sql::SqliteDb& db_;
  const std::string table_;
};

}  // namespace muster::pipeline
