#include "store/postgres/postgres_schema.h"

#include <iterator>
#include <string_view>

#include "sql/postgres_migrations.h"

namespace muster::store {
namespace {

constexpr int kOldestServer = 130000;
constexpr size_t kMaxIdentifierBytes = 63;  // PostgreSQL truncates silently

// $S is the schema.
constexpr std::string_view kVersion1[] = {
    // Claims and completions update rows, so pages keep room for row versions; vacuum runs by the
    // number of changes, not by the share of a table of mostly finished records.
    R"(CREATE TABLE $S.records (
         kind     text COLLATE "C" NOT NULL,
         queue    text COLLATE "C" NOT NULL,
         key      text COLLATE "C" NOT NULL,
         version  bigint      NOT NULL,
         due      timestamptz,
         owner    text        NOT NULL,
         epoch    bigint      NOT NULL DEFAULT 0,
         attempt  integer     NOT NULL,
         claim_id text        NOT NULL DEFAULT '',
         body     json        NOT NULL,
         PRIMARY KEY (kind, key))
       WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01,
             autovacuum_vacuum_threshold = 5000, autovacuum_analyze_scale_factor = 0.02))",
    // Finished records are never due, so the index does not contain them.
    "CREATE INDEX records_due ON $S.records (kind, queue, due) WHERE due IS NOT NULL",

    "COMMENT ON TABLE $S.records IS "
    "'Everything that must happen later, once, in spite of crashes; the views status and queues "
    "say it in words. "
    "Change it only through muster: every change raises version'",
    "COMMENT ON COLUMN $S.records.kind IS 'What the record is about; with key, its name'",
    "COMMENT ON COLUMN $S.records.queue IS 'Claims are made within one queue'",
    "COMMENT ON COLUMN $S.records.key IS 'Unique within kind'",
    "COMMENT ON COLUMN $S.records.version IS 'Grows by one at every change; starts at random'",
    "COMMENT ON COLUMN $S.records.due IS "
    "'May be claimed from then on; while claimed: when the lease ends; null: never (finished)'",
    "COMMENT ON COLUMN $S.records.owner IS 'Who claimed it last; empty: free'",
    "COMMENT ON COLUMN $S.records.epoch IS 'Grows by one at every claim; sinks are fenced with it'",
    "COMMENT ON COLUMN $S.records.attempt IS 'Claims since the last progress'",
    "COMMENT ON COLUMN $S.records.claim_id IS 'The claim that took it last, to answer a repeat'",
    "COMMENT ON COLUMN $S.records.body IS 'What the kind keeps: body->>''field'''",

    R"(CREATE VIEW $S.status AS
         SELECT kind, queue, key,
                CASE WHEN due IS NULL THEN 'never due'
                     WHEN due <= statement_timestamp() THEN 'due'
                     WHEN owner = '' THEN 'waiting'
                     ELSE 'leased' END AS state,
                due, owner, epoch, attempt, body
         FROM $S.records)",
    "COMMENT ON VIEW $S.status IS "
    "'For people: what is where, in words. due: free to be claimed; leased: held until due; "
    "waiting: free, but due later; never due: finished or set aside, see body'",
    R"(CREATE VIEW $S.queues AS
         SELECT kind, queue,
                count(*) FILTER (WHERE state = 'due') AS due,
                count(*) FILTER (WHERE state = 'leased') AS leased,
                count(*) FILTER (WHERE state = 'waiting') AS waiting,
                count(*) FILTER (WHERE state = 'never due') AS never_due,
                count(*) AS records,
                min(due) AS next_due
         FROM $S.status GROUP BY kind, queue)",
    "COMMENT ON VIEW $S.queues IS 'For people: how many records of each state a queue has'",
};

const sql::PgMigrations& Migrations() {
  static const sql::PgMigrations kAll{.what = "",
                                      .version_table = "schema_version",
                                      .steps = {{std::begin(kVersion1), std::end(kVersion1)}}};
  return kAll;
}

Status CheckServer(const sql::PgConnection& connection) {
  if (connection.ServerVersion() < kOldestServer) {
    return Error{Code::kIncompatible,
                 connection.Place() + " has version " +
                     std::to_string(connection.ServerVersion() / 10000) + ", too old for muster",
                 "use PostgreSQL 13 or later"};
  }
  if (connection.ServerEncoding() != "UTF8") {
    return Error{Code::kIncompatible,
                 connection.Place() + " stores text as " +
                     std::string(connection.ServerEncoding()) + ", not as UTF-8",
                 "use a database created with ENCODING 'UTF8'"};
  }
  return {};
}

}  // namespace

Status MigratePostgres(sql::PgConnection& connection, const std::string& space) {
  MUSTER_TRY(CheckServer(connection));
  if (space.size() > kMaxIdentifierBytes) {
    return Error{Code::kInvalid,
                 "namespace '" + space + "' is longer than the 63 bytes that PostgreSQL allows",
                 "choose a shorter namespace"};
  }
  return sql::MigratePgTables(connection, space, Migrations());
}

}  // namespace muster::store
