#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <utility>

#include "core/mutex.h"
#include "core/poll.h"
#include "sql/sqlite.h"
#include "store/backends.h"
#include "store/record_rules.h"
#include "store/sqlite/sqlite_schema.h"

namespace muster::store {
namespace {

using std::chrono::milliseconds;

// Less than a third of any sensible lease.
constexpr milliseconds kBusyTimeout{10'000};
constexpr Backoff::Pauses kPolls{.first = milliseconds(5), .longest = milliseconds(250)};

// SQLite uses the machine's clock, the same for all that share the file, whatever their Env.
constexpr std::string_view kNow =
    "CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)";
constexpr std::string_view kColumns =
    " kind, queue, key, version, due, owner, epoch, attempt, body ";

Record RowOf(const sql::SqliteStatement& row) {
  Record record;
  record.kind = row.Text(0);
  record.queue = row.Text(1);
  record.key = row.Text(2);
  record.version = row.Int(3);
  if (!row.IsNull(4)) record.due = WallTime(milliseconds(row.Int(4)));
  record.owner = row.Text(5);
  record.epoch = row.Int(6);
  record.attempt = static_cast<int>(row.Int(7));
  record.body = row.Text(8);
  return record;
}

Result<std::vector<Record>> AllRows(sql::SqliteStatement& statement) {
  std::vector<Record> records;
  for (;;) {
    MUSTER_ASSIGN(const bool row, statement.Step());
    if (!row) break;
    records.push_back(RowOf(statement));
  }
  statement.Reset();
  return records;
}

// After every key that starts with `prefix`: keys are UTF-8, which has no byte 0xFF.
std::string EndOf(std::string_view prefix) { return std::string(prefix) + '\xFF'; }

// For a read, an unknown outcome is just a failure.
Error ReadError(Error error) {
  if (error.code == Code::kUnknownOutcome) error.code = Code::kUnavailable;
  return error;
}

class SqliteStore final : public Store {
 public:
  explicit SqliteStore(Env& env) : env_(env) {}

  Status Open(const std::string& path, const std::string& space) {
    MUSTER_ASSIGN(writer_,
                  sql::SqliteDb::Open(path, sql::SqliteDb::Mode::kCreatePrivate, kBusyTimeout));
    MUSTER_TRY(MigrateSqlite(*writer_, space));
    const MutexLock lock(reader_mutex_);
    MUSTER_ASSIGN(reader_, sql::SqliteDb::Open(path, sql::SqliteDb::Mode::kExisting, kBusyTimeout));
    return PrepareAll(space + "_records");
  }

  Result<std::optional<Record>> Get(std::string_view kind, std::string_view key) override {
    MUSTER_TRY(CheckKind(kind));
    MUSTER_TRY(CheckKey(key));
    const MutexLock lock(reader_mutex_);
    auto rows = AllRows(get_.Bind(kind, key));
    if (!rows) return ReadError(rows.error());
    if (rows->empty()) return std::optional<Record>{};
    return std::optional<Record>(std::move(rows->front()));
  }

  Result<std::vector<Record>> Scan(std::string_view kind, std::string_view prefix,
                                   std::string_view after, int limit) override {
    MUSTER_TRY(CheckScan(kind, prefix, after, limit));
    const MutexLock lock(reader_mutex_);
    auto rows = AllRows(scan_.Bind(kind, after, prefix, EndOf(prefix), limit));
    if (!rows) return ReadError(rows.error());
    return rows;
  }

  Result<std::vector<Written>> Write(std::span<const Change> changes) override {
    MUSTER_TRY(CheckChanges(changes));
    std::vector<Written> answers;
    if (changes.empty()) return answers;
    answers.reserve(changes.size());
    const auto apply = [&]() -> Status {
      MUSTER_ASSIGN(const int64_t now, ReadClock(write_clock_));
      for (const Change& change : changes) {
        MUSTER_ASSIGN(const Written answer, Apply(change, now));
        answers.push_back(answer);
      }
      return {};
    };
    MUSTER_TRY(Commit(apply, std::ranges::all_of(changes, &Change::deferred)));
    ++own_changes_;
    return answers;
  }

  Result<std::vector<Record>> Claim(const ClaimRequest& request) override {
    MUSTER_TRY(CheckClaim(request));
    std::vector<Record> taken;
    const auto take = [&]() -> Status {
      if (request.repeat) {
        MUSTER_ASSIGN(taken, AllRows(taken_.Bind(request.kind, request.queue, request.claim_id)));
        if (!taken.empty()) return {};
      }
      MUSTER_ASSIGN(taken, Take(request));
      return {};
    };
    MUSTER_TRY(Commit(take, request.deferred));
    return taken;
  }

  Result<WallTime> Now() override {
    const MutexLock lock(reader_mutex_);
    auto now = ReadClock(read_clock_);
    if (!now) return ReadError(now.error());
    return WallTime(milliseconds(*now));
  }

  void Wait(std::string_view /*kind*/, milliseconds timeout, std::stop_token stop) override {
    const auto seen = Signs();
    PollUntil([&] { return Signs() != seen; }, env_, kPolls, timeout, stop);
  }

 private:
  struct Call {
    const std::function<Status()>& apply;
    const bool deferred;
    std::optional<Status> outcome = {};  // once it has ended; guarded by calls_mutex_
  };

  // Group commit: the first waiter commits everything queued; all share one fsync and one outcome.
  Status Commit(const std::function<Status()>& apply, bool deferred) {
    Call mine{apply, deferred};
    MutexLock lock(calls_mutex_);
    calls_.push_back(&mine);
    while (!mine.outcome && is_committing_) calls_ended_.wait(lock);
    if (mine.outcome) return *mine.outcome;
    const std::vector<Call*> calls = std::exchange(calls_, {});
    is_committing_ = true;
    lock.unlock();
    Status outcome = CommitAll(calls);
    lock.lock();
    is_committing_ = false;
    for (Call* call : calls) call->outcome = outcome;
    calls_ended_.notify_all();
    return outcome;
  }

  Status CommitAll(const std::vector<Call*>& calls) {
    MUSTER_TRY(WaitForDisk(!std::ranges::all_of(calls, &Call::deferred)));
    MUSTER_ASSIGN(sql::SqliteTransaction transaction, sql::SqliteTransaction::Begin(*writer_));
    for (const Call* call : calls) MUSTER_TRY(call->apply());
    return transaction.Commit();
  }

  Status PrepareAll(const std::string& table) REQUIRES(reader_mutex_) {
    const std::string clock = "SELECT " + std::string(kNow);
    const std::string columns(kColumns);
    const std::string pick = "SELECT" + columns + ", rowid FROM " + table;
    const std::string where = " WHERE kind = ?1 AND queue = ?2 AND due <= ?3";
    MUSTER_ASSIGN(write_clock_, writer_->Prepare(clock));
    MUSTER_ASSIGN(pick_, writer_->Prepare(pick + " INDEXED BY " + table + "_due" + where +
                                          " ORDER BY due LIMIT ?4"));
    MUSTER_ASSIGN(pick_key_, writer_->Prepare(pick + where + " AND key = ?4"));
    MUSTER_ASSIGN(take_, writer_->Prepare("UPDATE " + table +
                                          " SET owner = ?1, claim_id = ?2, version = ?3,"
                                          " epoch = ?4, attempt = ?5, due = ?6"
                                          " WHERE rowid = ?7"));
    MUSTER_ASSIGN(taken_, writer_->Prepare("SELECT" + columns + "FROM " + table +
                                           " WHERE kind = ? AND queue = ? AND due IS NOT NULL"
                                           " AND claim_id = ?"));
    MUSTER_ASSIGN(create_,
                  writer_->Prepare("INSERT INTO " + table +
                                   " (kind, queue, key, version, owner, attempt, body, due, epoch,"
                                   " claim_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, '')"
                                   " ON CONFLICT DO NOTHING"));
    MUSTER_ASSIGN(replace_, writer_->Prepare(
                                "UPDATE " + table +
                                " SET version = version + 1, owner = ?4, attempt = ?5, body = ?6,"
                                " due = iif(?7, due, ?8)"
                                " WHERE kind = ?1 AND key = ?2 AND version = ?3"));
    MUSTER_ASSIGN(delete_, writer_->Prepare("DELETE FROM " + table +
                                            " WHERE kind = ?1 AND key = ?2 AND version = ?3"));
    MUSTER_ASSIGN(get_, reader_->Prepare("SELECT" + columns + "FROM " + table +
                                         " WHERE kind = ? AND key = ?"));
    MUSTER_ASSIGN(scan_, reader_->Prepare("SELECT" + columns + "FROM " + table +
                                          " WHERE kind = ?1 AND key > ?2 AND key >= ?3"
                                          " AND key < ?4 ORDER BY key LIMIT ?5"));
    MUSTER_ASSIGN(read_clock_, reader_->Prepare(clock));
    MUSTER_ASSIGN(data_version_, reader_->Prepare("PRAGMA data_version"));
    return {};
  }

  // Whether the next commit waits for the disk, and thereby for every earlier commit. One that does
  // not is in the log all the same: only a power failure can lose it.
  Status WaitForDisk(bool wait) {
    if (wait == waits_for_disk_) return {};
    MUSTER_TRY(writer_->Execute(wait ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL"));
    waits_for_disk_ = wait;
    return {};
  }

  // Not one UPDATE ... WHERE rowid IN (SELECT ...): that is slower, and a full scan if ANALYZE ran
  // while the table was small.
  Result<std::vector<Record>> Take(const ClaimRequest& request) {
    MUSTER_ASSIGN(const int64_t now, ReadClock(write_clock_));
    sql::SqliteStatement& pick =
        request.key.empty() ? pick_.Bind(request.kind, request.queue, now, request.limit)
                            : pick_key_.Bind(request.kind, request.queue, now, request.key);
    std::vector<Record> records;
    std::vector<int64_t> row_ids;
    for (;;) {
      MUSTER_ASSIGN(const bool found, pick.Step());
      if (!found) break;
      records.push_back(RowOf(pick));
      row_ids.push_back(pick.Int(9));
    }
    pick.Reset();
    for (size_t i = 0; i < records.size(); ++i) {
      Record& record = records[i];
      record.owner = request.owner;
      record.version += ClaimStep(request);
      ++record.epoch;
      ++record.attempt;
      const int64_t due = now + LeaseFor(record.attempt, request.lease, request.max_lease).count();
      record.due = WallTime(milliseconds(due));
      MUSTER_TRY(take_
                     .Bind(record.owner, request.claim_id, record.version, record.epoch,
                           record.attempt, due, row_ids[i])
                     .Run());
    }
    return records;
  }

  static Result<int64_t> ReadClock(sql::SqliteStatement& clock) {
    MUSTER_TRY(clock.Step());
    const int64_t now = clock.Int(0);
    clock.Reset();
    return now;
  }

  Result<Written> Apply(const Change& change, int64_t now) {
    const Record& record = change.record;
    std::optional<int64_t> due;  // none: never
    if (change.due.kind == Due::Kind::kAfter) due = now + change.due.delay.count();
    if (change.due.kind == Due::Kind::kAtOnce) {
      due = DueAtOnce(WallTime(milliseconds(now))).time_since_epoch().count();
    }
    if (change.op == Change::Op::kDelete) {
      MUSTER_TRY(delete_.Bind(record.kind, record.key, record.version).Run());
      return Written{.applied = writer_->Changes() == 1};
    }
    if (record.version == 0) {
      const int64_t version = FirstVersion(env_);
      MUSTER_TRY(create_
                     .Bind(record.kind, record.queue, record.key, version, record.owner,
                           record.attempt, record.body, due)
                     .Run());
      if (writer_->Changes() == 0) return Written{};
      return Written{.applied = true, .version = version};
    }
    const int keep_due = change.due.kind == Due::Kind::kUnchanged ? 1 : 0;
    MUSTER_TRY(replace_
                   .Bind(record.kind, record.key, record.version, record.owner, record.attempt,
                         record.body, keep_due, due)
                   .Run());
    if (writer_->Changes() == 0) return Written{};
    return Written{.applied = true, .version = record.version + 1};
  }

  // Changes when this or another process has written to the file.
  std::pair<uint64_t, int64_t> Signs() {
    const MutexLock lock(reader_mutex_);
    int64_t others = 0;
    if (auto row = data_version_.Step(); row && *row) others = data_version_.Int(0);
    data_version_.Reset();
    return {own_changes_.load(), others};
  }

  Env& env_;
  std::unique_ptr<sql::SqliteDb> writer_;  // one thread at a time: see Commit
  Mutex calls_mutex_;
  std::condition_variable_any calls_ended_;
  std::vector<Call*> calls_ GUARDED_BY(calls_mutex_);  // queued
  bool is_committing_ GUARDED_BY(calls_mutex_) = false;
  Mutex reader_mutex_;
  // Separate, so that a read never waits for a thread's fsync.
  std::unique_ptr<sql::SqliteDb> reader_ GUARDED_BY(reader_mutex_);
  std::atomic<uint64_t> own_changes_ = 0;
  bool waits_for_disk_ = true;  // the writer connection's current setting

  // On the writer's connection.
  sql::SqliteStatement write_clock_, pick_, pick_key_, take_, taken_, create_, replace_, delete_;
  // On the reader's.
  sql::SqliteStatement read_clock_ GUARDED_BY(reader_mutex_);
  sql::SqliteStatement get_ GUARDED_BY(reader_mutex_);
  sql::SqliteStatement scan_ GUARDED_BY(reader_mutex_);
  sql::SqliteStatement data_version_ GUARDED_BY(reader_mutex_);
};

}  // namespace

Result<std::unique_ptr<Store>> OpenSqliteStore(const std::string& path, const std::string& space,
                                               Env& env) {
  auto store = std::make_unique<SqliteStore>(env);
  MUSTER_TRY(store->Open(path, space));
  return store;
}

}  // namespace muster::store
