#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/result.h"
#include "sql/postgres.h"
#include "sql/postgres_table.h"

namespace muster::pipeline {

// What a PostgreSQL source reads as one collection: a table, a view or a query, in key order. A
// table without a key is read in page order, by ctid.
struct PgRelation {
  struct KeyColumn {
    std::string sql;  // quoted
    std::string type;
    std::string base;  // the plain type name
  };
  std::string collection;
  std::string from = {};    // the FROM clause's content
  sql::PgTable table = {};  // its columns; unnamed for a query
  std::vector<KeyColumn> key = {};
  bool by_ctid = false;
  bool key_is_certain = false;           // the server guarantees that it is unique and not null
  std::vector<std::string> leaves = {};  // by ctid, of a partitioned table: its partitions, quoted

  // A query for the rows after position `begin` up to and including `end`, in order; empty:
  // unbounded. Its columns: key values as text, id, routing, document, and whether
  // null in the document is JSON null (Document::null_is_json).
  Result<std::string> RowsSql(const std::string& part, const std::string& begin,
                              const std::string& end) const;

  // " WHERE …" for the same rows.
  Result<std::string> RangeSql(const std::string& begin, const std::string& end) const;

  std::string KeyAsText() const;  // "id::text, name::text"
  std::string KeyOrder() const;   // " ORDER BY …"; empty for ctid: pages come in order
};

// `key` names the columns to sort by; empty: the table's own key. kInvalid: no such column, or a
// key is required and missing.
Result<PgRelation> RelationOfTable(sql::PgConnection& connection, const std::string& collection,
                                   const sql::PgName& name, const std::vector<std::string>& key);
Result<PgRelation> RelationOfQuery(sql::PgConnection& connection, const std::string& collection,
                                   const std::string& query, const std::vector<std::string>& key);

// Whether a key without a server guarantee is unique and not null right now.
Status CheckKey(sql::PgConnection& connection, const PgRelation& relation);

}  // namespace muster::pipeline
