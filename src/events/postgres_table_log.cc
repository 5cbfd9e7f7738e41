#include <algorithm>
#include <mutex>
#include <set>

#include "events/backends.h"
#include "events/event_rules.h"
#include "events/postgres_event_reader.h"

namespace muster {
namespace {

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

struct TableStatements : ReadStatements {
  TableStatements(const EventTable& names, int slots) {
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
    const std::string lowest = "(SELECT min(after) FROM unnest($2::bigint[]) after)";
    read_slots = {"",
                  "SELECT q.* FROM (" + select + "WHERE " + position + " > " + lowest + " AND " +
                      position +
                      " <= $3::bigint) q JOIN unnest($1::integer[], $2::bigint[]) s(slot, after) "
                      "ON s.slot = q.slot AND q.at > s.after ORDER BY q.at LIMIT $4::bigint",
                  false};
    lag = {"",
           "SELECT q.slot, count(*), min(q.time) FROM (SELECT " + position + "::bigint AS at, " +
               slot + " AS slot, " + time + " AS time FROM " + table + " WHERE " + position +
               " > " + lowest +
               ") q JOIN unnest($1::integer[], $2::bigint[]) s(slot, after) ON "
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

  PgStatement writers, lag;
};

class PostgresTableLog final : public PostgresEventReader {
 public:
  PostgresTableLog(const std::string& uri, Env& env, int slots, const EventTable& table)
      : PostgresEventReader(uri, env), name_(table.table), statements_(table, slots) {
    slots_ = slots;
  }

  // Reads a little of everything, so that a wrong name is told at once.
  Status Open() {
    auto page = ReadAll(0, 1);
    if (page) return {};
    Error error = page.error().Within("table " + name_);
    error.hint = "check the names of the table and its columns, and that the role may read them";
    return error;
  }

  Result<std::vector<int64_t>> Append(std::span<const StreamAppend>) override {
    return Error{Code::kPermission, "table " + name_ + " is written by others; it is only read",
                 "append through the library that owns it"};
  }

  Result<std::vector<SlotLag>> Lag(std::span<const SlotPosition> from) override {
    MUSTER_TRY(CheckSlots(from, slots_, 1));
    const SlotArrays arrays(from);
    MUSTER_ASSIGN(
        const PgResult rows,
        Run(statements_.lag, PgParams().Text(arrays.slots.bytes()).Text(arrays.afters.bytes())));
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

 private:
  const ReadStatements& statements() const override { return statements_; }

  // Its writers take no lock of ours, but every INSERT takes one on the table before it draws a
  // position, and keeps it until its transaction has ended. So: look at the last position, then
  // who holds that lock; once all of them have ended, nothing up to that position can still come.
  // Who only rolls back is waited for no longer than it lives.
  Result<int64_t> FindHorizon() override {
    std::lock_guard lock(mutex_);
    PgParams none;
    const PgCall calls[] = {{statements_.last, none}, {statements_.writers, none}};
    MUSTER_ASSIGN(const auto results, Run(calls));
    std::set<std::string> writers;
    for (int row = 0; row < results[1].rows(); ++row) {
      writers.emplace(results[1].Text(row, 0));
    }
    std::erase_if(awaited_, [&](const std::string& writer) { return !writers.contains(writer); });
    if (!awaited_.empty()) return settled_;
    settled_ = std::max(settled_, awaited_for_);
    awaited_for_ = results[0].Int64(0, 0);
    awaited_ = std::move(writers);
    if (awaited_.empty()) settled_ = std::max(settled_, awaited_for_);
    return settled_;
  }

  const std::string name_;
  const TableStatements statements_;
  std::mutex mutex_;
  std::set<std::string> awaited_;  // writers that may still fill a position up to awaited_for_
  int64_t awaited_for_ = 0;
  int64_t settled_ = 0;
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
