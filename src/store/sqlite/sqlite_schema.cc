#include "store/sqlite/sqlite_schema.h"

#include <iterator>

namespace muster::store {
namespace {

// Step i migrates from version i to i + 1. Released steps are never edited. $ is the namespace.
constexpr const char* kMigrations[] = {
    R"(
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

CREATE TABLE $_schema (version INTEGER NOT NULL) STRICT;
INSERT INTO $_schema VALUES (1);
)"};
static_assert(std::size(kMigrations) == kSqliteSchemaVersion);

std::string For(const std::string& space, std::string_view sql) {
  std::string text;
  for (const char c : sql) {
    if (c == '$') {
      text += space;
    } else {
      text += c;
    }
  }
  return text;
}

Error Newer(const std::string& space, int version) {
  return {Code::kIncompatible,
          "namespace '" + space + "' has schema version " + std::to_string(version) +
              ", this muster knows versions up to " + std::to_string(kSqliteSchemaVersion),
          "use the newer muster that wrote it, or another namespace"};
}

}  // namespace

Result<int> SqliteSchemaVersion(sql::SqliteDb& db, const std::string& space) {
  MUSTER_ASSIGN(
      const int64_t tables,
      db.QueryInt(For(space, "SELECT count(*) FROM sqlite_schema WHERE name = '$_schema'")));
  if (tables == 0) return 0;
  MUSTER_ASSIGN(const int64_t version, db.QueryInt(For(space, "SELECT version FROM $_schema")));
  return static_cast<int>(version);
}

Status MigrateSqlite(sql::SqliteDb& db, const std::string& space) {
  MUSTER_ASSIGN(int version, SqliteSchemaVersion(db, space));
  if (version > kSqliteSchemaVersion) return Newer(space, version);
  if (version == kSqliteSchemaVersion) return {};
  MUSTER_ASSIGN(sql::SqliteTransaction transaction, sql::SqliteTransaction::Begin(db));
  // Another process may have migrated before we got the lock.
  MUSTER_ASSIGN(version, SqliteSchemaVersion(db, space));
  if (version > kSqliteSchemaVersion) return Newer(space, version);
  for (int step = version; step < kSqliteSchemaVersion; ++step) {
    MUSTER_TRY(db.Execute(For(space, kMigrations[step])));
  }
  MUSTER_TRY(db.Execute(
      For(space, "UPDATE $_schema SET version = " + std::to_string(kSqliteSchemaVersion))));
  return transaction.Commit();
}

}  // namespace muster::store
