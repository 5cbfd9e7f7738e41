#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/result.h"
#include "sql/postgres.h"

namespace muster::sql {

// What reading and writing rows needs to know of a PostgreSQL table, view or partition.
struct PgTable {
  struct Column {
    std::string name;
    std::string type;           // as PostgreSQL prints it: "numeric(10,2)", "text[]"
    std::string portable_type;  // one that every server has: "text" for an enum
    std::string base;           // the plain type name, beneath domains: "numeric", "_text"
    bool is_array = false;
    bool nullable = true;
    bool has_default = false;  // including identity columns
    bool generated = false;    // cannot be written
  };
  std::string sql_name = {};  // quoted, with its schema
  char kind = 'r';  // relkind: r table, p partitioned, v view, m materialised view, f foreign
  double estimated_rows = -1;
  int64_t bytes = 0;
  std::string oid = {};
  std::string file = {};  // its file number, which changes when rows are rewritten or truncated
  std::vector<Column> columns = {};
  // The primary key, else a unique, non-null one; may be empty.
  std::vector<std::string> key = {};

  const Column* Find(std::string_view name) const;
};

// A table name as users write it: TABLE or SCHEMA.TABLE, in double quotes if it contains a dot or a
// quote. Case is not folded.
struct PgName {
  std::string schema;  // empty: the first in the search path
  std::string table;

  static Result<PgName> Parse(std::string_view text);
  std::string Sql() const;  // quoted
};

// kNotFound: no table of that name.
Result<PgTable> DescribePgTable(PgConnection& connection, const PgName& name);

}  // namespace muster::sql
