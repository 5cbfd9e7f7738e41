#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/postgres.h"
#include "muster/result.h"
#include "pipeline/postgres_table.h"

namespace muster {

// What a PostgreSQL source reads as one collection: a table, a view or a query, in the order of its
// key. A table without a key is read in the order of its pages, by ctid.
struct PgRelation {
  struct KeyColumn {
    std::string sql;  // quoted
    std::string type;
    std::string base;  // the type's plain name
  };
  std::string collection;
  std::string from = {};  // what stands after FROM
  PgTable table = {};     // its columns; without a name for a query
  std::vector<KeyColumn> key = {};
  bool by_ctid = false;
  bool key_is_certain = false;           // the server guarantees that it is unique and never null
  std::vector<std::string> leaves = {};  // by ctid, of a partitioned table: its parts, quoted

  // A query for the rows after `begin` up to and with `end`, positions both, in order; none: from
  // the first, to the last. Its columns: the key's values as text, id, routing, document.
  Result<std::string> RowsSql(const std::string& part, const std::string& begin,
                              const std::string& end) const;

  // " WHERE …" for the same rows.
  Result<std::string> RangeSql(const std::string& begin, const std::string& end) const;

  std::string KeyAsText() const;  // "id::text, name::text"
  std::string KeyOrder() const;   // " ORDER BY …", nothing by ctid: pages come in order
};

// `key` names the columns to go by; empty: those of the table's own key. kInvalid: there is no such
// column, or it takes a key to read this and there is none.
Result<PgRelation> RelationOfTable(PgConnection& connection, const std::string& collection,
                                   const PgName& name, const std::vector<std::string>& key);
Result<PgRelation> RelationOfQuery(PgConnection& connection, const std::string& collection,
                                   const std::string& query, const std::vector<std::string>& key);

// Whether a key that the server does not guarantee is unique and never null, at this moment.
Status CheckKey(PgConnection& connection, const PgRelation& relation);

}  // namespace muster
