#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/pipeline.h"
#include "pipeline/sqlite/sqlite_rows.h"
#include "pipeline/sqlite/sqlite_target.h"
#include "pipeline/table/table_writer.h"
#include "sql/sqlite.h"

namespace muster::pipeline {

// Writes one item's documents into one table of a SQLite file; see OpenSqliteSink.
class SqliteWriter final : public TableWriter {
 public:
  static Result<std::unique_ptr<SqliteWriter>> Open(Env& env, std::unique_ptr<sql::SqliteDb> db,
                                                    std::string place, sql::SqliteTable table,
                                                    Misfits misfits, Fence fence);

  // Creates muster_progress if needed.
  static Status EnsureProgressTable(sql::SqliteDb& db);

  Result<std::vector<Refused>> Write(const Batch& batch, const Progress& after,
                                     const Patience& patience) override;
  Status Flush() override;
  Result<std::optional<Progress>> Seal() override;
  Status Finish() override;

 private:
  // A write with an unknown outcome.
  struct Attempt {
    std::string after;
    Progress wanted;
    std::vector<Refused> refused;
  };

  SqliteWriter(Env& env, std::unique_ptr<sql::SqliteDb> db, std::string place,
               sql::SqliteTable table, Misfits misfits, Fence fence);
  Status Take();
  Result<std::optional<StoredFence>> Stored();
  Status Store(const std::string& column, std::string_view value);
  Status CheckPlace() const;
  Status RunDurably(const std::string& sql);
  Result<std::vector<Refused>> TryWrite(const Batch& batch, const Progress& after);
  Result<std::vector<Refused>> InsertRows(const Batch& batch);

  Env& env_;
  const std::unique_ptr<sql::SqliteDb> db_;
  const std::string place_;
  const Fence fence_;
  SqliteTarget target_;
  SqliteRows rows_;
  std::optional<Attempt> doubtful_;
  bool durable_ = true;
};

}  // namespace muster::pipeline
