#include <algorithm>

#include "events/backends.h"
#include "events/event_rules.h"
#include "events/postgres_event_reader.h"
#include "events/postgres_setup.h"

namespace muster {
namespace {

constexpr int kMaxAppendTries = 20;

// How readers know which positions may still be filled: an appender first takes a shared lock whose
// key is the last position given out, and only then draws its own, which are greater. A reader
// takes the last position, then the lowest such key: up to the lesser of the two everything has
// been committed or rolled back. The lock is released after the commit can be seen, so a query
// begun after the look at the locks sees all of it.
//
// The upper 19 bits of a key tell logs of one database apart, the lower 44 are the position.
constexpr int kPositionBits = 44;
constexpr int64_t kPositionMask = (int64_t{1} << kPositionBits) - 1;
constexpr int64_t kLogMask = (1 << 19) - 1;

std::vector<std::string> SchemaFor(int slots) {
  return {
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
}

constexpr std::string_view kColumns =
    "e.position, e.stream, e.version, e.slot, e.id, e.type, e.payload, e.metadata, e.time";

struct LogStatements : ReadStatements {
  explicit LogStatements(const std::string& space) {
    const auto in = [&](std::string_view sql) { return InPgSchema(sql, space); };
    const std::string columns(kColumns);
    announce = {"announce",
                in("SELECT pg_advisory_xact_lock_shared($1::bigint + s.last) FROM (SELECT CASE "
                   "WHEN is_called THEN last_value ELSE 0 END AS last FROM $S.events_position) s")};
    // One stream: its head is looked up once, and the rest is a plain insert.
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
    append_many = {
        "append_many",
        in("WITH heads AS MATERIALIZED (SELECT s.ord, s.stream, s.slot, s.expected, "
           "coalesce((SELECT version FROM $S.events e WHERE e.stream = s.stream ORDER BY version "
           "DESC LIMIT 1), 0) AS at FROM unnest($1::text[], $2::integer[], $3::bigint[]) WITH "
           "ORDINALITY s(stream, slot, expected, ord)), "
           "added AS (INSERT INTO $S.events (position, stream, version, slot, id, type, payload, "
           "metadata) SELECT nextval('$S.events_position'), q.stream, q.at + q.nth, q.slot, q.id, "
           "q.type, q.payload, q.metadata FROM (SELECT h.*, n.* FROM unnest($4::bigint[], "
           "$5::bigint[], $6::text[], $7::text[], $8::text[], $9::text[]) WITH ORDINALITY "
           "n(append, nth, id, type, payload, metadata, line) JOIN heads h ON h.ord = n.append "
           "ORDER BY n.line) q WHERE NOT EXISTS (SELECT 1 FROM heads w WHERE w.expected <> -1 AND "
           "w.expected <> w.at) RETURNING 1) "
           "SELECT at, (SELECT count(*) FROM added) FROM heads ORDER BY ord")};
    // Not the sequence, which a crash may take back to what was on disk: a reader that had gone
    // along with it would then skip what is appended next. An event that can be seen is on disk.
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
                   in("SELECT " + columns +
                      " FROM $S.events e WHERE stream = $1::text AND version > $2::bigint ORDER "
                      "BY version LIMIT $3::bigint"),
                   false};
    read_all = {"read_all",
                in("SELECT " + columns +
                   " FROM $S.events e WHERE position > $1::bigint AND position <= $2::bigint "
                   "ORDER BY position LIMIT $3::bigint"),
                false};
    // Slot by slot along the index: what others own is not even looked at.
    read_slots = {"read_slots",
                  in("SELECT " + columns +
                     " FROM unnest($1::integer[], $2::bigint[]) s(slot, after) CROSS JOIN LATERAL "
                     "(SELECT * FROM $S.events x WHERE x.slot = s.slot AND x.position > s.after "
                     "AND x.position <= $3::bigint ORDER BY x.slot, x.position LIMIT $4::bigint) e "
                     "ORDER BY e.position LIMIT $4::bigint"),
                  false};
    lag = {"lag",
           in("SELECT l.n, l.oldest FROM unnest($1::integer[], $2::bigint[]) WITH ORDINALITY "
              "s(slot, after, ord) CROSS JOIN LATERAL (SELECT count(*) AS n, (SELECT time FROM "
              "$S.events y WHERE y.slot = s.slot AND y.position > s.after ORDER BY y.slot, "
              "y.position LIMIT 1) AS oldest FROM $S.events x WHERE x.slot = s.slot AND x.position "
              "> s.after) l ORDER BY s.ord"),
           false};
  }

  PgStatement announce, append_one, append_many, lowest_lock, lag;
};

class PostgresEventLog final : public PostgresEventReader {
 public:
  PostgresEventLog(const std::string& uri, const std::string& space, Env& env)
      : PostgresEventReader(uri, env), space_(space), statements_(space) {}

  Status Open(int slots) {
    MUSTER_TRY(SetUp(slots));
    MUSTER_TRY(Run(statements_.last, PgParams()));
    return {};
  }

  Result<std::vector<int64_t>> Append(std::span<const StreamAppend> appends) override {
    MUSTER_TRY(CheckAppends(appends));
    if (appends.empty()) return std::vector<int64_t>{};
    const bool any = std::any_of(appends.begin(), appends.end(), [](const StreamAppend& append) {
      return append.expected == kAnyVersion;
    });
    for (int tries = 1;; ++tries) {
      auto versions = appends.size() == 1 ? AppendOne(appends.front()) : AppendMany(appends);
      // Two appended to one stream at once, and the other was faster. Who named no version
      // does not care: from the new end.
      const bool raced = !versions && versions.error().code == Code::kConflict && any;
      if (!raced || tries == kMaxAppendTries) return versions;
    }
  }

  Result<std::vector<SlotLag>> Lag(std::span<const SlotPosition> from) override {
    MUSTER_TRY(CheckSlots(from, slots_, 1));
    const SlotArrays arrays(from);
    MUSTER_ASSIGN(
        const PgResult rows,
        Run(statements_.lag, PgParams().Text(arrays.slots.bytes()).Text(arrays.afters.bytes())));
    std::vector<SlotLag> lags;
    for (int row = 0; row < rows.rows(); ++row) {
      SlotLag lag{.slot = from[static_cast<size_t>(row)].slot, .events = rows.Int64(row, 0)};
      if (!rows.IsNull(row, 1)) lag.oldest = rows.Time(row, 1);
      lags.push_back(lag);
    }
    return lags;
  }

 private:
  const ReadStatements& statements() const override { return statements_; }

  Status SetUp(int slots) {
    MUSTER_ASSIGN(auto connection, pool_.Take());
    MUSTER_TRY(SetUpPostgres(*connection, space_, "event_log",
                             SchemaFor(slots == 0 ? kDefaultSlots : slots)));
    MUSTER_ASSIGN(
        const PgResult facts,
        RunPlain(*connection,
                 InPgSchema("SELECT slots, '$S.events'::regclass::oid::bigint FROM $S.event_log",
                            space_),
                 false));
    slots_ = facts.Int32(0, 0);
    log_ = facts.Int64(0, 1) & kLogMask;
    return CheckSlotCount(slots, slots_);
  }

  Result<int64_t> FindHorizon() override {
    PgParams none;
    PgParams log;
    log.Int64(log_);
    const PgCall calls[] = {{statements_.last, none}, {statements_.lowest_lock, log}};
    MUSTER_ASSIGN(const auto results, Run(calls));
    return std::min(results[0].Int64(0, 0), results[1].Int64(0, 0));
  }

  Result<PgResult> RunAppend(const PgStatement& statement, const PgParams& params) {
    PgParams key;
    key.Int64(log_ << kPositionBits);
    const PgCall calls[] = {{statements_.announce, key}, {statement, params}};
    MUSTER_ASSIGN(auto results, pool_.Run(calls, env_));
    return std::move(results[1]);
  }

  Result<std::vector<int64_t>> AppendOne(const StreamAppend& append) {
    using Element = PgArray::Element;
    const size_t count = append.events.size();
    size_t bytes = 0;
    for (const NewEvent& event : append.events) bytes += event.payload.size();
    PgArray ids(Element::kText, count, count * 32), types(Element::kText, count, count * 16),
        payloads(Element::kText, count, bytes), metadata(Element::kText, count, count * 16);
    for (const NewEvent& event : append.events) {
      ids.Text(event.id.empty() ? env_.NewId() : event.id);
      types.Text(event.type);
      payloads.Text(event.payload);
      metadata.Text(event.metadata);
    }
    PgParams params;
    params.Text(append.stream).Int64(append.expected).Int32(SlotOf(append.stream, slots_));
    params.Text(ids.bytes()).Text(types.bytes()).Text(payloads.bytes()).Text(metadata.bytes());
    MUSTER_ASSIGN(const PgResult result, RunAppend(statements_.append_one, params));
    const int64_t head = result.Int64(0, 0);
    if (append.expected != kAnyVersion && append.expected != head) {
      return WrongVersion(append.stream, append.expected, head);
    }
    return std::vector<int64_t>{head + static_cast<int64_t>(count)};
  }

  Result<std::vector<int64_t>> AppendMany(std::span<const StreamAppend> appends) {
    using Element = PgArray::Element;
    size_t count = 0, bytes = 0;
    for (const StreamAppend& append : appends) {
      count += append.events.size();
      for (const NewEvent& event : append.events) bytes += event.payload.size();
    }
    PgArray streams(Element::kText, appends.size()), slots(Element::kInteger, appends.size()),
        expected(Element::kBigint, appends.size()), of(Element::kBigint, count),
        nth(Element::kBigint, count), ids(Element::kText, count, count * 32),
        types(Element::kText, count, count * 16), payloads(Element::kText, count, bytes),
        metadata(Element::kText, count, count * 16);
    for (size_t i = 0; i < appends.size(); ++i) {
      const StreamAppend& append = appends[i];
      streams.Text(append.stream);
      slots.Int32(SlotOf(append.stream, slots_));
      expected.Int64(append.expected);
      for (size_t n = 0; n < append.events.size(); ++n) {
        const NewEvent& event = append.events[n];
        of.Int64(static_cast<int64_t>(i) + 1);
        nth.Int64(static_cast<int64_t>(n) + 1);
        ids.Text(event.id.empty() ? env_.NewId() : event.id);
        types.Text(event.type);
        payloads.Text(event.payload);
        metadata.Text(event.metadata);
      }
    }
    PgParams params;
    for (const PgArray* column :
         {&streams, &slots, &expected, &of, &nth, &ids, &types, &payloads, &metadata}) {
      params.Text(column->bytes());
    }
    MUSTER_ASSIGN(const PgResult result, RunAppend(statements_.append_many, params));
    std::vector<int64_t> versions;
    for (size_t i = 0; i < appends.size(); ++i) {
      const int64_t head = result.Int64(static_cast<int>(i), 0);
      if (appends[i].expected != kAnyVersion && appends[i].expected != head) {
        return WrongVersion(appends[i].stream, appends[i].expected, head);
      }
      versions.push_back(head + static_cast<int64_t>(appends[i].events.size()));
    }
    return versions;
  }

  const std::string space_;
  const LogStatements statements_;
  int64_t log_ = 0;
};

}  // namespace

Result<std::unique_ptr<EventLog>> OpenPostgresEventLog(const std::string& uri,
                                                       const std::string& space, Env& env,
                                                       int slots) {
  auto log = std::make_unique<PostgresEventLog>(uri, space, env);
  MUSTER_TRY(log->Open(slots));
  return log;
}

}  // namespace muster
