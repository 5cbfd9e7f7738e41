#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "muster/pipeline.h"
#include "pipeline/sqlite/sqlite_documents.h"
#include "sql/sqlite.h"
#include "sql/sqlite_table.h"

namespace muster::pipeline {

// What is read as one collection, and its key.
struct SqliteRelation {
  sql::SqliteTable table;
  std::vector<std::string> key;  // unquoted names
  bool by_rowid = false;         // the only key is the rowid, an integer
};

// Reads the rows of one partition in key order.
class SqliteReader final : public Reader {
 public:
  SqliteReader(std::unique_ptr<sql::SqliteDb> db, SqliteRelation relation, std::string begin,
               std::string end, Misfits misfits, std::stop_token stop);

  Result<std::optional<Document>> Next() override;
  Result<std::optional<std::string>> Split() override;

  // The first and last rowid after `begin` up to `end`; none: no rows.
  struct Span {
    int64_t first = 0;
    int64_t last = 0;
  };
  static Result<std::optional<Span>> RowidSpan(sql::SqliteDb& db, const SqliteRelation& relation,
                                               const std::string& begin, const std::string& end);

  static std::string RowidPosition(int64_t rowid);
  static std::optional<int64_t> RowidOf(const std::string& position);

 private:
  Status Start();
  std::string KeyPosition() const;
  Result<std::optional<std::string>> MiddleKey();

  const std::unique_ptr<sql::SqliteDb> db_;
  const SqliteRelation relation_;
  SqliteDocuments documents_;
  const std::stop_token stop_;
  std::string position_;
  std::string end_;
  std::vector<std::string> bounds_;  // bound to the statement
  std::optional<sql::SqliteStatement> rows_;
  bool done_ = false;
};

}  // namespace muster::pipeline
