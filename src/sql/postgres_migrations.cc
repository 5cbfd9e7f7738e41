#include "sql/postgres_migrations.h"

#include "core/schema_version.h"
#include "sql/postgres_schema.h"

namespace muster::sql {
namespace {

std::string NameOf(const std::string& space, const PgMigrations& migrations) {
  const std::string schema = "schema " + space;
  return migrations.what.empty() ? schema : std::string(migrations.what) + " in " + schema;
}

// 0: no tables yet.
Result<int> ReadVersion(PgConnection& connection, const std::string& space,
                        const PgMigrations& migrations) {
  MUSTER_ASSIGN(const bool versioned, PgTableExists(connection, space, migrations.version_table));
  if (versioned) {
    MUSTER_ASSIGN(const PgResult version,
                  RunPlain(connection,
                           InPgSchema("SELECT coalesce(max(version), 0) FROM $S." +
                                          std::string(migrations.version_table),
                                      space),
                           false));
    return version.Int32(0, 0);
  }
  if (migrations.unversioned.empty()) return 0;
  MUSTER_ASSIGN(const bool old, PgTableExists(connection, space, migrations.unversioned));
  return old ? 1 : 0;
}

Status CheckNotNewer(const PgConnection& connection, const std::string& space,
                     const PgMigrations& migrations, int version) {
  const auto newest = static_cast<int>(migrations.steps.size());
  if (version <= newest) return {};
  return NewerSchema(connection.Place(), NameOf(space, migrations), version, newest);
}

Status CreateVersionTable(PgConnection& connection, const std::string& space,
                          const std::string& table) {
  MUSTER_ASSIGN(const bool there, PgTableExists(connection, space, table));
  if (there) return {};
  MUSTER_TRY(RunPlain(connection,
                      InPgSchema("CREATE TABLE $S." + table +
                                     " (version integer PRIMARY KEY, applied_at timestamptz NOT "
                                     "NULL DEFAULT now())",
                                 space)));
  MUSTER_TRY(RunPlain(connection, InPgSchema("COMMENT ON TABLE $S." + table +
                                                 " IS 'The migrations that were applied; the "
                                                 "highest version counts'",
                                             space)));
  // Every role that uses the tables reads the version first. Roles that were given the other tables
  // before this one existed must not be locked out; a role without USAGE on the schema still is.
  MUSTER_TRY(RunPlain(connection, InPgSchema("GRANT SELECT ON $S." + table + " TO PUBLIC", space)));
  return {};
}

Status Migrate(PgConnection& connection, const std::string& space, const PgMigrations& migrations) {
  MUSTER_TRY(RunPlain(connection, "BEGIN"));
  MUSTER_TRY(connection.Execute(
      PgStatement{"", "SELECT pg_advisory_xact_lock(hashtextextended('muster ' || $1::text, 0))"},
      PgParams().Text(space)));
  // Another process may have migrated while we waited for the lock.
  MUSTER_ASSIGN(const int version, ReadVersion(connection, space, migrations));
  MUSTER_TRY(CheckNotNewer(connection, space, migrations, version));
  // IF NOT EXISTS alone would require permission to create a schema that exists.
  MUSTER_ASSIGN(const bool exists, PgSchemaExists(connection, space));
  if (!exists) MUSTER_TRY(RunPlain(connection, InPgSchema("CREATE SCHEMA $S", space)));
  const std::string table(migrations.version_table);
  MUSTER_TRY(CreateVersionTable(connection, space, table));
  for (size_t next = static_cast<size_t>(version); next < migrations.steps.size(); ++next) {
    for (const std::string& sql : migrations.steps[next]) {
      MUSTER_TRY(RunPlain(connection, InPgSchema(sql, space)));
    }
    MUSTER_TRY(connection.Execute(
        PgStatement{"", InPgSchema("INSERT INTO $S." + table + " VALUES ($1)", space)},
        PgParams().Int32(static_cast<int>(next) + 1)));
  }
  MUSTER_TRY(RunPlain(connection, "COMMIT"));
  return {};
}

}  // namespace

Status MigratePgTables(PgConnection& connection, const std::string& space,
                       const PgMigrations& migrations) {
  MUSTER_ASSIGN(const int version, ReadVersion(connection, space, migrations));
  MUSTER_TRY(CheckNotNewer(connection, space, migrations, version));
  if (version == static_cast<int>(migrations.steps.size())) return {};
  const Status migrated = Migrate(connection, space, migrations);
  if (migrated) return {};
  // Don't leave a transaction open.
  if (connection.Usable()) static_cast<void>(RunPlain(connection, "ROLLBACK"));
  Error error =
      migrated.error().Within(NameOf(space, migrations) + " cannot be created or migrated");
  if (error.code == Code::kPermission) {
    error.hint = version == 0 ? "grant the role CREATE on the database or on the schema, or let a "
                                "role that has it run this first"
                              : "let the owner of the tables run this first";
  }
  return error;
}

}  // namespace muster::sql
