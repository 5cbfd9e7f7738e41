#include "sql/table_format.h"

#include "core/number.h"
#include "core/schema_version.h"

namespace muster::sql {
namespace {

Status CheckNotNewer(std::string_view version, const std::string& place,
                     const RecordFormat& table) {
  const auto found = ParseNumber<int>(version);
  const std::string name = "table " + std::string(table.name);
  if (!found)
    return Error{Code::kIncompatible, place + ": " + name + " has no version that can be read",
                 "use another target, or drop it if no run needs it any more"};
  const auto known = static_cast<int>(table.version);
  if (*found <= known) return {};
  Error newer = NewerSchema(place, name, *found, known);
  newer.hint = "upgrade muster to the version that wrote it, or use another target";
  return newer;
}

}  // namespace

std::string FormatColumn(const RecordFormat& table) {
  return "format integer NOT NULL DEFAULT " + std::to_string(table.version);
}

Status CheckSqliteTable(SqliteDb& db, const RecordFormat& table) {
  MUSTER_ASSIGN(auto version, db.Prepare("SELECT coalesce(dflt_value, '') FROM"
                                         " pragma_table_info(?1) WHERE name = 'format'"));
  const std::string name(table.name);
  version.Bind(name);
  MUSTER_ASSIGN(const bool versioned, version.Step());
  return versioned ? CheckNotNewer(version.Text(0), "the SQLite target", table) : Status();
}

Result<bool> FindPgTable(PgConnection& connection, const std::string& name,
                         const RecordFormat& table) {
  const PgStatement find{"",
                         "SELECT coalesce((SELECT pg_get_expr(d.adbin, d.adrelid) FROM pg_attrdef d"
                         " JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum"
                         " WHERE d.adrelid = to_regclass($1) AND a.attname = 'format'), '0')"
                         " WHERE to_regclass($1) IS NOT NULL",
                         false};
  PgParams params;
  params.Text(name);
  MUSTER_ASSIGN(const PgResult found, connection.Execute(find, params));
  if (found.rows() == 0) return false;
  MUSTER_TRY(CheckNotNewer(found.Text(0, 0), connection.Place(), table));
  return true;
}

}  // namespace muster::sql
