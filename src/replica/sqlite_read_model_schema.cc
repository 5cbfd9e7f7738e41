#include "replica/sqlite_read_model_schema.h"

namespace muster::replica {
namespace {

// $_ is the namespace.
constexpr std::string_view kVersion1 = R"(
CREATE TABLE $_checkpoints (
  replica_set TEXT    NOT NULL,
  projection  TEXT    NOT NULL,
  version     INTEGER NOT NULL,
  slot        INTEGER NOT NULL,
  generation  INTEGER NOT NULL,  -- the fence
  position    INTEGER NOT NULL,
  handled     INTEGER NOT NULL DEFAULT 0,
  digest      INTEGER NOT NULL DEFAULT 0,
  skipped     INTEGER NOT NULL DEFAULT 0,
  effects_until INTEGER NOT NULL DEFAULT -1,
  PRIMARY KEY (replica_set, projection, version, slot)
) STRICT, WITHOUT ROWID;
CREATE TABLE $_parked_streams (
  replica_set TEXT    NOT NULL,
  projection  TEXT    NOT NULL,
  version     INTEGER NOT NULL,
  stream      TEXT    NOT NULL,
  slot        INTEGER NOT NULL,
  error       TEXT    NOT NULL,
  replay      INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (replica_set, projection, version, stream)
) STRICT, WITHOUT ROWID;
CREATE TABLE $_parked_events (
  replica_set   TEXT    NOT NULL,
  projection    TEXT    NOT NULL,
  version       INTEGER NOT NULL,
  stream        TEXT    NOT NULL,
  event_version INTEGER NOT NULL,
  side_effects  INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (replica_set, projection, version, stream, event_version)
) STRICT, WITHOUT ROWID;
)";

// Some of these columns were added before there were versions.
Status ToVersion2(sql::SqliteDb& db, const std::string& space) {
  constexpr std::pair<std::string_view, std::string_view> kColumns[] = {
      {"$_checkpoints", "skipped INTEGER NOT NULL DEFAULT 0"},
      {"$_checkpoints", "effects_until INTEGER NOT NULL DEFAULT -1"},
      // The last event of the log at or before `position`, and its fingerprint; 0: not known.
      {"$_checkpoints", "mark_position INTEGER NOT NULL DEFAULT 0"},
      {"$_checkpoints", "mark INTEGER NOT NULL DEFAULT 0"},
      {"$_parked_events", "side_effects INTEGER NOT NULL DEFAULT 1"},
  };
  for (const auto& [table, column] : kColumns) {
    MUSTER_TRY(sql::AddSqliteColumn(db, sql::InSqliteSpace(table, space), column));
  }
  return {};
}

}  // namespace

const sql::SqliteMigrations& SqliteReadModelTables() {
  static const sql::SqliteMigrations kAll{.what = "the read model",
                                          .version_table = "$_checkpoints_schema",
                                          .unversioned = "$_checkpoints",
                                          .steps = {sql::SqliteStatements(kVersion1), ToVersion2}};
  return kAll;
}

}  // namespace muster::replica
