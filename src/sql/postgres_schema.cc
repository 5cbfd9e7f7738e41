#include "sql/postgres_schema.h"

namespace muster::sql {

std::string InPgSchema(std::string_view sql, const std::string& schema) {
  const std::string quoted = PgIdentifier(schema);
  std::string text;
  for (size_t at = 0; at < sql.size();) {
    const size_t mark = sql.find("$S", at);
    text += sql.substr(at, mark - at);
    if (mark == std::string_view::npos) break;
    text += quoted;
    at = mark + 2;
  }
  return text;
}

Result<PgResult> RunPlain(PgConnection& connection, std::string sql, bool writes) {
  return connection.Execute(PgStatement{"", std::move(sql), writes}, PgParams());
}

Result<bool> PgSchemaExists(PgConnection& connection, const std::string& schema) {
  static const PgStatement kSchemas{
      "", "SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = $1::text", false};
  MUSTER_ASSIGN(const PgResult found, connection.Execute(kSchemas, PgParams().Text(schema)));
  return found.Int64(0, 0) != 0;
}

Result<bool> PgTableExists(PgConnection& connection, const std::string& schema,
                           std::string_view table) {
  static const PgStatement kTables{"",
                                   "SELECT count(*) FROM pg_catalog.pg_class c"
                                   " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
                                   " WHERE n.nspname = $1::text AND c.relname = $2::text",
                                   false};
  MUSTER_ASSIGN(const PgResult found,
                connection.Execute(kTables, PgParams().Text(schema).Text(table)));
  return found.Int64(0, 0) != 0;
}

}  // namespace muster::sql
