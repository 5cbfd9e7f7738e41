#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/sqlite.h"
#include "muster/pipeline.h"
#include "muster/result.h"
#include "pipeline/field_reader.h"
#include "pipeline/sqlite_table.h"

namespace muster {

// Inserts documents as rows of one table. Fields go to the columns of their names:
// - null is NULL; a column whose field is missing is NULL too, or takes its default if it has one;
// - integers and other numbers as such, true and false as 1 and 0; a number that the column would
//   round to another is refused, and kept exactly by a column of text;
// - columns declared as JSON take any value as JSON text, columns declared BLOB base64 or
//   PostgreSQL's \x form; in any other column a nested value is its JSON text;
// - computed columns are left alone;
// - columns `_id` and `_routing` take those of the document, unless it has such fields itself.
// A table of whole documents takes id, routing and body. Not thread-safe; must not outlive the
// database.
class SqliteRows {
 public:
  SqliteRows(SqliteDb& db, SqliteTable table);

  // kInvalid, kConflict: this document does not fit. Other errors are about the database.
  Status Insert(const Document& document);

  // Removes the rows of a document by its id. kIncompatible: the table has no column for ids.
  Status Delete(const Document& document);

 private:
  Status InsertDocument(const Document& document);
  Status InsertFields(const Document& document);
  Status BindValue(SqliteStatement& statement, int index, const SqliteTable::Column& column,
                   const FieldValue& value);
  static Status BindNumber(SqliteStatement& statement, int index, const SqliteTable::Column& column,
                           std::string_view number);
  Result<SqliteStatement*> StatementFor(const std::vector<bool>& given);

  SqliteDb& db_;
  const SqliteTable table_;
  const bool holds_documents_;
  FieldReader fields_;
  std::map<std::vector<bool>, SqliteStatement> statements_;  // by the columns that are given
  std::optional<SqliteStatement> delete_;
  std::vector<bool> given_;
  std::vector<std::string> bytes_;  // decoded, until the row is in
};

}  // namespace muster
