#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/pipeline.h"
#include "muster/result.h"
#include "pipeline/json/field_reader.h"
#include "pipeline/table/number_rule.h"
#include "pipeline/table/table_params.h"
#include "sql/postgres_table.h"

namespace muster::pipeline {

// Converts documents to rows in COPY's text format for one table, and buffers them. Fields map to
// columns by name:
// - null is NULL, or JSON null in a json or jsonb column that is NOT NULL; a column without a field
//   is NULL, or its default if it has one; see also Document::null_is_json;
// - strings, numbers and booleans are passed through for the server to parse; a number that the
//   column would round is refused, unless misfits are converted;
// - json and jsonb columns take any value as JSON, array columns a JSON array, bytea columns base64
//   or PostgreSQL's \x form, times and dates also milliseconds since 1970; any other column takes a
//   nested value as JSON text;
// - generated columns are skipped;
// - columns `_id` and `_routing` take the document's, unless it has fields of those names.
// A table of whole documents (HoldsDocuments) takes id, routing and body. Not thread-safe.
class CopyRows {
 public:
  struct Row {
    size_t document;    // index in the batch
    size_t begin;       // in text()
    uint64_t defaults;  // columns left to their defaults; the same for all rows of one COPY
  };

  CopyRows(const sql::PgTable& table, Misfits misfits);

  // Drops the rows of the previous batch.
  void Clear();

  // Adds a row. An error says why the document does not fit the table.
  Status Add(size_t index, const Document& document);

  const std::vector<Row>& rows() const { return rows_; }
  std::string_view text() const { return text_; }

  // Rows [first, last) in COPY format.
  std::string_view Text(size_t first, size_t last) const;

  // The columns, quoted and in order, of rows with these defaults.
  std::string Columns(uint64_t defaults) const;

 private:
  enum class Form : uint8_t { kPlain, kJson, kArray, kBytes, kTime, kId, kRouting };
  struct Target {
    std::string name;
    Form form = Form::kPlain;
    int default_bit = -1;
    bool written = true;
    bool null_is_json = false;
    NumberRule numbers = {};
    std::string type = {};  // for messages, if there is a rule
  };

  static std::vector<std::string> FieldNames(const sql::PgTable& table);
  void AddDocument(const Document& document);
  Result<uint64_t> AddFields(const Document& document);
  Status AddValue(const Target& target, const FieldValue& value, bool null_is_json);
  Status AddText(const Target& target, const FieldValue& value);

  const bool holds_documents_;
  std::vector<Target> targets_;  // all columns, in field order
  FieldReader fields_;
  std::string text_;
  std::vector<Row> rows_;
};

}  // namespace muster::pipeline
