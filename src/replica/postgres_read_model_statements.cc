#include "replica/postgres_read_model_statements.h"

#include "replica/read_model.h"
#include "sql/postgres_schema.h"

namespace muster::replica {
namespace {

constexpr std::string_view kWhich =
    "replica_set = $1::text AND projection = $2::text AND version = $3::integer";
// As SlotState has them.
constexpr std::string_view kSlotColumns =
    "c.slot, c.generation, c.position, c.handled, c.digest, c.skipped, c.effects_until, "
    "c.mark_position, c.mark";

// The condition qualified with a table alias.
std::string Of(const std::string& alias, std::string_view which) {
  std::string text;
  for (size_t at = 0; at < which.size();) {
    for (const std::string_view name : {"replica_set", "projection", "version"}) {
      if (which.compare(at, name.size(), name) != 0) continue;
      text += alias + ".";
      break;
    }
    const size_t next = which.find(' ', at);
    text += which.substr(at, next == std::string::npos ? next : next - at + 1);
    if (next == std::string::npos) break;
    at = next + 1;
  }
  return text;
}

// Fails the transaction, by the same cast as `move`, if fewer rows were found than required.
std::string AllOf(const std::string& found, const std::string& wanted) {
  return "WITH found AS (" + found +
         "), n AS (SELECT count(*) AS n FROM found) SELECT CASE WHEN n.n = cardinality(" + wanted +
         ") THEN 0 ELSE ('" + std::string(kFenced) + "' || n.n)::integer END FROM n";
}

}  // namespace

PostgresReadModelStatements::PostgresReadModelStatements(const std::string& space) {
  SetCheckpoints(space);
  SetParking(space);
  SetSwap(space);
  SetTakeOver(space);
  for (const char* table : {"checkpoints", "parked_streams", "parked_events"}) {
    forget.push_back(
        {std::string("forget_") + table,
         sql::InPgSchema("DELETE FROM $S." + std::string(table) + " WHERE " + std::string(kWhich),
                         space)});
  }
}

void PostgresReadModelStatements::SetTakeOver(const std::string& space) {
  limit_waits = {"limit_waits", "SELECT set_config('lock_timeout', '1s', true)"};
  // Sessions that have changed checkpoints and are idle in a transaction: their client was stopped
  // in the middle of a batch, or cut off. If it is alive, it belongs to an older generation. They
  // have been idle for about as long as this session has waited for their locks; only about, since
  // the two are measured by different clocks.
  end_stalled = {
      "end_stalled",
      sql::InPgSchema(
          "SELECT a.pid, coalesce(a.usename, ''), a.state, CASE WHEN a.usename = current_user OR "
          "pg_has_role(a.usename, 'USAGE') THEN pg_terminate_backend(a.pid) ELSE false END FROM "
          "pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid WHERE l.locktype = 'relation' AND "
          "l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND "
          "l.relation = '$S.checkpoints'::regclass AND l.mode = 'RowExclusiveLock' AND l.granted "
          "AND a.pid <> pg_backend_pid() AND a.wait_event = 'ClientRead' AND "
          "clock_timestamp() - a.state_change > interval '500 milliseconds' ORDER BY 1",
          space)};
}

void PostgresReadModelStatements::SetCheckpoints(const std::string& space) {
  const auto in = [&](std::string_view sql) { return sql::InPgSchema(sql, space); };
  const std::string which(kWhich);
  create = {"create",
            in("INSERT INTO $S.checkpoints (replica_set, projection, version, slot, generation, "
               "position) SELECT $1::text, $2::text, $3::integer, s, 0, 0 FROM "
               "unnest($4::integer[]) s ORDER BY s ON CONFLICT DO NOTHING")};
  // In slot order, so that concurrent takeovers do not deadlock.
  raise = {"raise",
           in("WITH mine AS (SELECT slot FROM $S.checkpoints WHERE " + which +
              " AND slot = ANY ($4::integer[]) AND generation <= $5::bigint ORDER BY slot FOR "
              "UPDATE), n AS (SELECT count(*) AS n FROM mine) UPDATE $S.checkpoints c SET "
              "generation = $5::bigint FROM mine, n WHERE " +
              which + " AND c.slot = mine.slot AND n.n = cardinality($4::integer[]) RETURNING " +
              std::string(kSlotColumns))};
  // Fails as a whole if any slot is in another generation or at another position. Each slot's
  // values are in arrays at its index: for a join, the planner, without statistics, would scan
  // the table once per slot.
  const auto at_slot = [](int parameter) {
    return "($" + std::to_string(parameter) + "::bigint[])[c.slot - $5::integer + 1]";
  };
  move = {"move", in("WITH moved AS (UPDATE $S.checkpoints c SET position = " + at_slot(8) +
                     ", handled = c.handled + " + at_slot(9) + ", digest = c.digest # " +
                     at_slot(10) + ", skipped = c.skipped + " + at_slot(12) +
                     ", mark_position = CASE WHEN " + at_slot(13) +
                     " = 0 THEN c.mark_position ELSE " + at_slot(13) + " END, mark = CASE WHEN " +
                     at_slot(13) + " = 0 THEN c.mark ELSE " + at_slot(14) + " END WHERE " + which +
                     " AND c.slot = ANY ($4::integer[]) AND c.generation = " + at_slot(6) +
                     " AND c.position = " + at_slot(7) + " AND c.effects_until = " + at_slot(11) +
                     " RETURNING 1), n AS (SELECT count(*) AS n FROM moved) SELECT CASE WHEN n.n = "
                     "cardinality($4::integer[]) THEN 0 ELSE ('" +
                     std::string(kFenced) + "' || n.n)::integer END FROM n")};
  slots = {"slots",
           in("SELECT " + std::string(kSlotColumns) + " FROM $S.checkpoints c WHERE " + which +
              " ORDER BY slot"),
           false};
  highest = {"highest",
             in("SELECT coalesce(max(generation), 0) FROM $S.checkpoints WHERE replica_set = "
                "$1::text"),
             false};
  put = {"put",
         in("INSERT INTO $S.checkpoints AS c (replica_set, projection, version, slot, "
            "generation, position) SELECT $1::text, $2::text, $3::integer, s.slot, 0, s.position "
            "FROM unnest($4::integer[], $5::bigint[]) s(slot, position) ORDER BY s.slot ON "
            "CONFLICT (replica_set, projection, version, slot) DO UPDATE SET position = "
            "excluded.position, mark_position = 0, mark = 0, handled = CASE WHEN $6::integer = 1 "
            "THEN 0 ELSE c.handled END, "
            "digest = CASE WHEN $6::integer = 1 THEN 0 ELSE c.digest END, "
            "skipped = CASE WHEN $6::integer = 1 THEN 0 ELSE c.skipped END")};
  count_skipped = {"count_skipped", in("UPDATE $S.checkpoints SET skipped = skipped + 1 WHERE " +
                                       which + " AND slot = $4::integer")};
}

void PostgresReadModelStatements::SetParking(const std::string& space) {
  const auto in = [&](std::string_view sql) { return sql::InPgSchema(sql, space); };
  const std::string which(kWhich);
  are_parked = {"are_parked",
                in(AllOf("SELECT 1 FROM $S.parked_streams WHERE " + which +
                             " AND stream = ANY ($4::text[]) ORDER BY stream FOR UPDATE",
                         "$4::text[]"))};
  park_streams = {"park_streams",
                  in("INSERT INTO $S.parked_streams (replica_set, projection, version, stream, "
                     "slot, error) SELECT DISTINCT ON (s.stream) $1::text, $2::text, "
                     "$3::integer, s.stream, s.slot, $6::text FROM unnest($4::text[], "
                     "$5::integer[]) s(stream, slot) ORDER BY s.stream ON CONFLICT "
                     "(replica_set, projection, version, stream) DO UPDATE SET error = "
                     "$6::text, replay = false")};
  park_events = {"park_events",
                 in("INSERT INTO $S.parked_events (replica_set, projection, version, stream, "
                    "event_version, side_effects) SELECT $1::text, $2::text, $3::integer, "
                    "e.stream, e.version, e.effects <> 0 FROM unnest($4::text[], $5::bigint[], "
                    "$6::integer[]) e(stream, version, effects) ON CONFLICT DO NOTHING")};
  fail_replay = {
      "fail_replay",
      in(AllOf("UPDATE $S.parked_streams s SET error = $6::text, replay = false FROM "
               "$S.parked_events e WHERE " +
                   Of("s", which) + " AND " + Of("e", which) +
                   " AND e.stream = s.stream AND s.stream = ANY ($4::text[]) AND e.event_version "
                   "= ANY ($5::bigint[]) RETURNING 1",
               "$4::text[]"))};
  free_events = {"free_events",
                 in(AllOf("DELETE FROM $S.parked_events p USING unnest($4::text[], $5::bigint[]) "
                          "e(stream, version) WHERE " +
                              Of("p", which) +
                              " AND p.stream = e.stream AND p.event_version = e.version "
                              "RETURNING 1",
                          "$4::text[]"))};
  free_streams = {"free_streams", in("DELETE FROM $S.parked_streams s WHERE " + Of("s", which) +
                                     " AND stream = ANY ($4::text[]) AND NOT EXISTS (SELECT 1 FROM "
                                     "$S.parked_events e WHERE " +
                                     Of("e", which) + " AND e.stream = s.stream)")};
  parked = {"parked",
            in("SELECT s.slot, s.stream, s.error, s.replay::integer, e.event_version, "
               "e.side_effects::integer FROM $S.parked_streams s JOIN $S.parked_events e USING "
               "(replica_set, projection, "
               "version, stream) WHERE " +
               which + " AND s.slot = ANY ($4::integer[]) ORDER BY s.stream, e.event_version"),
            false};
  forget_skipped = {
      "forget_skipped",
      in("UPDATE $S.parked_streams s SET error = $6::text WHERE " + Of("s", which) +
         " AND stream = $4::text AND NOT EXISTS (SELECT 1 FROM $S.parked_events e "
         "WHERE " +
         Of("e", which) + " AND e.stream = s.stream AND e.event_version < $5::bigint)")};
  ask = {"ask", in("UPDATE $S.parked_streams SET replay = true WHERE " + which +
                   " AND ($4::text = '' OR stream = $4::text)")};
  unpark_events = {
      "unpark_events",
      in("DELETE FROM $S.parked_events e USING $S.parked_streams s WHERE " + Of("e", which) +
         " AND " + Of("s", which) + " AND e.stream = s.stream AND s.slot = ANY ($4::integer[])")};
  unpark_streams = {"unpark_streams", in("DELETE FROM $S.parked_streams WHERE " + which +
                                         " AND slot = ANY ($4::integer[])")};
}

// Parameters: set, projection, the old version, the new one and, with `slots`, their number.
// Locks all rows before reading any.
void PostgresReadModelStatements::SetSwap(const std::string& space) {
  const std::string set = "replica_set = $1::text AND projection = $2::text AND version";
  const std::string old_row =
      "c.replica_set = $1::text AND c.projection = $2::text AND "
      "c.version = $3::integer";
  const std::string new_row =
      "o.replica_set = $1::text AND o.projection = $2::text AND "
      "o.version = $4::integer";
  const std::string always = std::to_string(kEffectsAlways);
  for (const std::string& sql :
       {"INSERT INTO $S.checkpoints (replica_set, projection, version, slot, generation, "
        "position) SELECT replica_set, projection, $3::integer, slot, 0, 0 FROM $S.checkpoints "
        "WHERE " +
            set + " = $4::integer ORDER BY slot ON CONFLICT DO NOTHING",
        "SELECT 1 FROM $S.checkpoints WHERE " + set +
            " IN ($3::integer, $4::integer) ORDER BY version, slot FOR UPDATE",
        "SELECT CASE WHEN count(*) = $5::integer THEN 0 ELSE ('" + std::string(kFenced) +
            "' || count(*))::integer END FROM $S.checkpoints c JOIN $S.checkpoints o ON o.slot = "
            "c.slot AND o.position >= c.position WHERE " +
            old_row + " AND " + new_row + " AND c.version <> o.version",
        "UPDATE $S.checkpoints c SET effects_until = o.position FROM $S.checkpoints o WHERE " +
            old_row + " AND " + new_row + " AND o.slot = c.slot AND o.effects_until <> " + always,
        "UPDATE $S.checkpoints SET effects_until = " + always + " WHERE " + set +
            " = $4::integer AND $3::integer <> $4::integer"}) {
    swap.push_back(
        {"swap" + std::to_string(swap.size()), sql::InPgSchema(sql, space), /*prepared=*/true});
  }
}

}  // namespace muster::replica
