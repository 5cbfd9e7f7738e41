#include "store/sqlite/sqlite_schema.h"

#include <string_view>

#include "sql/sqlite_migrations.h"

namespace muster::store {
namespace {

// $_ is the namespace.
constexpr std::string_view kVersion1 = R"(
CREATE TABLE $_records (
  kind     TEXT    NOT NULL,
  queue    TEXT    NOT NULL,
  key      TEXT    NOT NULL,
  version  INTEGER NOT NULL,
  due      INTEGER,           -- milliseconds since 1970; NULL: never
  owner    TEXT    NOT NULL,  -- empty: free
  epoch    INTEGER NOT NULL,
  attempt  INTEGER NOT NULL,
  claim_id TEXT    NOT NULL,
  body     TEXT    NOT NULL,  -- JSON
  PRIMARY KEY (kind, key)
) STRICT;

-- Finished records are not in it, so that a claim costs the same however many there are.
CREATE INDEX $_records_due ON $_records (kind, queue, due) WHERE due IS NOT NULL;

-- For people: what is where, in words, and how much of it.
CREATE VIEW $_status AS
  SELECT kind, queue, key,
         CASE WHEN due IS NULL THEN 'never due'
              WHEN due <= (julianday('now') - 2440587.5) * 86400000.0 THEN 'due'
              WHEN owner = '' THEN 'waiting'
              ELSE 'leased' END AS state,
         strftime('%Y-%m-%d %H:%M:%f', due / 1000.0, 'unixepoch') AS due,
         owner, epoch, attempt, body
  FROM $_records;
CREATE VIEW $_queues AS
  SELECT kind, queue,
         sum(state = 'due') AS due, sum(state = 'leased') AS leased,
         sum(state = 'waiting') AS waiting, sum(state = 'never due') AS never_due,
         count(*) AS records, min(due) AS next_due
  FROM $_status GROUP BY kind, queue;
)";

const sql::SqliteMigrations& Migrations() {
  static const sql::SqliteMigrations kAll{
      .what = "", .version_table = "$_schema", .steps = {sql::SqliteStatements(kVersion1)}};
  return kAll;
}

}  // namespace

Result<int> SqliteSchemaVersion(sql::SqliteDb& db, const std::string& space) {
  return sql::VersionOfSqlite(db, space, Migrations());
}

Status MigrateSqlite(sql::SqliteDb& db, const std::string& space) {
  return sql::MigrateSqliteTables(db, space, Migrations());
}

}  // namespace muster::store
