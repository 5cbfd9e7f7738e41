#include "events/postgres_setup.h"

namespace muster {
namespace {

Status CreateTables(PgConnection& connection, const std::string& space, std::string_view table,
                    std::span<const std::string> statements) {
  MUSTER_TRY(RunPlain(connection, "BEGIN"));
  MUSTER_TRY(connection.Execute(
      PgStatement{"", "SELECT pg_advisory_xact_lock(hashtextextended('muster ' || $1::text, 0))"},
      PgParams().Text(space)));
  // Another process may have created them while we waited for the lock.
  MUSTER_ASSIGN(const bool exists, PgTableExists(connection, space, table));
  if (!exists) {
    MUSTER_ASSIGN(const bool schema_exists, PgSchemaExists(connection, space));
    if (!schema_exists) {
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

Status SetUpPostgres(PgConnection& connection, const std::string& space, std::string_view table,
                     std::span<const std::string> statements) {
  MUSTER_ASSIGN(const bool exists, PgTableExists(connection, space, table));
  if (exists) return {};
  auto created = CreateTables(connection, space, table, statements);
  if (created) return {};
  // Don't leave a transaction open.
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
