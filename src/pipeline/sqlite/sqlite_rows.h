#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "muster/pipeline.h"
#include "muster/result.h"
#include "pipeline/json/field_reader.h"
#include "pipeline/table/table_params.h"
#include "sql/sqlite.h"
#include "sql/sqlite_table.h"

namespace muster::pipeline {

// Inserts documents as rows of one table. Fields map to columns by name:
// - null is NULL; a column without a field is NULL too, or its default if it has one; see also
//   Document::null_is_json;
// - numbers as such, true and false as 1 and 0; a number that the column would round is refused,
//   also in a string, unless misfits are converted; a text column keeps it exactly;
// - columns declared as JSON take any value as JSON text, columns declared BLOB base64 or
//   PostgreSQL's \x form; any other column takes a nested value as JSON text;
// - generated columns are skipped;
// - columns `_id` and `_routing` take the document's, unless it has fields of those names.
// A table of whole documents takes id, routing and body. Not thread-safe; must not outlive the
// database.
class SqliteRows {
 public:
  // With `replaces`, a row whose primary key exists replaces the one there.
  SqliteRows(sql::SqliteDb& db, sql::SqliteTable table, bool replaces, Misfits misfits);

  const std::string& table() const { return table_.name; }
  bool HasKey() const { return !table_.key.empty(); }

  // kInvalid, kConflict: the document does not fit. Other errors concern the database.
  Status Insert(const Document& document);

  // Deletes the rows of a document by its id. kIncompatible: the table has no id column.
  Status Delete(const Document& document);

 private:
  Status InsertDocument(const Document& document);
  Status InsertFields(const Document& document);
  Status BindValue(sql::SqliteStatement& statement, int index,
                   const sql::SqliteTable::Column& column, const FieldValue& value,
                   bool null_is_json);
  Status BindNumber(sql::SqliteStatement& statement, int index,
                    const sql::SqliteTable::Column& column, std::string_view number) const;
  bool Keeps(const sql::SqliteTable::Column& column, std::string_view number) const;
  std::string ReplaceSql() const;
  Result<sql::SqliteStatement*> StatementFor(const std::vector<bool>& given);

  sql::SqliteDb& db_;
  const sql::SqliteTable table_;
  const bool holds_documents_;
  const bool replaces_;
  const Misfits misfits_;
  FieldReader fields_;
  std::map<std::vector<bool>, sql::SqliteStatement> statements_;  // by the set of columns
  std::optional<sql::SqliteStatement> delete_;
  std::vector<bool> given_;
  std::vector<std::string> bytes_;  // decoded, until the row is inserted
};

}  // namespace muster::pipeline
