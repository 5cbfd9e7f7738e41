#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/pipeline.h"
#include "muster/result.h"
#include "pipeline/field_reader.h"
#include "pipeline/postgres_table.h"

namespace muster {

// Turns documents into rows of COPY's text format for one table, and keeps them. Fields go to the
// columns of their names:
// - null is NULL, in a json or jsonb column that is NOT NULL the JSON null; a column whose field is
//   missing is NULL, or takes its default if it has one;
// - strings, numbers and booleans are handed over as they are, for the server to read;
// - json and jsonb columns take any value as JSON, array columns a JSON array, bytea columns base64
//   or PostgreSQL's \x form, times and dates also milliseconds since 1970; in any other column a
//   nested value is its JSON text;
// - computed columns are left alone;
// - columns `_id` and `_routing` take those of the document, unless it has such fields itself.
// A table of whole documents (PgTable::HoldsDocuments) takes id, routing and body. Not thread-safe.
class CopyRows {
 public:
  struct Row {
    size_t document;    // its place in the batch
    size_t begin;       // in text()
    uint64_t defaults;  // the columns left to their defaults: rows of one COPY have the same
  };

  explicit CopyRows(const PgTable& table);

  // Forgets the rows of the batch before.
  void Clear();

  // Adds a row. An error is why the document does not fit into the table.
  Status Add(size_t index, const Document& document);

  const std::vector<Row>& rows() const { return rows_; }
  std::string_view text() const { return text_; }

  // Rows [first, last) as COPY takes them.
  std::string_view Text(size_t first, size_t last) const;

  // "COPY table (columns) FROM STDIN" for rows with these defaults.
  std::string Statement(uint64_t defaults) const;

 private:
  enum class Form : uint8_t { kPlain, kJson, kArray, kBytes, kTime, kId, kRouting };
  struct Target {
    std::string name;
    Form form = Form::kPlain;
    int default_bit = -1;
    bool written = true;
    bool null_is_json = false;
  };

  static std::vector<std::string> FieldNames(const PgTable& table);
  void AddDocument(const Document& document);
  Result<uint64_t> AddFields(const Document& document);
  Status AddValue(const Target& target, const FieldValue& value);

  const std::string table_;
  const bool holds_documents_;
  std::vector<Target> targets_;  // all columns, in the order of the fields
  FieldReader fields_;
  std::string text_;
  std::vector<Row> rows_;
};

}  // namespace muster
