#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/sqlite.h"
#include "muster/result.h"
#include "pipeline/table_shape.h"

namespace muster {

// A table or view of a SQLite file, as far as reading and writing rows needs to know it.
struct SqliteTable {
  // What SQLite makes of values by the declared type, and what JSON becomes of it.
  enum class Form : uint8_t { kAny, kInteger, kReal, kNumeric, kText, kBlob, kJson };
  struct Column {
    std::string name;
    std::string type;  // as declared
    Form form = Form::kAny;
    bool nullable = true;
    bool has_default = false;
    bool generated = false;
  };
  std::string name;
  std::vector<Column> columns = {};
  std::vector<std::string> key = {};  // declared as primary
  std::string rowid = {};             // the name it can be read by; empty: there is none
  bool rowid_is_key = false;          // an INTEGER PRIMARY KEY: survives VACUUM

  // What SQLite compares names by: without the case of ASCII letters.
  static std::string FoldedName(std::string name);

  const Column* Find(std::string_view column) const;

  // A table of whole documents: nothing but a text `id`, a `document` declared as JSON and perhaps
  // a text `routing`.
  bool HoldsDocuments() const;

  // With types as PostgreSQL names them.
  TableShape Shape() const;
};

// kNotFound: there is none of that name.
Result<SqliteTable> DescribeSqliteTable(SqliteDb& db, const std::string& name);

// "CREATE TABLE IF NOT EXISTS …". Numbers that SQLite would round are kept as text, JSON in columns
// that are declared JSON_TEXT.
std::string CreateSqliteTableSql(const std::string& name, const TableShape& shape);

}  // namespace muster
