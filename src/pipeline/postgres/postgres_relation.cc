#include "pipeline/postgres/postgres_relation.h"

#include "pipeline/table/document_table.h"

#include "pipeline/table/row_key.h"

namespace muster::pipeline {
namespace {

sql::PgStatement Query(std::string sql) { return {"", std::move(sql), false}; }

std::string Tuple(const std::vector<std::string>& parts) {
  if (parts.size() == 1) return parts[0];
  std::string text = "(";
  for (const std::string& part : parts) text += (text.size() > 1 ? ", " : "") + part;
  return text + ")";
}

Error NoKey(const std::string& what) {
  return Error{Code::kInvalid, what + " has no key to read it by",
               "name columns that are unique and never null: ?key=COLUMN,COLUMN"};
}

Result<PgRelation::KeyColumn> KeyColumnOf(const sql::PgTable& table, const std::string& name,
                                          const std::string& what) {
  const sql::PgTable::Column* column = table.Find(name);
  if (column == nullptr) {
    return Error{Code::kInvalid, what + " has no column '" + name + "' to use as its key",
                 "check ?key=COLUMN,COLUMN"};
  }
  return PgRelation::KeyColumn{sql::PgIdentifier(name), column->type, column->base};
}

Result<std::vector<std::string>> LeavesOf(sql::PgConnection& connection, const std::string& table) {
  sql::PgParams params;
  params.Text(table);
  MUSTER_ASSIGN(const sql::PgResult leaves,
                connection.Execute(Query("SELECT relid::regclass::text FROM"
                                         " pg_partition_tree(to_regclass($1)) WHERE isleaf"
                                         " ORDER BY relid::regclass::text"),
                                   params));
  std::vector<std::string> names;
  for (int row = 0; row < leaves.rows(); ++row) names.emplace_back(leaves.Text(row, 0));
  return names;
}

// The columns that can hold JSON null. In arrays the two nulls look the same.
std::vector<const sql::PgTable::Column*> JsonColumns(const sql::PgTable& table) {
  std::vector<const sql::PgTable::Column*> columns;
  if (HoldsDocuments(table)) return columns;
  for (const sql::PgTable::Column& column : table.columns) {
    if (column.base == "json" || column.base == "jsonb") columns.push_back(&column);
  }
  return columns;
}

// Whether any of these columns holds JSON null.
std::string HasJsonNullSql(const std::vector<const sql::PgTable::Column*>& columns) {
  std::string sql;
  for (const sql::PgTable::Column* column : columns) {
    sql += (sql.empty() ? "coalesce(" : " OR coalesce(") + column->base + "_typeof(t." +
           sql::PgIdentifier(column->name) + ") = 'null', false)";
  }
  return sql.empty() ? "false" : "(" + sql + ")";
}

// The JSON object `body` without those of these columns that are NULL.
std::string WithoutNullsSql(const std::vector<const sql::PgTable::Column*>& columns,
                            const std::string& body) {
  std::string nulls;
  for (const sql::PgTable::Column* column : columns) {
    nulls += (nulls.empty() ? "CASE WHEN t." : ", CASE WHEN t.") + sql::PgIdentifier(column->name) +
             " IS NULL THEN " + sql::PgLiteral(column->name) + " END";
  }
  return "(SELECT json_object_agg(f.key, f.value ORDER BY f.place) FROM json_each(" + body +
         ") WITH ORDINALITY f(key, value, place)"
         " WHERE f.key <> ALL (array_remove(ARRAY[" +
         nulls + "]::text[], NULL)))";
}

}  // namespace

std::string PgRelation::KeyAsText() const {
  std::string text;
  for (const KeyColumn& column : key)
    text += (text.empty() ? "t." : ", t.") + column.sql + "::text";
  return text;
}

std::string PgRelation::KeyOrder() const {
  if (by_ctid) return "";
  std::string text;
  for (const KeyColumn& column : key) {
    text += (text.empty() ? " ORDER BY t." : ", t.") + column.sql;
  }
  return text;
}

Result<std::string> PgRelation::RangeSql(const std::string& begin, const std::string& end) const {
  std::vector<std::string> columns;
  for (const KeyColumn& column : key) columns.push_back("t." + column.sql);
  const auto bound = [&](const std::string& position) -> Result<std::string> {
    MUSTER_ASSIGN(const auto values, DecodeKey(position, key.size()));
    std::vector<std::string> literals;
    for (size_t i = 0; i < key.size(); ++i) {
      literals.push_back(sql::PgLiteral(values[i]) + "::" + key[i].type);
    }
    return Tuple(literals);
  };
  std::string sql;
  if (!begin.empty()) {
    MUSTER_ASSIGN(const std::string after, bound(begin));
    sql += " WHERE " + Tuple(columns) + " > " + after;
  } else if (by_ctid) {
    // A TID range scan always starts at the first page; a plain scan may start anywhere.
    sql += " WHERE t.ctid > '(0,0)'::tid";
  }
  if (!end.empty()) {
    MUSTER_ASSIGN(const std::string last, bound(end));
    sql += (sql.empty() ? " WHERE " : " AND ") + Tuple(columns) + " <= " + last;
  }
  return sql;
}

Result<std::string> PgRelation::RowsSql(const std::string& part, const std::string& begin,
                                        const std::string& end) const {
  MUSTER_ASSIGN(const std::string range, RangeSql(begin, end));
  std::string id = "NULL::text";
  std::string routing = "NULL::text";
  // A bare `t` could be a column.
  std::string body = "row_to_json(t.*)";
  std::string also;
  if (!by_ctid && key.size() == 1) id = "t." + key[0].sql + "::text";
  if (HoldsDocuments(table)) {
    id = "t.id";
    if (table.Find("routing") != nullptr) routing = "t.routing";
    body = "t.document";
  } else if (table.Find("_id") != nullptr) {
    // The sink's columns for what is not a field.
    id = "t._id::text";
    if (table.Find("_routing") != nullptr) routing = "t._routing::text";
    body = "row_to_json(fields.*)";
    for (const sql::PgTable::Column& column : table.columns) {
      if (column.name == "_id" || column.name == "_routing") continue;
      also += (also.empty() ? ", LATERAL (SELECT t." : ", t.") + sql::PgIdentifier(column.name);
    }
    also = also.empty() ? ", LATERAL (SELECT) fields" : also + ") fields";
  }
  const auto json_columns = JsonColumns(table);
  const std::string json_null = HasJsonNullSql(json_columns);
  if (json_columns.size() > 1) {
    body = "CASE WHEN " + json_null + " THEN " + WithoutNullsSql(json_columns, body) + " ELSE " +
           body + " END";
  }
  return "SELECT " + KeyAsText() + ", " + id + ", " + routing + ", (" + body + ")::text, " +
         json_null + " FROM " + (part.empty() ? from : part) + " t" + also + range + KeyOrder();
}

Result<PgRelation> RelationOfTable(sql::PgConnection& connection, const std::string& collection,
                                   const sql::PgName& name, const std::vector<std::string>& key) {
  PgRelation relation{.collection = collection};
  MUSTER_ASSIGN(relation.table, sql::DescribePgTable(connection, name));
  const sql::PgTable& table = relation.table;
  relation.from = table.sql_name;
  relation.key_is_certain = key.empty() || key == table.key;
  for (const std::string& column : key.empty() ? table.key : key) {
    MUSTER_ASSIGN(auto found, KeyColumnOf(table, column, table.sql_name));
    relation.key.push_back(std::move(found));
  }
  if (!relation.key.empty()) return relation;
  if (table.kind != 'r' && table.kind != 'p' && table.kind != 'm') return NoKey(table.sql_name);
  relation.by_ctid = true;
  relation.key = {{"ctid", "tid", "tid"}};
  if (table.kind == 'p') {
    MUSTER_ASSIGN(relation.leaves, LeavesOf(connection, table.sql_name));
  }
  return relation;
}

Result<PgRelation> RelationOfQuery(sql::PgConnection& connection, const std::string& collection,
                                   const std::string& query, const std::vector<std::string>& key) {
  // On lines of its own, so that a trailing comment is harmless.
  PgRelation relation{.collection = collection, .from = "(\n" + query + "\n)"};
  if (key.empty()) return NoKey("the query");
  auto shape =
      connection.Execute(Query("SELECT * FROM " + relation.from + " t LIMIT 0"), sql::PgParams());
  if (!shape) return shape.error().Within("the query of the source URL");
  relation.table.kind = 'q';
  for (int i = 0; i < shape->columns(); ++i) {
    sql::PgParams params;
    params.Int64(shape->ColumnType(i));
    MUSTER_ASSIGN(const sql::PgResult type,
                  connection.Execute(Query("SELECT format_type(oid, NULL), typname::text,"
                                           " typnamespace = 'pg_catalog'::regnamespace"
                                           " FROM pg_type WHERE oid = $1::int8::oid"),
                                     params));
    const bool builtin = type.Text(0, 2) == std::string_view("\1", 1);
    sql::PgTable::Column column;
    column.name = shape->ColumnName(i);
    column.type = type.Text(0, 0);
    column.portable_type = builtin ? column.type : "text";
    column.base = type.Text(0, 1);
    relation.table.columns.push_back(std::move(column));
  }
  for (const std::string& column : key) {
    MUSTER_ASSIGN(auto found, KeyColumnOf(relation.table, column, "the query"));
    relation.key.push_back(std::move(found));
  }
  return relation;
}

Status CheckKey(sql::PgConnection& connection, const PgRelation& relation) {
  if (relation.key_is_certain) return {};
  std::string columns;
  std::string nulls;
  for (const PgRelation::KeyColumn& column : relation.key) {
    columns += (columns.empty() ? "t." : ", t.") + column.sql;
    nulls += (nulls.empty() ? "t." : " OR t.") + column.sql + " IS NULL";
  }
  MUSTER_ASSIGN(const sql::PgResult bad,
                connection.Execute(Query("SELECT " + relation.KeyAsText() + " FROM " +
                                         relation.from + " t GROUP BY " + columns +
                                         " HAVING count(*) > 1 OR " + nulls + " LIMIT 1"),
                                   sql::PgParams()));
  if (bad.rows() == 0) return {};
  std::string row;
  for (size_t i = 0; i < relation.key.size(); ++i) {
    const int column = static_cast<int>(i);
    row += (i == 0 ? "" : ", ") + relation.key[i].sql + " = " +
           (bad.IsNull(0, column) ? "NULL" : std::string(bad.Text(0, column)));
  }
  return Error{Code::kInvalid, relation.collection + ": the key is null or not unique: " + row,
               "rows would be lost: name other columns with ?key=COLUMN,COLUMN"};
}

}  // namespace muster::pipeline
