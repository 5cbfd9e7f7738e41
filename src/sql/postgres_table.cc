#include "sql/postgres_table.h"

#include <algorithm>

#include "core/number.h"

namespace muster::sql {
namespace {

// PostgreSQL truncates longer names silently, so two names could collide.
constexpr size_t kMaxNameBytes = 63;

Error BadName(std::string_view text, std::string_view why) {
  return Error{Code::kInvalid, "table name '" + std::string(text) + "' " + std::string(why),
               "write TABLE or SCHEMA.TABLE, with double quotes around a name that contains a dot"};
}

// Removes one name from the front of `rest`.
Result<std::string> TakeName(std::string_view text, std::string_view& rest) {
  std::string name;
  if (!rest.starts_with('"')) {
    const size_t end = std::min(rest.find('.'), rest.size());
    name = rest.substr(0, end);
    rest.remove_prefix(end);
  } else {
    size_t at = 1;
    for (;; ++at) {
      if (at >= rest.size()) return BadName(text, "lacks a closing quote");
      if (rest[at] == '"' && (at + 1 >= rest.size() || rest[++at] != '"')) break;
      name += rest[at];
    }
    rest.remove_prefix(std::min(at, rest.size()));
    if (rest.starts_with('"')) rest.remove_prefix(1);
  }
  if (name.empty()) return BadName(text, "is empty");
  if (name.find('\0') != std::string::npos) return BadName(text, "contains a NUL");
  if (name.size() > kMaxNameBytes) {
    return BadName(text, "is longer than the 63 bytes that PostgreSQL keeps");
  }
  return name;
}

constexpr const char* kRelation =
    "SELECT c.oid::int8, format('%I.%I', n.nspname, c.relname), c.relkind::text,"
    " c.reltuples::float8::text, coalesce(pg_total_relation_size(c.oid), 0),"
    " c.oid::text, c.relfilenode::text"
    " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE c.oid = to_regclass($1)";

constexpr const char* kColumns =
    "SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), CASE"
    "  WHEN t.typtype = 'd' THEN format_type(t.typbasetype, t.typtypmod)"
    "  WHEN t.typnamespace = 'pg_catalog'::regnamespace THEN format_type(a.atttypid, a.atttypmod)"
    "  WHEN t.typcategory = 'A' THEN 'text[]' ELSE 'text' END,"
    " coalesce(b.typname, t.typname)::text, coalesce(b.typcategory, t.typcategory)::text,"
    " (a.attnotnull OR t.typnotnull)::text, (a.atthasdef OR a.attidentity <> '')::text,"
    " (a.attgenerated <> '')::text"
    " FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid"
    " LEFT JOIN pg_type b ON b.oid = t.typbasetype AND t.typtype = 'd'"
    " WHERE a.attrelid = $1::int8::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum";

// The columns of the best key: the primary key, else the shortest unique one without nulls,
// predicates and expressions.
constexpr const char* kKey =
    "SELECT a.attname::text FROM ("
    " SELECT i.indrelid, i.indkey, i.indnkeyatts FROM pg_index i"
    " WHERE i.indrelid = $1::int8::oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL"
    " AND i.indexprs IS NULL AND NOT EXISTS (SELECT 1 FROM pg_attribute n"
    "  WHERE n.attrelid = i.indrelid AND n.attnum = ANY (i.indkey) AND NOT n.attnotnull)"
    " ORDER BY i.indisprimary DESC, i.indnkeyatts, i.indexrelid LIMIT 1) best"
    " CROSS JOIN LATERAL unnest(best.indkey::int2[]) WITH ORDINALITY k(attnum, place)"
    " JOIN pg_attribute a ON a.attrelid = best.indrelid AND a.attnum = k.attnum"
    " WHERE k.place <= best.indnkeyatts ORDER BY k.place";

}  // namespace

const PgTable::Column* PgTable::Find(std::string_view name) const {
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const Column& column) { return column.name == name; });
  return found == columns.end() ? nullptr : &*found;
}

Result<PgName> PgName::Parse(std::string_view text) {
  PgName name;
  std::string_view rest = text;
  MUSTER_ASSIGN(name.table, TakeName(text, rest));
  if (rest.empty()) return name;
  if (!rest.starts_with('.')) return BadName(text, "continues after its closing quote");
  rest.remove_prefix(1);
  name.schema = std::move(name.table);
  MUSTER_ASSIGN(name.table, TakeName(text, rest));
  if (!rest.empty()) return BadName(text, "has more parts than SCHEMA.TABLE");
  return name;
}

std::string PgName::Sql() const {
  return (schema.empty() ? "" : PgIdentifier(schema) + ".") + PgIdentifier(table);
}

Result<PgTable> DescribePgTable(PgConnection& connection, const PgName& name) {
  const std::string sql_name = name.Sql();
  MUSTER_ASSIGN(const PgResult relation,
                connection.Execute(PgStatement{"", kRelation, false}, PgParams().Text(sql_name)));
  if (relation.rows() == 0) {
    return Error{Code::kNotFound, connection.Place() + " has no table " + sql_name,
                 "check the name, its case and its schema"};
  }
  PgTable table{.sql_name = std::string(relation.Text(0, 1)),
                .kind = relation.Text(0, 2)[0],
                .estimated_rows = ParseNumber<double>(relation.Text(0, 3)).value_or(-1),
                .bytes = relation.Int64(0, 4),
                .oid = std::string(relation.Text(0, 5)),
                .file = std::string(relation.Text(0, 6))};
  const PgStatement columns{"", kColumns, false};
  const PgStatement key{"", kKey, false};
  PgParams id;
  id.Int64(relation.Int64(0, 0));
  const PgCall calls[] = {{columns, id}, {key, id}};
  MUSTER_ASSIGN(const auto answers, connection.Execute(calls));
  for (int row = 0; row < answers[0].rows(); ++row) {
    const auto is = [&](int column) { return answers[0].Text(row, column) == "true"; };
    table.columns.push_back({.name = std::string(answers[0].Text(row, 0)),
                             .type = std::string(answers[0].Text(row, 1)),
                             .portable_type = std::string(answers[0].Text(row, 2)),
                             .base = std::string(answers[0].Text(row, 3)),
                             .is_array = answers[0].Text(row, 4) == "A",
                             .nullable = !is(5),
                             .has_default = is(6) && !is(7),
                             .generated = is(7)});
  }
  for (int row = 0; row < answers[1].rows(); ++row) {
    table.key.emplace_back(answers[1].Text(row, 0));
  }
  return table;
}

}  // namespace muster::sql
