#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"
#include "sql/sqlite.h"

namespace muster::sql {

// What reading and writing rows needs to know of a SQLite table or view.
struct SqliteTable {
  // A column's affinity by its declared type, plus JSON.
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
  std::vector<std::string> key = {};  // declared primary key
  std::string rowid = {};             // the name to read it by; empty: none
  bool rowid_is_key = false;          // an INTEGER PRIMARY KEY: survives VACUUM

  // SQLite's name comparison: ASCII case-insensitive.
  static std::string FoldedName(std::string name);

  const Column* Find(std::string_view column) const;
};

// kNotFound: no table of that name.
Result<SqliteTable> DescribeSqliteTable(SqliteDb& db, const std::string& name);

}  // namespace muster::sql
