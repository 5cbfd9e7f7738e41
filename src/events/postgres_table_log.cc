#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/mutex.h"
#include "events/backends.h"
#include "events/event_rules.h"
#include "events/postgres_event_reader.h"
#include "sql/postgres_errors.h"

namespace muster::events {
namespace {

// "schema.table" as an SQL name.
std::string QuotedTable(const std::string& name) {
  const size_t dot = name.find('.');
  if (dot == std::string::npos) return sql::PgIdentifier(name);
  return sql::PgIdentifier(name.substr(0, dot)) + "." + sql::PgIdentifier(name.substr(dot + 1));
}

// The bytea columns: those are read raw.
using ByteColumns = std::set<std::string, std::less<>>;

// Columns are qualified with the table and results named after the event's fields, so that no
// column name can be ambiguous.
std::string Column(const std::string& name) { return "e." + sql::PgIdentifier(name); }

// Whatever types another library chose: as text, or as the bytes of a bytea.
std::string Content(const std::string& column, const ByteColumns& bytes,
                    const std::string& otherwise) {
  if (column.empty()) return otherwise;
  const bool raw = bytes.contains(column);
  return "coalesce(" + Column(column) + (raw ? "" : "::text") + ", " + otherwise +
         (raw ? "::bytea)" : ")");
}

std::string StreamExpression(const std::vector<std::string>& columns) {
  std::string expression;
  for (const std::string& column : columns) {
    expression += (expression.empty() ? "coalesce(" : " || '/' || coalesce(") + Column(column) +
                  "::text, '')";
  }
  return "(" + expression + ")";
}

struct TableStatements : ReadStatements {
  TableStatements() = default;
  TableStatements(const EventTable& names, const ByteColumns& bytes, int slots) {
    const std::string table = QuotedTable(names.table);
    const std::string stream = StreamExpression(names.stream);
    const std::string position = Column(names.position);
    const std::string version = Column(names.version);
    // md5 is the only hash that is the same in every server version.
    const std::string slot = "((('x' || substr(md5(" + stream + "), 1, 6))::bit(24)::integer) % " +
                             std::to_string(slots) + ")";
    const std::string epoch = "'epoch'::timestamptz";
    const std::string time =
        names.time.empty() ? epoch
                           : "coalesce(" + Column(names.time) + "::timestamptz, " + epoch + ")";
    const std::string id = names.id.empty() ? "''" : Column(names.id) + "::text";
    const std::string select = "SELECT " + position + "::bigint AS position, " + stream +
                               " AS stream, coalesce(" + version + "::bigint, 0) AS version, " +
                               slot + " AS slot, " + id + " AS id, " + Column(names.type) +
                               "::text AS type, " + Content(names.payload, bytes, "'null'") +
                               " AS payload, " + Content(names.metadata, bytes, "'{}'") +
                               " AS metadata, " + time + " AS time FROM " + table + " e ";
    first = {"", "SELECT coalesce(min(" + position + "), 1)::bigint FROM " + table + " e", false};
    last = {"", "SELECT coalesce(max(" + position + "), 0)::bigint FROM " + table + " e", false};
    // A writer holds this lock from before it draws a position until its commit is visible.
    const std::string relation = sql::PgLiteral(table) + "::regclass";
    writers = {"",
               "SELECT virtualtransaction::text FROM pg_locks WHERE locktype = 'relation' AND "
               "granted AND mode IN ('RowExclusiveLock', 'ShareRowExclusiveLock', "
               "'ExclusiveLock', 'AccessExclusiveLock') AND (relation = " +
                   relation + " OR relation IN (SELECT relid FROM pg_partition_tree(" + relation +
                   "))) AND database = (SELECT oid FROM pg_database WHERE datname = "
                   "current_database())",
               false};
    read_stream = {"",
                   Bounded(select + "WHERE " + stream + " = $1::text AND " + version +
                               " > $2::bigint ORDER BY " + version + " LIMIT $3::bigint",
                           "version", 4),
                   false};
    read_all = {"",
                Bounded(select + "WHERE " + position + " > $1::bigint AND " + position +
                            " <= $2::bigint ORDER BY " + position + " LIMIT $3::bigint",
                        "position", 4),
                false};
    // Indexing into an array makes a row's slot cost the same whatever plan the server picks.
    const std::string lowest = "(SELECT min(a) FROM unnest($1::bigint[]) a)";
    const std::string behind =
        position + " > " + lowest + " AND " + position + " > ($1::bigint[])[" + slot + " + 1]";
    read_slots = {"",
                  Bounded(select + "WHERE " + behind + " AND " + position +
                              " <= $2::bigint ORDER BY " + position + " LIMIT $3::bigint",
                          "position", 4),
                  false};
    marks = {
        "", Marks(select + "WHERE " + position + " <= p.at ORDER BY " + position + " DESC LIMIT 1"),
        false};
    lag = {"",
           "SELECT " + slot + ", count(*), min(" + time + ") FROM " + table + " e WHERE " + behind +
               " GROUP BY 1",
           false};
  }

  sql::PgStatement first, writers, lag;
};

// The position of each slot of the log; slots not requested have nothing after theirs.
sql::PgArray AllSlots(std::span<const SlotPosition> from, int slots) {
  std::vector<int64_t> afters(static_cast<size_t>(slots), INT64_MAX);
  for (const SlotPosition& slot : from) afters[static_cast<size_t>(slot.slot)] = slot.position;
  sql::PgArray array(sql::PgArray::Element::kBigint, afters.size());
  for (const int64_t after : afters) array.Int64(after);
  return array;
}

class PostgresTableLog final : public PostgresEventReader {
 public:
  PostgresTableLog(const std::string& uri, Env& env, const EventLogOptions& options)
      : PostgresEventReader(uri, env, options), names_(*options.table) {
    slots_ = options.slots;
  }

  // Reads a little of everything, so that a wrong name is reported at once.
  Status Open() {
    auto opened = Prepare();
    if (opened) opened = Try();
    if (opened) return {};
    Error error = opened.error().Within("table " + names_.table);
    if (error.hint.empty() || error.code == Code::kNotFound) {
      error.hint = "check the names of the table and its columns, and that the role may read them";
    }
    return error;
  }

  Result<std::vector<int64_t>> Append(std::span<const StreamAppend>) override {
    return Error{Code::kPermission,
                 "table " + names_.table + " belongs to another library: it is only read",
                 "append through that library"};
  }

  // The table's owner may delete streams.
  bool KeepsEvents() const override { return false; }

  Result<std::vector<SlotLag>> Lag(std::span<const SlotPosition> from) override {
    MUSTER_TRY(CheckSlots(from, slots_, 1));
    std::vector<SlotLag> lags(from.size());
    for (size_t i = 0; i < from.size(); ++i) lags[i].slot = from[i].slot;
    if (from.empty()) return lags;
    MUSTER_ASSIGN(const sql::PgResult last, Run(statements_.last, sql::PgParams()));
    const int64_t lowest =
        std::min_element(from.begin(), from.end(), [](const auto& a, const auto& b) {
          return a.position < b.position;
        })->position;
    if (last.Int64(0, 0) - lowest > kMaxSearchedLag) {
      return EstimatedLags(from, lowest, last.Int64(0, 0));
    }
    std::vector<size_t> left(from.size());
    std::iota(left.begin(), left.end(), size_t{0});
    while (!left.empty()) MUSTER_TRY(AddLag(from, left, lags));
    return lags;
  }

 private:
  const ReadStatements& statements() const override { return statements_; }

  Error Explained(Error error) const override {
    if (!has_index_ && sql::IsPgStatementTimeout(error)) {
      error.hint = "table " + names_.table + " has no index on its position, so that each read " +
                   "scans all of it: CREATE INDEX ON " + QuotedTable(names_.table) + " (" +
                   sql::PgIdentifier(names_.position) + ")";
    }
    return error;
  }

  bool HasTime() const { return !names_.time.empty(); }

  // A view has no locks to observe, and bytea is not text.
  Status Prepare() {
    const std::string relation = sql::PgLiteral(QuotedTable(names_.table)) + "::regclass";
    const sql::PgStatement kind{"", "SELECT relkind::text FROM pg_class WHERE oid = " + relation,
                                false};
    MUSTER_ASSIGN(const sql::PgResult kinds, Run(kind, sql::PgParams()));
    if (kinds.rows() == 0 || (kinds.Text(0, 0) != "r" && kinds.Text(0, 0) != "p")) {
      return Error{Code::kInvalid, "is not a table: no way to wait for its writers",
                   "name the table itself, not a view of it"};
    }
    const sql::PgStatement columns{
        "",
        "SELECT a.attname::text FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid WHERE "
        "a.attrelid = " +
            relation + " AND 'bytea'::regtype IN (t.oid, t.typbasetype)",
        false};
    MUSTER_ASSIGN(const sql::PgResult rows, Run(columns, sql::PgParams()));
    ByteColumns bytes;
    for (int row = 0; row < rows.rows(); ++row) bytes.emplace(rows.Text(row, 0));
    statements_ = TableStatements(names_, bytes, slots_);
    return FindIndex(relation);
  }

  // Whether rows can be read in the order of their positions.
  Status FindIndex(const std::string& relation) {
    const sql::PgStatement index{
        "",
        "SELECT 1 FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = "
        "c.relam JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] WHERE "
        "i.indrelid = " +
            relation +
            " AND i.indisvalid AND i.indpred IS NULL AND m.amname = 'btree' AND "
            "a.attname::text = $1::text",
        false};
    MUSTER_ASSIGN(const sql::PgResult found, Run(index, sql::PgParams().Text(names_.position)));
    has_index_ = found.rows() > 0;
    return {};
  }

  Status Try() {
    MUSTER_TRY(ReadAll(0, 1));
    MUSTER_ASSIGN(const sql::PgResult first, Run(statements_.first, sql::PgParams()));
    if (first.Int64(0, 0) > 0) return {};
    return Error{Code::kInvalid,
                 "has an event at position " + std::to_string(first.Int64(0, 0)) +
                     ", which a reader that starts at 0 would skip",
                 "positions must be greater than 0"};
  }

  Result<Rows> ReadSlots(const ReadWindow& window, int limit) override {
    const sql::PgArray afters = AllSlots(window.slots, slots_);
    sql::PgParams params;
    params.Text(afters.bytes()).Int64(window.end).Int64(limit).Int64(read_bytes_);
    return RunUpTo(window.end, statements_.read_slots, params);
  }

  // Without reading the rows: slots are computed, so all of them would have to be read.
  Result<std::vector<SlotLag>> EstimatedLags(std::span<const SlotPosition> from, int64_t lowest,
                                             int64_t last) {
    MUSTER_ASSIGN(const EventPage first, ReadAll(lowest, 1));
    std::vector<SlotLag> lags;
    for (const SlotPosition& slot : from) {
      SlotLag& lag = lags.emplace_back(SlotLag{.slot = slot.slot});
      if (slot.position >= last) continue;
      lag.events = (last - slot.position + slots_ - 1) / slots_;
      lag.estimated = true;
      if (HasTime() && !first.events.empty()) lag.oldest = first.events.front().time;
    }
    return lags;
  }

  // Handles one entry of each slot in `left` and removes it.
  Status AddLag(std::span<const SlotPosition> from, std::vector<size_t>& left,
                std::vector<SlotLag>& lags) {
    std::map<int, size_t> entries;
    std::vector<SlotPosition> asked;
    std::erase_if(left, [&](size_t i) {
      const bool taken = entries.try_emplace(from[i].slot, i).second;
      if (taken) asked.push_back(from[i]);
      return taken;
    });
    const sql::PgArray afters = AllSlots(asked, slots_);
    MUSTER_ASSIGN(const sql::PgResult rows,
                  Run(statements_.lag, sql::PgParams().Text(afters.bytes())));
    for (int row = 0; row < rows.rows(); ++row) {
      SlotLag& lag = lags[entries.at(rows.Int32(row, 0))];
      lag.events = rows.Int64(row, 1);
      if (HasTime()) lag.oldest = rows.Time(row, 2);
    }
    return {};
  }

  // The writers take no lock of ours, but every INSERT locks the table before drawing a position,
  // until its transaction ends. So: read the last position, then the holders of that lock; once all
  // of them have ended, nothing up to that position can still appear. Transactions that roll back
  // delay it no longer than they live.
  Result<int64_t> FindHorizon() override {
    const MutexLock lock(mutex_);
    sql::PgParams none;
    const sql::PgCall calls[] = {{statements_.last, none}, {statements_.writers, none}};
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

  const EventTable names_;
  TableStatements statements_;
  bool has_index_ = true;  // on the position
  Mutex mutex_;
  // Writers that may still fill a position up to awaited_for_.
  std::set<std::string> awaited_ GUARDED_BY(mutex_);
  int64_t awaited_for_ GUARDED_BY(mutex_) = 0;
  int64_t settled_ GUARDED_BY(mutex_) = 0;
};

}  // namespace

Result<std::unique_ptr<EventLog>> OpenPostgresTableLog(const std::string& uri, Env& env,
                                                       const EventLogOptions& options) {
  if (options.table->table.empty() || options.table->stream.empty()) {
    return Error{Code::kInvalid, "an event table needs a name and at least one stream column"};
  }
  auto log = std::make_unique<PostgresTableLog>(uri, env, options);
  MUSTER_TRY(log->Open());
  return log;
}

}  // namespace muster::events
