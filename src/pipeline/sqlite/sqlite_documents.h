#pragma once

#include <string>
#include <string_view>

#include "muster/pipeline.h"
#include "pipeline/table/table_params.h"
#include "sql/sqlite.h"
#include "sql/sqlite_table.h"

namespace muster::pipeline {

// Makes documents of a table's rows, as JSON objects: integers and reals as numbers, texts as
// strings, blobs as base64, valid JSON in columns declared as JSON verbatim. Misfits are a blob
// outside a BLOB column and text in one, which convert to base64, and text that is not JSON in a
// JSON column, which converts to a JSON string. Not thread-safe.
class SqliteDocuments {
 public:
  // The table's columns are those of the rows from `first_column` on. `table` must outlive this.
  SqliteDocuments(const sql::SqliteTable& table, int first_column, Misfits misfits);

  // The document of the current row, without a position. Valid until the next call.
  Document Read(const sql::SqliteStatement& row);

 private:
  void ReadDocument();
  void ReadFields();
  bool HasJsonNull() const;
  void AppendValue(int column, const sql::SqliteTable::Column& declared);
  void AppendText(int column, const sql::SqliteTable::Column& declared);
  void AppendMisfit(int column, const sql::SqliteTable::Column& declared);
  std::string NameText(std::string_view name);
  int PlaceOf(std::string_view name) const;
  std::string CompositeId() const;

  const sql::SqliteTable& table_;
  const int first_column_;
  const Misfits misfits_;
  // Of the current row:
  const sql::SqliteStatement* row_ = nullptr;
  std::string id_;
  std::string routing_;
  std::string body_;
  std::string defect_;
  bool null_is_json_ = false;
};

}  // namespace muster::pipeline
