#include "events/postgres_setup.h"

namespace muster::events {
namespace {

Status CreateTables(sql::PgConnection& connection, const std::string& space, std::string_view table,
                    std::span<const std::string> statements) {
  MUSTER_TRY(sql::RunPlain(connection, "BEGIN"));
  MUSTER_TRY(connection.Execute(
      sql::PgStatement{"",
                       "SELECT pg_advisory_xact_lock(hashtextextended('muster ' || $1::text, 0))"},
      sql::PgParams().Text(space)));
  // Another process may have created them while we waited for the lock.
  MUSTER_ASSIGN(const bool exists, sql::PgTableExists(connection, space, table));
  if (!exists) {
    MUSTER_ASSIGN(const bool schema_exists, sql::PgSchemaExists(connection, space));
    if (!schema_exists) {
      MUSTER_TRY(sql::RunPlain(connection, sql::InPgSchema("CREATE SCHEMA $S", space)));
    }
    for (const std::string& sql : statements) {
      MUSTER_TRY(sql::RunPlain(connection, sql::InPgSchema(sql, space)));
    }
  }
  MUSTER_TRY(sql::RunPlain(connection, "COMMIT"));
  return {};
}

}  // namespace

Status SetUpPostgres(sql::PgConnection& connection, const std::string& space,
                     std::string_view table, std::span<const std::string> statements) {
  MUSTER_ASSIGN(const bool exists, sql::PgTableExists(connection, space, table));
  if (exists) return {};
  auto created = CreateTables(connection, space, table, statements);
  if (created) return {};
  // Don't leave a transaction open.
  if (connection.Usable()) static_cast<void>(sql::RunPlain(connection, "ROLLBACK"));
  Error error =
      created.error().Within("table " + space + "." + std::string(table) + " cannot be created");
  if (error.code == Code::kPermission) {
    error.hint =
        "grant the role CREATE on the database or on the schema, or let one that has it "
        "run this first";
  }
  return error;
}

}  // namespace muster::events
