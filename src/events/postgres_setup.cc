#include "events/postgres_setup.h"

namespace muster {
namespace {

Result<bool> TableExists(PgConnection& connection, const std::string& space,
                         std::string_view table) {
  static const PgStatement kTables{"",
                                   "SELECT count(*) FROM pg_catalog.pg_class c"
                                   " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
                                   " WHERE n.nspname = $1::text AND c.relname = $2::text",
                                   false};
  MUSTER_ASSIGN(const PgResult found,
                connection.Execute(kTables, PgParams().Text(space).Text(table)));
  return found.Int64(0, 0) != 0;
}

Status CreateTables(PgConnection& connection, const std::string& space, std::string_view table,
                    std::span<const std::string> statements) {
  MUSTER_TRY(RunPlain(connection, "BEGIN"));
  MUSTER_TRY(connection.Execute(
      PgStatement{"", "SELECT pg_advisory_xact_lock(hashtextextended('muster ' || $1::text, 0))"},
      PgParams().Text(space)));
  // Another process may have created them while this one waited for the lock.
  MUSTER_ASSIGN(const bool exists, TableExists(connection, space, table));
  if (!exists) {
    static const PgStatement kSchemas{
        "", "SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = $1::text", false};
    MUSTER_ASSIGN(const PgResult schemas, connection.Execute(kSchemas, PgParams().Text(space)));
    if (schemas.Int64(0, 0) == 0) {
      MUSTER_TRY(RunPlain(connection, InPgSchema("CREATE SCHEMA $S", space)));
    }
    for (const std::string& sql : statements) {
      MUSTER_TRY(RunPlain(connection, InPgSchema(sql, space)));
    }
  }
  MUSTER_TRY(RunPlain(connection, "COMMIT"));
  return {};
}

}  // namespace

std::string InPgSchema(std::string_view sql, const std::string& space) {
  const std::string schema = PgIdentifier(space);
  std::string text;
  for (size_t at = 0; at < sql.size();) {
    const size_t mark = sql.find("$S", at);
    text += sql.substr(at, mark - at);
    if (mark == std::string_view::npos) break;
    text += schema;
    at = mark + 2;
  }
  return text;
}

Result<PgResult> RunPlain(PgConnection& connection, std::string sql, bool writes) {
  return connection.Execute(PgStatement{"", std::move(sql), writes}, PgParams());
}

Status SetUpPostgres(PgConnection& connection, const std::string& space, std::string_view table,
                     std::span<const std::string> statements) {
  MUSTER_ASSIGN(const bool exists, TableExists(connection, space, table));
  if (exists) return {};
  auto created = CreateTables(connection, space, table, statements);
  if (created) return {};
  // Whatever was begun must not stay open.
  if (connection.Usable()) static_cast<void>(RunPlain(connection, "ROLLBACK"));
  Error error =
      created.error().Within("table " + space + "." + std::string(table) + " cannot be created");
  if (error.code == Code::kPermission) {
    error.hint =
        "grant the role CREATE on the database or on the schema, or let one that has it "
        "run this first";
  }
  return error;
}

}  // namespace muster
