#include <algorithm>
#include <functional>
#include <map>

#include "events/backends.h"
#include "events/event_rules.h"
#include "events/postgres_event_reader.h"
#include "sql/postgres_migrations.h"
#include "sql/postgres_schema.h"

namespace muster::events {
namespace {

constexpr int kMaxAppendTries = 20;

// How readers know which positions may still be filled: an appender first takes a shared lock whose
// key is the last position assigned, and only then draws its own, which are greater. A reader takes
// the last position, then the lowest such key: up to the lesser of the two everything has been
// committed or rolled back. The lock is released after the commit becomes visible, so a query
// started after reading the locks sees all of it.
//
// The upper 19 bits of a key distinguish the logs of one database, the lower 44 are the position.
constexpr int kPositionBits = 44;
constexpr int64_t kPositionMask = (int64_t{1} << kPositionBits) - 1;
constexpr int64_t kLogMask = (1 << 19) - 1;

sql::PgMigrations MigrationsFor(int slots) {
  const std::vector<std::string> version1 = {
      "CREATE SEQUENCE $S.events_position",
      R"(CREATE TABLE $S.events (
           position bigint      NOT NULL PRIMARY KEY,
           stream   text COLLATE "C" NOT NULL,
           version  bigint      NOT NULL,
           slot     integer     NOT NULL,
           id       text        NOT NULL,
           type     text        NOT NULL,
           payload  text        NOT NULL,
           metadata text        NOT NULL,
           time     timestamptz NOT NULL DEFAULT now(),
           UNIQUE (stream, version)))",
      "CREATE INDEX events_slot ON $S.events (slot, position)",
      "CREATE TABLE $S.event_log (slots integer NOT NULL)",
      "INSERT INTO $S.event_log VALUES (" + std::to_string(slots) + ")",
      "COMMENT ON TABLE $S.events IS 'The event log. Append through muster only: readers rely on "
      "a lock that appenders take before they draw a position'",
      "COMMENT ON COLUMN $S.events.position IS 'The global order; gaps are appends that failed'",
      "COMMENT ON COLUMN $S.events.slot IS 'By a hash of stream; fixed for ever'",
      "COMMENT ON TABLE $S.event_log IS 'Into how many slots streams are hashed'",
  };
  return {.what = "the event log",
          .version_table = "event_log_version",
          .unversioned = "event_log",
          .steps = {version1}};
}

constexpr std::string_view kColumns =
    "e.position, e.stream, e.version, e.slot, e.id, e.type, e.payload, e.metadata, e.time";

struct LogStatements : ReadStatements {
  explicit LogStatements(const std::string& space) {
    const auto in = [&](std::string_view sql) { return sql::InPgSchema(sql, space); };
    const std::string columns(kColumns);
    announce = {"announce",
                in("SELECT pg_advisory_xact_lock_shared($1::bigint + s.last) FROM (SELECT CASE "
                   "WHEN is_called THEN last_value ELSE 0 END AS last FROM $S.events_position) s")};
    SetAppends(in);
    // Not the sequence: after a crash it may revert to its value on disk, and a reader that had
    // seen a later one would skip the next events. A visible event is on disk.
    last = {"last", in("SELECT coalesce(max(position), 0) FROM $S.events"), false};
    lowest_lock = {
        "lowest_lock",
        "SELECT coalesce(min(key & " + std::to_string(kPositionMask) +
            "), 9223372036854775807) FROM (SELECT (classid::bigint << 32) | objid::bigint AS key "
            "FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND database = "
            "(SELECT oid FROM pg_database WHERE datname = current_database())) l WHERE key >> " +
            std::to_string(kPositionBits) + " = $1::bigint",
        false};
    read_stream = {"read_stream",
                   in(Bounded("SELECT " + columns +
                                  " FROM $S.events e WHERE stream = $1::text AND version > "
                                  "$2::bigint ORDER BY version LIMIT $3::bigint",
                              "version", 4)),
                   false};
    read_all = {"read_all",
                in(Bounded("SELECT " + columns +
                               " FROM $S.events e WHERE position > $1::bigint AND position <= "
                               "$2::bigint ORDER BY position LIMIT $3::bigint",
                           "position", 4)),
                false};
    // Slot by slot along the index: other owners' slots are not even read.
    read_slots = {"read_slots",
                  in(Bounded("SELECT " + columns +
                                 " FROM unnest($1::integer[], $2::bigint[]) s(slot, after) CROSS "
                                 "JOIN LATERAL (SELECT * FROM $S.events x WHERE x.slot = s.slot "
                                 "AND x.position > s.after AND x.position <= $3::bigint ORDER BY "
                                 "x.slot, x.position LIMIT $4::bigint) e ORDER BY e.position "
                                 "LIMIT $4::bigint",
                             "position", 5)),
                  false};
    marks = {"marks",
             in(Marks("SELECT x.position, x.stream, x.version, x.id FROM $S.events x WHERE "
                      "x.position <= p.at ORDER BY x.position DESC LIMIT 1")),
             false};
    lag = {"lag",
           in("SELECT l.n, l.oldest FROM unnest($1::integer[], $2::bigint[]) WITH ORDINALITY "
              "s(slot, after, ord) CROSS JOIN LATERAL (SELECT count(*) AS n, (SELECT time FROM "
              "$S.events y WHERE y.slot = s.slot AND y.position > s.after ORDER BY y.slot, "
              "y.position LIMIT 1) AS oldest FROM (SELECT 1 FROM $S.events x WHERE x.slot = s.slot "
              "AND x.position > s.after ORDER BY x.slot, x.position LIMIT " +
              std::to_string(kMaxCountedLag + 1) + ") x) l ORDER BY s.ord"),
           false};
  }

  void SetAppends(const std::function<std::string(std::string_view)>& in) {
    // One stream: its head is looked up once; the rest is a plain insert.
    append_one = {
        "append_one",
        in("WITH head AS MATERIALIZED (SELECT coalesce((SELECT version FROM $S.events WHERE stream "
           "= $1::text ORDER BY version DESC LIMIT 1), 0) AS at), "
           "added AS (INSERT INTO $S.events (position, stream, version, slot, id, type, payload, "
           "metadata) SELECT nextval('$S.events_position'), $1::text, head.at + n.nth, "
           "$3::integer, n.id, n.type, n.payload, n.metadata FROM head, unnest($4::text[], "
           "$5::text[], $6::text[], $7::text[]) WITH ORDINALITY n(id, type, payload, metadata, "
           "nth) WHERE $2::bigint = -1 OR head.at = $2::bigint RETURNING 1) "
           "SELECT at, (SELECT count(*) FROM added) FROM head")};
    // The heads of all streams are an array that events index into without a join. All appends
    // insert in stream order, so that two of them do not deadlock.
    append_many = {
        "append_many",
        in("WITH heads AS MATERIALIZED (SELECT s.ord, s.needed, coalesce((SELECT version FROM "
           "$S.events e WHERE e.stream = s.stream ORDER BY version DESC LIMIT 1), 0) AS at FROM "
           "unnest($1::text[], $2::bigint[]) WITH ORDINALITY s(stream, needed, ord)), "
           "known AS MATERIALIZED (SELECT array_agg(at ORDER BY ord) AS at, bool_and(needed IN "
           "(-1, at)) AS fit FROM heads), "
           "numbered AS MATERIALIZED (SELECT nextval('$S.events_position') AS position, q.* FROM "
           "(SELECT n.*, k.at[n.part] + n.nth AS version FROM known k CROSS JOIN "
           "unnest($3::bigint[], $4::bigint[], $5::text[], $6::integer[], $7::text[], $8::text[], "
           "$9::text[], $10::text[]) WITH ORDINALITY n(part, nth, stream, slot, id, type, payload, "
           "metadata, line) WHERE k.fit ORDER BY n.line) q), "
           "added AS (INSERT INTO $S.events (position, stream, version, slot, id, type, payload, "
           "metadata) SELECT position, stream, version, slot, id, type, payload, metadata FROM "
           "numbered ORDER BY stream COLLATE \"C\", version RETURNING 1) "
           "SELECT at, (SELECT count(*) FROM added) FROM heads ORDER BY ord")};
  }

  sql::PgStatement announce, append_one, append_many, lowest_lock, lag;
};

// The distinct streams of an append.
struct AppendParts {
  // No stream has this version.
  static constexpr int64_t kNone = -2;

  struct Stream {
    std::string_view name;
    int64_t needed = kAnyVersion;  // before the append
    int64_t events = 0;
  };

  explicit AppendParts(std::span<const StreamAppend> appends) {
    std::map<std::string_view, size_t> index;
    for (const StreamAppend& append : appends) {
      const auto [found, added] = index.try_emplace(append.stream, streams.size());
      if (added) streams.push_back({append.stream});
      of.push_back(found->second);
      Stream& stream = streams[found->second];
      if (append.expected != kAnyVersion) {
        const int64_t before = append.expected - stream.events;
        const bool agrees = stream.needed == kAnyVersion || stream.needed == before;
        stream.needed = agrees && before >= 0 ? before : kNone;
      }
      stream.events += static_cast<int64_t>(append.events.size());
    }
  }

  // The versions after the append, given the streams' versions before it.
  Result<std::vector<int64_t>> Versions(std::span<const StreamAppend> appends,
                                        std::vector<int64_t> heads) const {
    std::vector<int64_t> versions;
    for (size_t i = 0; i < appends.size(); ++i) {
      int64_t& head = heads[of[i]];
      if (appends[i].expected != kAnyVersion && appends[i].expected != head) {
        return WrongVersion(appends[i].stream, appends[i].expected, head);
      }
      versions.push_back(head += static_cast<int64_t>(appends[i].events.size()));
    }
    return versions;
  }

  std::vector<Stream> streams;
  std::vector<size_t> of;  // for each append, the index of its stream
};

size_t CountOf(std::span<const StreamAppend> appends) {
  size_t count = 0;
  for (const StreamAppend& append : appends) count += append.events.size();
  return count;
}

size_t PayloadBytes(std::span<const StreamAppend> appends) {
  size_t bytes = 0;
  for (const StreamAppend& append : appends) {
    for (const NewEvent& event : append.events) bytes += event.payload.size();
  }
  return bytes;
}

// The column arrays of an append.
struct EventColumns {
  EventColumns(std::span<const StreamAppend> appends, Env& env)
      : count(CountOf(appends)),
        ids(sql::PgArray::Element::kText, count, count * 32),
        types(sql::PgArray::Element::kText, count, count * 16),
        payloads(sql::PgArray::Element::kText, count, PayloadBytes(appends)),
        metadata(sql::PgArray::Element::kText, count, count * 16) {
    for (const StreamAppend& append : appends) {
      for (const NewEvent& event : append.events) {
        ids.Text(event.id.empty() ? env.NewId() : event.id);
        types.Text(event.type);
        payloads.Text(event.payload);
        metadata.Text(event.metadata);
      }
    }
  }

  void AddTo(sql::PgParams& params) const {
    for (const sql::PgArray* column : {&ids, &types, &payloads, &metadata})
      params.Text(column->bytes());
  }

  const size_t count;
  sql::PgArray ids, types, payloads, metadata;
};

class PostgresEventLog final : public PostgresEventReader {
 public:
  PostgresEventLog(const std::string& uri, const std::string& space, Env& env,
                   const EventLogOptions& options)
      : PostgresEventReader(uri, env, options), space_(space), statements_(space) {}

  Status Open(int slots) {
    MUSTER_TRY(SetUp(slots));
    MUSTER_TRY(Run(statements_.last, sql::PgParams()));
    return {};
  }

  Result<std::vector<int64_t>> Append(std::span<const StreamAppend> appends) override {
    MUSTER_TRY(CheckAppends(appends));
    if (appends.empty()) return std::vector<int64_t>{};
    const AppendParts parts(appends);
    for (int tries = 1;; ++tries) {
      auto heads = parts.streams.size() == 1 ? AppendOne(appends, parts.streams.front())
                                             : AppendMany(appends, parts);
      if (heads) return parts.Versions(appends, *std::move(heads));
      // Lost a race for one of the streams: retry from its new end.
      const bool again = heads.error().code == Code::kConflict || sql::IsPgDeadlock(heads.error());
      if (!again || tries == kMaxAppendTries) return heads;
    }
  }

  Result<std::vector<SlotLag>> Lag(std::span<const SlotPosition> from) override {
    MUSTER_TRY(CheckSlots(from, slots_, 1));
    const SlotArrays arrays(from);
    sql::PgParams none;
    sql::PgParams params;
    params.Text(arrays.slots.bytes()).Text(arrays.afters.bytes());
    const sql::PgCall calls[] = {{statements_.last, none}, {statements_.lag, params}};
    MUSTER_ASSIGN(const auto results, Run(calls));
    const int64_t last = results[0].Int64(0, 0);
    const sql::PgResult& rows = results[1];
    std::vector<SlotLag> lags;
    for (int row = 0; row < rows.rows(); ++row) {
      const SlotPosition& asked = from[static_cast<size_t>(row)];
      SlotLag lag = LagOf(asked.slot, rows.Int64(row, 0), asked.position, last, slots_);
      if (!rows.IsNull(row, 1)) lag.oldest = rows.Time(row, 1);
      lags.push_back(lag);
    }
    return lags;
  }

 private:
  const ReadStatements& statements() const override { return statements_; }

  Status SetUp(int slots) {
    MUSTER_ASSIGN(auto connection, pool_.Take());
    MUSTER_TRY(sql::MigratePgTables(*connection, space_,
                                    MigrationsFor(slots == 0 ? kDefaultSlots : slots)));
    MUSTER_ASSIGN(
        const sql::PgResult facts,
        sql::RunPlain(
            *connection,
            sql::InPgSchema("SELECT slots, '$S.events'::regclass::oid::bigint FROM $S.event_log",
                            space_),
            false));
    slots_ = facts.Int32(0, 0);
    log_ = facts.Int64(0, 1) & kLogMask;
    return CheckSlotCount(slots, slots_);
  }

  Result<int64_t> FindHorizon() override {
    sql::PgParams none;
    sql::PgParams log;
    log.Int64(log_);
    const sql::PgCall calls[] = {{statements_.last, none}, {statements_.lowest_lock, log}};
    MUSTER_ASSIGN(const auto results, Run(calls));
    return std::min(results[0].Int64(0, 0), results[1].Int64(0, 0));
  }

  Result<sql::PgResult> RunAppend(const sql::PgStatement& statement, const sql::PgParams& params) {
    sql::PgParams key;
    key.Int64(log_ << kPositionBits);
    const sql::PgCall calls[] = {{statements_.announce, key}, {statement, params}};
    MUSTER_ASSIGN(auto results, pool_.Run(calls, env_));
    return std::move(results[1]);
  }

  // Both return the streams' versions before the append.
  Result<std::vector<int64_t>> AppendOne(std::span<const StreamAppend> appends,
                                         const AppendParts::Stream& stream) {
    const EventColumns events(appends, env_);
    sql::PgParams params;
    params.Text(stream.name).Int64(stream.needed).Int32(SlotOf(stream.name, slots_));
    events.AddTo(params);
    MUSTER_ASSIGN(const sql::PgResult result, RunAppend(statements_.append_one, params));
    return std::vector<int64_t>{result.Int64(0, 0)};
  }

  Result<std::vector<int64_t>> AppendMany(std::span<const StreamAppend> appends,
                                          const AppendParts& parts) {
    using Element = sql::PgArray::Element;
    const EventColumns events(appends, env_);
    sql::PgArray names(Element::kText, parts.streams.size()),
        needed(Element::kBigint, parts.streams.size()), of(Element::kBigint, events.count),
        nth(Element::kBigint, events.count), streams(Element::kText, events.count),
        slots(Element::kInteger, events.count);
    for (const AppendParts::Stream& stream : parts.streams) {
      names.Text(stream.name);
      needed.Int64(stream.needed);
    }
    std::vector<int64_t> counts(parts.streams.size());
    for (size_t i = 0; i < appends.size(); ++i) {
      const size_t part = parts.of[i];
      const int slot = SlotOf(appends[i].stream, slots_);
      for (size_t n = 0; n < appends[i].events.size(); ++n) {
        of.Int64(static_cast<int64_t>(part) + 1);
        nth.Int64(++counts[part]);
        streams.Text(appends[i].stream);
        slots.Int32(slot);
      }
    }
    sql::PgParams params;
    for (const sql::PgArray* column : {&names, &needed, &of, &nth, &streams, &slots}) {
      params.Text(column->bytes());
    }
    events.AddTo(params);
    MUSTER_ASSIGN(const sql::PgResult result, RunAppend(statements_.append_many, params));
    std::vector<int64_t> heads;
    for (int row = 0; row < result.rows(); ++row) heads.push_back(result.Int64(row, 0));
    return heads;
  }

  const std::string space_;
  const LogStatements statements_;
  int64_t log_ = 0;
};

}  // namespace

Result<std::unique_ptr<EventLog>> OpenPostgresEventLog(const std::string& uri,
                                                       const std::string& space, Env& env,
                                                       const EventLogOptions& options) {
  auto log = std::make_unique<PostgresEventLog>(uri, space, env, options);
  MUSTER_TRY(log->Open(options.slots));
  return log;
}

}  // namespace muster::events
