#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>

#include "events/backends.h"
#include "events/event_rules.h"
#include "events/postgres_connections.h"

namespace muster {
namespace {

using std::chrono::milliseconds;

// "schema.table" as an SQL name.
std::string QuotedTable(const std::string& name) {
  const size_t dot = name.find('.');
  if (dot == std::string::npos) return PgIdentifier(name);
  return PgIdentifier(name.substr(0, dot)) + "." + PgIdentifier(name.substr(dot + 1));
}

// Everything as text: whatever types another library has chosen.
std::string AsText(const std::string& column, const std::string& otherwise) {
  return column.empty() ? otherwise : PgIdentifier(column) + "::text";
}

std::string StreamExpression(const std::vector<std::string>& columns) {
  std::string expression;
  for (const std::string& column : columns) {
    expression += (expression.empty() ? "" : " || '/' || ") + PgIdentifier(column) + "::text";
  }
  return columns.size() > 1 ? "(" + expression + ")" : expression;
}

struct Statements {
  Statements(const EventTable& names, int slots) {
    const std::string table = QuotedTable(names.table);
    const std::string stream = StreamExpression(names.stream);
    const std::string position = PgIdentifier(names.position);
    // md5 is the one hash that means the same in every version of the server.
    const std::string slot = "((('x' || substr(md5(" + stream + "), 1, 6))::bit(24)::integer) % " +
                             std::to_string(slots) + ")";
    const std::string time =
        names.time.empty() ? "'epoch'::timestamptz" : PgIdentifier(names.time) + "::timestamptz";
    const std::string select = "SELECT " + position + "::bigint AS at, " + stream + " AS stream, " +
                               PgIdentifier(names.version) + "::bigint, " + slot + " AS slot, " +
                               AsText(names.id, "''") + ", " + PgIdentifier(names.type) +
                               "::text, coalesce(" + AsText(names.payload, "''") +
                               ", ''), coalesce(" + AsText(names.metadata, "'{}'") + ", ''), " +
                               time + " FROM " + table + " e ";
    last = {"", "SELECT coalesce(max(" + position + "), 0)::bigint FROM " + table, false};
    // Whoever inserts holds this lock from before it draws a position until its end can be seen.
    writers = {"",
               "SELECT virtualtransaction::text FROM pg_locks WHERE locktype = 'relation' AND "
               "granted AND mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', "
               "'ExclusiveLock', 'AccessExclusiveLock') AND relation = '" +
                   EscapeLiteral(table) +
                   "'::regclass AND database = (SELECT oid FROM pg_database WHERE datname = "
                   "current_database())",
               false};
    read_stream = {"",
                   select + "WHERE " + stream + " = $1::text AND " + PgIdentifier(names.version) +
                       " > $2::bigint ORDER BY " + PgIdentifier(names.version) +
                       " LIMIT $3::bigint",
                   false};
    read_all = {"",
                select + "WHERE " + position + " > $1::bigint AND " + position +
                    " <= $2::bigint ORDER BY " + position + " LIMIT $3::bigint",
                false};
    read_slots = {"",
                  "SELECT q.* FROM (" + select + "WHERE " + position + " > $1::bigint AND " +
                      position +
                      " <= $2::bigint) q JOIN unnest($4::integer[], $5::bigint[]) s(slot, after) "
                      "ON s.slot = q.slot AND q.at > s.after ORDER BY q.at LIMIT $3::bigint",
                  false};
    lag = {"",
           "SELECT q.slot, count(*), min(q.time) FROM (SELECT " + position + "::bigint AS at, " +
               slot + " AS slot, " + time + " AS time FROM " + table + " WHERE " + position +
               " > $1::bigint) q JOIN unnest($2::integer[], $3::bigint[]) s(slot, after) ON "
               "s.slot = q.slot AND q.at > s.after GROUP BY q.slot",
           false};
  }

  static std::string EscapeLiteral(const std::string& text) {
    std::string escaped;
    for (const char c : text) {
      if (c == '\'') escaped += c;
      escaped += c;
    }
    return escaped;
  }

  PgStatement last, writers, read_stream, read_all, read_slots, lag;
};

std::vector<Event> EventsFrom(const PgResult& rows) {
  std::vector<Event> events;
  for (int row = 0; row < rows.rows(); ++row) {
    events.push_back(Event{.position = rows.Int64(row, 0),
                           .stream = std::string(rows.Text(row, 1)),
                           .version = rows.Int64(row, 2),
                           .slot = rows.Int32(row, 3),
                           .id = std::string(rows.Text(row, 4)),
                           .type = std::string(rows.Text(row, 5)),
                           .payload = std::string(rows.Text(row, 6)),
                           .metadata = std::string(rows.Text(row, 7)),
                           .time = rows.Time(row, 8)});
  }
  return events;
}

int64_t Lowest(std::span<const SlotPosition> from) {
  int64_t lowest = INT64_MAX;
  for (const SlotPosition& slot : from) lowest = std::min(lowest, slot.position);
  return from.empty() ? 0 : lowest;
}

class PostgresTableLog final : public EventLog {
 public:
  PostgresTableLog(const std::string& uri, Env& env, int slots, const EventTable& table)
      : slots_(slots), name_(table.table), statements_(table, slots), connections_(uri, env) {}

  // Reads a little of everything, so that a wrong name is told at once.
  Status Open() {
    auto page = ReadAll(0, 1);
    if (page) return {};
    Error error = page.error().Within("table " + name_);
    error.hint = "check the names of the table and its columns, and that the role may read them";
    return error;
  }

  int slots() const override { return slots_; }

  Result<std::vector<int64_t>> Append(std::span<const StreamAppend>) override {
    return Error{Code::kPermission, "table " + name_ + " is written by others; it is only read",
                 "append through the library that owns it"};
  }

  Result<std::vector<Event>> ReadStream(std::string_view stream, int64_t after,
                                        int limit) override {
    MUSTER_TRY(CheckRead(after, limit));
    MUSTER_ASSIGN(const PgResult rows,
                  connections_.Run(statements_.read_stream,
                                   PgParams().Text(stream).Int64(after).Int64(limit)));
    return EventsFrom(rows);
  }

  Result<EventPage> ReadAll(int64_t after, int limit) override {
    MUSTER_TRY(CheckRead(after, limit));
    MUSTER_ASSIGN(const int64_t horizon, HorizonBeyond(after + limit));
    EventPage page{{}, std::max(after, horizon)};
    MUSTER_ASSIGN(const PgResult rows,
                  connections_.Run(statements_.read_all,
                                   PgParams().Int64(after).Int64(horizon).Int64(limit)));
    page.events = EventsFrom(rows);
    if (page.events.size() == static_cast<size_t>(limit)) {
      page.read_to = page.events.back().position;
    }
    return page;
  }

  Result<EventPage> Read(std::span<const SlotPosition> from, int limit) override {
    MUSTER_TRY(CheckSlots(from, slots_, limit));
    EventPage page;
    for (int widen = 0; widen < kMaxWindows; ++widen) {
      const int64_t wanted = NextWindow(from, slots_, limit, INT64_MAX, widen).end;
      MUSTER_ASSIGN(const int64_t horizon, HorizonBeyond(wanted));
      const ReadWindow window = NextWindow(from, slots_, limit, horizon, widen);
      page.read_to = window.end;
      if (window.slots.empty()) break;
      PgArray slots(PgArray::Element::kInteger, window.slots.size());
      PgArray afters(PgArray::Element::kBigint, window.slots.size());
      for (const SlotPosition& slot : window.slots) {
        slots.Int32(slot.slot);
        afters.Int64(slot.position);
      }
      PgParams params;
      params.Int64(Lowest(window.slots)).Int64(window.end).Int64(limit);
      params.Text(slots.bytes()).Text(afters.bytes());
      MUSTER_ASSIGN(const PgResult rows, connections_.Run(statements_.read_slots, params));
      page.events = EventsFrom(rows);
      if (page.events.size() == static_cast<size_t>(limit)) {
        page.read_to = page.events.back().position;
      }
      if (!page.events.empty() || window.end == horizon) break;
    }
    return page;
  }

  Result<std::vector<SlotLag>> Lag(std::span<const SlotPosition> from) override {
    MUSTER_TRY(CheckSlots(from, slots_, 1));
    PgArray slots(PgArray::Element::kInteger, from.size());
    PgArray afters(PgArray::Element::kBigint, from.size());
    for (const SlotPosition& slot : from) {
      slots.Int32(slot.slot);
      afters.Int64(slot.position);
    }
    PgParams params;
    params.Int64(Lowest(from)).Text(slots.bytes()).Text(afters.bytes());
    MUSTER_ASSIGN(const PgResult rows, connections_.Run(statements_.lag, params));
    std::vector<SlotLag> lags;
    for (const SlotPosition& slot : from) {
      SlotLag lag{.slot = slot.slot};
      for (int row = 0; row < rows.rows(); ++row) {
        if (rows.Int32(row, 0) != slot.slot) continue;
        lag.events = rows.Int64(row, 1);
        lag.oldest = rows.Time(row, 2);
      }
      lags.push_back(lag);
    }
    return lags;
  }

  void Wait(milliseconds timeout, std::stop_token stop) override {
    connections_.AwaitBeyond(known_horizon_.load(), statements_.last, timeout, stop);
  }

 private:
  // Its writers take no lock of ours, but every INSERT takes one on the table before it draws a
  // position, and keeps it until its transaction has ended. So: look at the last position, then
  // who holds that lock; once all of them have ended, nothing up to that position can still come.
  // Who only rolls back is waited for no longer than it lives.
  Result<int64_t> HorizonBeyond(int64_t wanted) {
    std::lock_guard lock(mutex_);
    if (const int64_t known = known_horizon_.load(); known >= wanted) return known;
    PgParams none;
    const PgCall calls[] = {{statements_.last, none}, {statements_.writers, none}};
    MUSTER_ASSIGN(const auto results, connections_.Run(calls));
    std::set<std::string> writers;
    for (int row = 0; row < results[1].rows(); ++row) {
      writers.emplace(results[1].Text(row, 0));
    }
    std::erase_if(awaited_, [&](const std::string& writer) { return !writers.contains(writer); });
    if (awaited_.empty()) {
      known_horizon_ = std::max(known_horizon_.load(), awaited_for_);
      awaited_for_ = results[0].Int64(0, 0);
      awaited_ = std::move(writers);
      if (awaited_.empty()) known_horizon_ = std::max(known_horizon_.load(), awaited_for_);
    }
    return known_horizon_.load();
  }

  const int slots_;
  const std::string name_;
  const Statements statements_;
  PostgresConnections connections_;
  std::mutex mutex_;
  std::set<std::string> awaited_;  // writers that may still fill a position up to awaited_for_
  int64_t awaited_for_ = 0;
  std::atomic<int64_t> known_horizon_ = 0;
};

}  // namespace

Result<std::unique_ptr<EventLog>> OpenPostgresTableLog(const std::string& uri, Env& env, int slots,
                                                       const EventTable& table) {
  if (table.table.empty() || table.stream.empty()) {
    return Error{Code::kInvalid, "an event table needs a name and at least one stream column"};
  }
  auto log = std::make_unique<PostgresTableLog>(uri, env, slots, table);
  MUSTER_TRY(log->Open());
  return log;
}

}  // namespace muster
