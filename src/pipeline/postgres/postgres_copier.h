#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "muster/pipeline.h"
#include "pipeline/postgres/copy_rows.h"
#include "sql/postgres.h"
#include "sql/postgres_copy.h"
#include "sql/postgres_table.h"

namespace muster::pipeline {

// Writes batches into one table, each as COPYs in one transaction. Rows that the server refuses are
// narrowed down and left out. Not thread-safe.
class PostgresCopier {
 public:
  // Locks the item's progress row; `check` judges the answer before any row is sent.
  struct Lock {
    std::string sql;
    std::function<Status(const sql::PgResult&)> check;
  };

  struct Outcome {
    std::vector<Refused> refused;  // by index
    int64_t dropped = 0;           // rows that triggers dropped
  };

  // With `replaces`, a row whose key exists replaces the one there. `table` must outlive this.
  PostgresCopier(const sql::PgTable& table, bool replaces, Misfits misfits, Lock lock);

  // Begins a transaction, locks the item and writes the rows; the caller commits. With
  // `constraints_now`, deferred constraints are checked at once, so that they refuse rows too.
  Result<Outcome> Write(sql::PgConnection& connection, const Batch& batch, bool constraints_now);

 private:
  // Rows being sent in one COPY.
  struct Copying {
    sql::PgCopyIn copy;
    size_t first;  // row
    size_t sent;   // bytes of the rows' text
    bool ready = false;
  };

  Status CopyBatch(const Batch& batch);
  Status StartCopy(size_t row);
  Status AwaitReady();
  Status SendRows(size_t last_row);
  Status FinishCopy(size_t last_row);
  Status Bisect(size_t first, size_t last, sql::PgRefusal refusal);
  Result<std::optional<sql::PgRefusal>> CopyAgain(bool failed, size_t first, size_t last);
  Result<std::optional<sql::PgRefusal>> MaybeReplace(size_t first, size_t last,
                                                     sql::PgRefusal refusal);
  void CountDropped(size_t first, size_t last, const sql::PgCopyIn& copy);
  Status LockOnly();
  Status CheckLocked(const sql::PgResult& answer);
  Result<size_t> DeleteRows(const Batch& batch, size_t first);
  std::string CopySql(size_t row) const;
  std::string ReplaceSql(const std::string& columns) const;
  Error ServerError(const sql::PgRefusal& refusal) const;

  const sql::PgTable& table_;
  const Lock lock_;
  CopyRows rows_;
  bool may_replace_;
  bool replacing_ = false;  // a key existed: from now on rows are merged
  // Of the current batch:
  sql::PgConnection* connection_ = nullptr;
  bool constraints_now_ = false;
  bool locked_ = false;  // the transaction holds the item's row lock
  std::optional<Copying> copying_;
  Outcome outcome_;
};

}  // namespace muster::pipeline
