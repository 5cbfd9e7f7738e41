#include <algorithm>
#include <atomic>

#include "core/mutex.h"
#include "core/poll.h"
#include "events/backends.h"
#include "events/event_rules.h"
#include "sql/sqlite.h"
#include "sql/sqlite_migrations.h"

namespace muster::events {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kBusyTimeout{10'000};
constexpr Backoff::Pauses kPolls{.first = milliseconds(2), .longest = milliseconds(100)};

// $_ is the namespace. A single writer commits in position order, so a reader sees no gap that is
// filled later.
constexpr std::string_view kVersion1 = R"(
CREATE TABLE $_event_log (slots INTEGER NOT NULL) STRICT;
CREATE TABLE $_events (
  position INTEGER PRIMARY KEY AUTOINCREMENT,
  stream   TEXT    NOT NULL,
  version  INTEGER NOT NULL,
  slot     INTEGER NOT NULL,
  id       TEXT    NOT NULL,
  type     TEXT    NOT NULL,
  payload  TEXT    NOT NULL,
  metadata TEXT    NOT NULL,
  time     INTEGER NOT NULL,  -- milliseconds since 1970
  UNIQUE (stream, version)
) STRICT;
CREATE INDEX $_events_slot ON $_events (slot, position);
)";

constexpr std::string_view kColumns =
    "position, stream, version, slot, id, type, payload, metadata, time";

const sql::SqliteMigrations& Migrations() {
  static const sql::SqliteMigrations kAll{.what = "the event log",
                                          .version_table = "$_event_log_schema",
                                          .unversioned = "$_event_log",
                                          .steps = {sql::SqliteStatements(kVersion1)}};
  return kAll;
}

Event EventOf(const sql::SqliteStatement& row) {
  Event event;
  event.position = row.Int(0);
  event.stream = row.Text(1);
  event.version = row.Int(2);
  event.slot = static_cast<int>(row.Int(3));
  event.id = row.Text(4);
  event.type = row.Text(5);
  event.payload = row.Text(6);
  event.metadata = row.Text(7);
  event.time = WallTime(milliseconds(row.Int(8)));
  return event;
}

Status AddRows(sql::SqliteStatement& statement, ReadBudget& budget, std::vector<Event>& events) {
  while (!budget.Spent()) {
    MUSTER_ASSIGN(const bool row, statement.Step());
    if (!row) break;
    events.push_back(EventOf(statement));
    budget.Take(events.back());
  }
  statement.Reset();
  return {};
}

Result<int64_t> OneInt(sql::SqliteStatement& statement) {
  MUSTER_ASSIGN(const bool row, statement.Step());
  const int64_t value = row ? statement.Int(0) : 0;
  statement.Reset();
  return value;
}

class SqliteEventLog final : public EventLog {
 public:
  SqliteEventLog(Env& env, size_t read_bytes) : env_(env), read_bytes_(read_bytes) {}

  Status Open(const std::string& path, const std::string& space, const EventLogOptions& options) {
    const MutexLock writing(writer_.mutex);
    const MutexLock reading(reader_.mutex);
    const auto mode =
        options.create ? sql::SqliteDb::Mode::kCreatePrivate : sql::SqliteDb::Mode::kExisting;
    MUSTER_ASSIGN(writer_.db, sql::SqliteDb::Open(path, mode, kBusyTimeout));
    MUSTER_TRY(SetUp(space, options.slots));
    MUSTER_ASSIGN(reader_.db,
                  sql::SqliteDb::Open(path, sql::SqliteDb::Mode::kExisting, kBusyTimeout));
    return Prepare(space + "_events");
  }

  int slots() const override { return slots_; }

  Result<std::vector<int64_t>> Append(std::span<const StreamAppend> appends) override {
    MUSTER_TRY(CheckAppends(appends));
    const MutexLock lock(writer_.mutex);
    MUSTER_ASSIGN(sql::SqliteTransaction transaction, sql::SqliteTransaction::Begin(*writer_.db));
    std::vector<int64_t> versions;
    for (const StreamAppend& append : appends) {
      MUSTER_ASSIGN(int64_t version, OneInt(head_.Bind(append.stream)));
      if (append.expected != kAnyVersion && append.expected != version) {
        return WrongVersion(append.stream, append.expected, version);
      }
      const int slot = SlotOf(append.stream, slots_);
      for (const NewEvent& event : append.events) {
        const std::string id = event.id.empty() ? env_.NewId() : event.id;
        MUSTER_TRY(
            insert_
                .Bind(append.stream, ++version, slot, id, event.type, event.payload, event.metadata)
                .Run());
      }
      versions.push_back(version);
    }
    MUSTER_TRY(transaction.Commit());
    ++own_appends_;
    return versions;
  }

  Result<std::vector<Event>> ReadStream(std::string_view stream, int64_t after,
                                        int limit) override {
    MUSTER_TRY(CheckStreamRead(after, limit));
    std::vector<Event> events;
    const MutexLock lock(reader_.mutex);
    ReadBudget budget(limit, read_bytes_);
    MUSTER_TRY(AddRows(read_stream_.Bind(stream, after, limit), budget, events));
    return events;
  }

  Result<EventPage> ReadAll(int64_t after, int limit) override {
    MUSTER_TRY(CheckRead(after, limit));
    EventPage page;
    const MutexLock lock(reader_.mutex);
    // The end is read before the events: anything in between is for the next page.
    MUSTER_ASSIGN(const int64_t horizon, OneInt(last_));
    ReadBudget budget(limit, read_bytes_);
    MUSTER_TRY(AddRows(read_all_.Bind(after, horizon, limit), budget, page.events));
    page.read_to = budget.Spent() ? page.events.back().position : std::max(after, horizon);
    MUSTER_ASSIGN(page.end, MarkAt(page.read_to));
    return page;
  }

  Result<EventPage> Read(std::span<const SlotPosition> from, int limit) override {
    MUSTER_TRY(CheckSlots(from, slots_, limit));
    EventPage page;
    const MutexLock lock(reader_.mutex);
    MUSTER_ASSIGN(const int64_t horizon, OneInt(last_));
    std::vector<int64_t> positions;
    for (int widen = 0; widen < kMaxWindows; ++widen) {
      const ReadWindow window = NextWindow(from, slots_, limit, horizon, widen);
      page.read_to = window.end;
      MUSTER_ASSIGN(positions, PositionsIn(window, limit));
      if (!positions.empty() || window.end == horizon) break;
    }
    ReadBudget budget(limit, read_bytes_);
    for (const int64_t position : positions) {
      MUSTER_TRY(AddRows(read_one_.Bind(position), budget, page.events));
    }
    if (budget.Spent()) page.read_to = page.events.back().position;
    MUSTER_ASSIGN(page.end, MarkAt(page.read_to));
    return page;
  }

  Result<int64_t> Last() override {
    const MutexLock lock(reader_.mutex);
    return OneInt(last_);
  }

  Result<std::vector<EventMark>> MarksAt(std::span<const int64_t> positions) override {
    std::vector<EventMark> marks;
    const MutexLock lock(reader_.mutex);
    for (const int64_t position : positions) {
      MUSTER_ASSIGN(const EventMark mark, MarkAt(position));
      marks.push_back(mark);
    }
    return marks;
  }

  Result<std::vector<SlotLag>> Lag(std::span<const SlotPosition> from) override {
    MUSTER_TRY(CheckSlots(from, slots_, 1));
    std::vector<SlotLag> lags;
    const MutexLock lock(reader_.mutex);
    for (const SlotPosition& slot : from) {
      MUSTER_ASSIGN(const bool row, lag_.Bind(slot.slot, slot.position).Step());
      SlotLag lag =
          LagOf(slot.slot, row ? lag_.Int(0) : 0, slot.position, row ? lag_.Int(2) : 0, slots_);
      if (row && !lag_.IsNull(1)) lag.oldest = WallTime(milliseconds(lag_.Int(1)));
      lag_.Reset();
      lags.push_back(lag);
    }
    return lags;
  }

  void Wait(milliseconds timeout, std::stop_token stop) override {
    const auto seen = Signs();
    PollUntil([&] { return Signs() != seen; }, env_, kPolls, timeout, stop);
  }

 private:
  struct Connection {
    Mutex mutex;
    std::unique_ptr<sql::SqliteDb> db GUARDED_BY(mutex);
  };

  Result<EventMark> MarkAt(int64_t position) REQUIRES(reader_.mutex) {
    std::vector<Event> events;
    ReadBudget budget(1, read_bytes_);
    MUSTER_TRY(AddRows(mark_.Bind(position), budget, events));
    return events.empty() ? EventMark{} : MarkOf(events.front());
  }

  // Positions of the first events in a window: slots are scattered, and the events themselves may
  // be large.
  Result<std::vector<int64_t>> PositionsIn(const ReadWindow& window, int limit)
      REQUIRES(reader_.mutex) {
    std::vector<int64_t> positions;
    for (const SlotPosition& slot : window.slots) {
      find_slot_.Bind(slot.slot, slot.position, window.end, limit);
      for (;;) {
        MUSTER_ASSIGN(const bool row, find_slot_.Step());
        if (!row) break;
        positions.push_back(find_slot_.Int(0));
      }
      find_slot_.Reset();
    }
    std::sort(positions.begin(), positions.end());
    if (positions.size() > static_cast<size_t>(limit)) positions.resize(static_cast<size_t>(limit));
    return positions;
  }

  Status SetUp(const std::string& space, int slots) REQUIRES(writer_.mutex) {
    MUSTER_TRY(sql::MigrateSqliteTables(*writer_.db, space, Migrations()));
    const std::string table = sql::InSqliteSpace("$_event_log", space);
    const std::string query = "SELECT coalesce(max(slots), 0) FROM " + table;
    MUSTER_ASSIGN(int64_t stored, writer_.db->QueryInt(query));
    if (stored == 0) {
      MUSTER_ASSIGN(sql::SqliteTransaction transaction, sql::SqliteTransaction::Begin(*writer_.db));
      const int chosen = slots == 0 ? kDefaultSlots : slots;
      MUSTER_TRY(writer_.db->Execute("INSERT INTO " + table + " SELECT " + std::to_string(chosen) +
                                     " WHERE NOT EXISTS (SELECT 1 FROM " + table + ")"));
      MUSTER_ASSIGN(stored, writer_.db->QueryInt(query));
      MUSTER_TRY(transaction.Commit());
    }
    slots_ = static_cast<int>(stored);
    return CheckSlotCount(slots, slots_);
  }

  Status Prepare(const std::string& table) REQUIRES(writer_.mutex, reader_.mutex) {
    const std::string select = "SELECT " + std::string(kColumns) + " FROM " + table;
    MUSTER_ASSIGN(head_, writer_.db->Prepare("SELECT coalesce(max(version), 0) FROM " + table +
                                             " WHERE stream = ?"));
    MUSTER_ASSIGN(insert_,
                  writer_.db->Prepare("INSERT INTO " + table +
                                      " (stream, version, slot, id, type, payload, metadata, time)"
                                      " VALUES (?, ?, ?, ?, ?, ?, ?,"
                                      " CAST(round((julianday('now') - 2440587.5) * 86400000.0)"
                                      " AS INTEGER))"));
    sql::SqliteDb& db = *reader_.db;
    MUSTER_ASSIGN(last_, db.Prepare("SELECT coalesce(max(position), 0) FROM " + table));
    MUSTER_ASSIGN(read_stream_, db.Prepare(select + " WHERE stream = ? AND version > ?"
                                                    " ORDER BY version LIMIT ?"));
    MUSTER_ASSIGN(read_all_, db.Prepare(select + " WHERE position > ? AND position <= ?"
                                                 " ORDER BY position LIMIT ?"));
    MUSTER_ASSIGN(read_one_, db.Prepare(select + " WHERE position = ?"));
    MUSTER_ASSIGN(mark_, db.Prepare("SELECT position, stream, version, slot, id, '', '', '', 0"
                                    " FROM " +
                                    table + " WHERE position <= ? ORDER BY position DESC LIMIT 1"));
    MUSTER_ASSIGN(find_slot_, db.Prepare("SELECT position FROM " + table +
                                         " WHERE slot = ? AND position > ? AND position <= ?"
                                         " ORDER BY position LIMIT ?"));
    MUSTER_ASSIGN(lag_, db.Prepare("SELECT count(*), (SELECT time FROM " + table +
                                   " WHERE slot = ?1 AND position > ?2 ORDER BY position LIMIT 1)"
                                   ", (SELECT coalesce(max(position), 0) FROM " +
                                   table + ") FROM (SELECT 1 FROM " + table +
                                   " WHERE slot = ?1 AND position > ?2 ORDER BY position LIMIT " +
                                   std::to_string(kMaxCountedLag + 1) + ")"));
    MUSTER_ASSIGN(data_version_, db.Prepare("PRAGMA data_version"));
    return {};
  }

  // Changes when this or another process has written to the file.
  std::pair<uint64_t, int64_t> Signs() {
    const MutexLock lock(reader_.mutex);
    auto others = OneInt(data_version_);
    return {own_appends_.load(), others ? *others : 0};
  }

  Env& env_;
  const size_t read_bytes_;
  int slots_ = 0;
  Connection writer_;
  Connection reader_;  // separate, so that a read never waits for another thread's fsync
  std::atomic<uint64_t> own_appends_ = 0;
  sql::SqliteStatement head_ GUARDED_BY(writer_.mutex);
  sql::SqliteStatement insert_ GUARDED_BY(writer_.mutex);
  sql::SqliteStatement last_ GUARDED_BY(reader_.mutex);
  sql::SqliteStatement read_stream_ GUARDED_BY(reader_.mutex);
  sql::SqliteStatement read_all_ GUARDED_BY(reader_.mutex);
  sql::SqliteStatement read_one_ GUARDED_BY(reader_.mutex);
  sql::SqliteStatement find_slot_ GUARDED_BY(reader_.mutex);
  sql::SqliteStatement lag_ GUARDED_BY(reader_.mutex);
  sql::SqliteStatement mark_ GUARDED_BY(reader_.mutex);
  sql::SqliteStatement data_version_ GUARDED_BY(reader_.mutex);
};

}  // namespace

Result<std::unique_ptr<EventLog>> OpenSqliteEventLog(const std::string& path,
                                                     const std::string& space, Env& env,
                                                     const EventLogOptions& options) {
  auto log = std::make_unique<SqliteEventLog>(env, options.read_bytes);
  MUSTER_TRY(log->Open(path, space, options));
  return log;
}

}  // namespace muster::events
