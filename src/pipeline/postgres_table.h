#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/postgres.h"
#include "muster/result.h"

namespace muster {

// A table, view or partition of PostgreSQL, as far as reading and writing rows needs to know it.
struct PgTable {
  struct Column {
    std::string name;
    std::string type;           // as PostgreSQL prints it: "numeric(10,2)", "text[]"
    std::string portable_type;  // one that every server has: "text" for an enum
    std::string base;           // the plain name of the type, beneath domains: "numeric", "_text"
    bool is_array = false;
    bool nullable = true;
    bool has_default = false;  // also by identity
    bool generated = false;    // computed: cannot be written
  };
  std::string sql_name = {};  // quoted, with its schema
  char kind = 'r';  // relkind: r table, p partitioned, v view, m materialised view, f foreign
  double estimated_rows = -1;
  int64_t bytes = 0;
  std::string oid = {};
  std::string file = {};  // its file's number: another one when its rows were moved or removed
  std::vector<Column> columns = {};
  // The primary one, else a unique one that cannot be null; may be empty.
  std::vector<std::string> key = {};

  const Column* Find(std::string_view name) const;

  // A table of whole documents: nothing but a text `id`, a json or jsonb `document` and perhaps a
  // text `routing`.
  bool HoldsDocuments() const;
};

// A table's name as people write it: TABLE, SCHEMA.TABLE, and in double quotes what holds a dot or
// a quote. Names are taken as they are, without folding their case.
struct PgName {
  std::string schema;  // empty: the first of the search path
  std::string table;

  static Result<PgName> Parse(std::string_view text);
  std::string Sql() const;  // quoted
};

// kNotFound: there is none of that name.
Result<PgTable> DescribePgTable(PgConnection& connection, const PgName& name);

}  // namespace muster
