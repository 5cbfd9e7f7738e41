#include "replica/postgres_read_model_schema.h"

namespace muster::replica {
namespace {

std::vector<std::string> Version1() {
  return {
      // Rows are updated with every batch: spare room keeps updates on the page (HOT).
      R"(CREATE TABLE $S.checkpoints (
           replica_set text    NOT NULL,
           projection  text    NOT NULL,
           version     integer NOT NULL,
           slot        integer NOT NULL,
           generation  bigint  NOT NULL,
           position    bigint  NOT NULL,
           handled     bigint  NOT NULL DEFAULT 0,
           digest      bigint  NOT NULL DEFAULT 0,
           skipped     bigint  NOT NULL DEFAULT 0,
           effects_until bigint NOT NULL DEFAULT -1,
           PRIMARY KEY (replica_set, projection, version, slot))
         WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0,
               autovacuum_vacuum_threshold = 5000))",
      R"(CREATE TABLE $S.parked_streams (
           replica_set text    NOT NULL,
           projection  text    NOT NULL,
           version     integer NOT NULL,
           stream      text    NOT NULL,
           slot        integer NOT NULL,
           error       text    NOT NULL,
           replay      boolean NOT NULL DEFAULT false,
           parked_at   timestamptz NOT NULL DEFAULT now(),
           PRIMARY KEY (replica_set, projection, version, stream)))",
      R"(CREATE TABLE $S.parked_events (
           replica_set   text    NOT NULL,
           projection    text    NOT NULL,
           version       integer NOT NULL,
           stream        text    NOT NULL,
           event_version bigint  NOT NULL,
           side_effects  boolean NOT NULL DEFAULT true,
           PRIMARY KEY (replica_set, projection, version, stream, event_version)))",
      "COMMENT ON TABLE $S.checkpoints IS 'How far each slot of a projection is. A commit of an "
      "older generation than stands here fails'",
      "COMMENT ON TABLE $S.parked_streams IS 'Streams with an event that failed for good'",
      "COMMENT ON TABLE $S.parked_events IS 'Their events that wait to be replayed, in order'",
  };
}

// Some of these columns were added before there were versions.
std::vector<std::string> Version2() {
  return {
      "ALTER TABLE $S.checkpoints ADD COLUMN IF NOT EXISTS skipped bigint NOT NULL DEFAULT 0, "
      "ADD COLUMN IF NOT EXISTS effects_until bigint NOT NULL DEFAULT -1, "
      "ADD COLUMN mark_position bigint NOT NULL DEFAULT 0, "
      "ADD COLUMN mark bigint NOT NULL DEFAULT 0",
      "ALTER TABLE $S.parked_events ADD COLUMN IF NOT EXISTS side_effects boolean NOT NULL DEFAULT "
      "true",
      "COMMENT ON COLUMN $S.checkpoints.mark_position IS 'The last event of the log at or before "
      "position; 0: not known'",
      "COMMENT ON COLUMN $S.checkpoints.mark IS 'Its fingerprint: with another event in its place, "
      "the log was replaced or restored from a backup'",
  };
}

}  // namespace

const sql::PgMigrations& PostgresReadModelTables() {
  static const sql::PgMigrations kAll{.what = "the read model",
                                      .version_table = "checkpoints_version",
                                      .unversioned = "checkpoints",
                                      .steps = {Version1(), Version2()}};
  return kAll;
}

}  // namespace muster::replica
