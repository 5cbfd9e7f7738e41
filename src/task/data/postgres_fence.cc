#include "task/data/postgres_fence.h"

#include <chrono>

#include "core/number.h"
#include "sql/table_format.h"

namespace muster::task {
namespace {

std::string CreateSql() {
  return "CREATE TABLE IF NOT EXISTS muster_transform (task text PRIMARY KEY, run text NOT NULL, "
         "attempt bigint NOT NULL, "
         "epoch bigint NOT NULL, call text NOT NULL, result text, holder_pid integer, holder_since "
         "timestamptz, updated timestamptz NOT NULL DEFAULT now(), " +
         sql::FormatColumn(kTransformFormat) + ")";
}

// How long to wait for a session that we may not terminate.
constexpr std::chrono::minutes kHolderWait{5};
constexpr std::chrono::milliseconds kLookAgain{500};

// Inside a transaction: only the COMMIT can have an unknown outcome.
sql::PgStatement Inside(std::string sql) {
  return {.name = "", .sql = std::move(sql), .writes = false, .text_results = true};
}

Status Say(sql::PgConnection& connection, const std::string& sql) {
  MUSTER_TRY(connection.Execute(Inside(sql), sql::PgParams()));
  return {};
}

Result<StoredLoad> StoredIn(const sql::PgResult& answer, const LoadFence& fence,
                            const sql::PgConnection& connection) {
  if (answer.rows() == 0) {
    return Error{
        Code::kConflict,
        connection.Place() + ": the row of " + fence.task + " is gone from muster_transform",
        "do not delete its rows while a run is in progress"};
  }
  StoredLoad stored{.run = std::string(answer.Text(0, 0)),
                    .attempt = ParseNumber<int64_t>(answer.Text(0, 1)).value_or(0),
                    .epoch = ParseNumber<int64_t>(answer.Text(0, 2)).value_or(0),
                    .call = std::string(answer.Text(0, 3)),
                    .result = {}};
  if (!answer.IsNull(0, 4)) stored.result = std::string(answer.Text(0, 4));
  return stored;
}

std::string LockSql(const LoadFence& fence) {
  return "SELECT run, attempt, epoch, call, result FROM muster_transform WHERE task = " +
         sql::PgLiteral(fence.task) + " FOR UPDATE";
}

}  // namespace

Status PostgresFence::EnsureTable(sql::PgConnection& connection) const {
  MUSTER_ASSIGN(const bool there,
                sql::FindPgTable(connection, std::string(kTransformFormat.name), kTransformFormat));
  if (there) return {};
  // Concurrent CREATE TABLE IF NOT EXISTS can fail.
  const sql::PgStatement lock =
      Inside("SELECT pg_advisory_xact_lock(hashtext('muster_transform'))");
  const sql::PgStatement create = Inside(CreateSql());
  const sql::PgParams none = {};
  const sql::PgCall calls[] = {{lock, none}, {create, none}};
  const auto made = connection.Execute(calls);
  if (made || made.error().code != Code::kPermission) return made ? Status() : made.error();
  return Error{Code::kPermission, made.error().message,
               "muster records there what its calls have done: allow the role to create tables in "
               "the first schema of its search_path, or create it: " +
                   CreateSql()};
}

Result<std::optional<std::string>> PostgresFence::TryTake(sql::PgConnection& connection) {
  MUSTER_TRY(Say(connection, "BEGIN"));
  MUSTER_TRY(Say(connection, "SET LOCAL lock_timeout = '500ms'"));
  MUSTER_TRY(
      Say(connection, "INSERT INTO muster_transform (task, run, attempt, epoch, call) VALUES (" +
                          sql::PgLiteral(fence_.task) + ", '', 0, 0, '') ON CONFLICT DO NOTHING"));
  MUSTER_ASSIGN(const sql::PgResult row,
                connection.Execute(Inside(LockSql(fence_)), sql::PgParams()));
  MUSTER_ASSIGN(const StoredLoad stored, StoredIn(row, fence_, connection));
  MUSTER_ASSIGN(auto result, CheckOpen(fence_, stored));
  if (result) return result;
  epoch_ = stored.epoch + 1;
  MUSTER_TRY(
      Say(connection, "UPDATE muster_transform SET run = " + sql::PgLiteral(fence_.run) +
                          ", attempt = " + std::to_string(fence_.attempt) + ", epoch = " +
                          std::to_string(epoch_) + ", call = " + sql::PgLiteral(fence_.call) +
                          ", result = NULL, updated = now(), holder_pid = pg_backend_pid(), "
                          "holder_since = (SELECT backend_start FROM pg_stat_activity WHERE pid = "
                          "pg_backend_pid()) WHERE task = " +
                          sql::PgLiteral(fence_.task)));
  MUSTER_TRY(Say(connection, "COMMIT"));
  return result;
}

// Terminates the session that last opened it, and describes that session.
Result<std::string> PostgresFence::EndHolder(sql::PgConnection& connection) const {
  const std::string holder =
      " FROM muster_transform t JOIN pg_stat_activity a ON a.pid = t.holder_pid AND "
      "a.backend_start = t.holder_since WHERE t.task = " +
      sql::PgLiteral(fence_.task) + " AND (t.run <> " + sql::PgLiteral(fence_.run) +
      " OR t.attempt <= " + std::to_string(fence_.attempt) +
      ")"
      " AND a.pid <> pg_backend_pid()";
  MUSTER_ASSIGN(const sql::PgResult found,
                connection.Execute(Inside("SELECT a.pid, coalesce(a.usename, '')" + holder),
                                   sql::PgParams()));
  if (found.rows() == 0) return std::string("another session");
  const std::string who = "an earlier try's session, process " + std::string(found.Text(0, 0)) +
                          " of " + std::string(found.Text(0, 1));
  const auto ended =
      connection.Execute(Inside("SELECT pg_terminate_backend(a.pid)" + holder), sql::PgParams());
  // We may not terminate sessions of another role.
  if (!ended && ended.error().code != Code::kPermission) return ended.error();
  return who;
}

Result<std::optional<std::string>> PostgresFence::Take(sql::PgConnection& connection,
                                                       const std::stop_token& stop) {
  MUSTER_TRY(EnsureTable(connection));
  const MonoTime end = env_.MonoNow() + kHolderWait;
  bool said = false;
  for (int tries = 0;; ++tries) {
    auto taken = TryTake(connection);
    if (taken && said) say_("");
    // A committed take leaves no transaction open; a found result or a failure does.
    if (!connection.lost() && (!taken || *taken)) MUSTER_TRY(Say(connection, "ROLLBACK"));
    if (taken || !sql::IsPgLockTimeout(taken.error())) return taken;
    if (env_.MonoNow() >= end) return taken;
    MUSTER_ASSIGN(const std::string who, EndHolder(connection));
    if (tries == 2 && say_) {
      said = true;
      say_(who + ", which is loading " + fence_.task);
    }
    if (!env_.Sleep(kLookAgain, stop)) return Error{Code::kCancelled, "stopped"};
  }
}

Status PostgresFence::Lock(sql::PgConnection& connection) const {
  MUSTER_ASSIGN(const sql::PgResult row,
                connection.Execute(Inside(LockSql(fence_)), sql::PgParams()));
  MUSTER_ASSIGN(const StoredLoad stored, StoredIn(row, fence_, connection));
  return CheckHeld(fence_, epoch_, stored);
}

Status PostgresFence::Commit(sql::PgConnection& connection, const std::string& result) const {
  const sql::PgParams none = {};
  const sql::PgStatement keep =
      Inside("UPDATE muster_transform SET result = " + sql::PgLiteral(result) +
             ", updated = now() WHERE task = " + sql::PgLiteral(fence_.task));
  const sql::PgStatement commit{.name = "", .sql = "COMMIT", .writes = true};
  const sql::PgCall calls[] = {{keep, none}, {commit, none}};
  MUSTER_TRY(connection.Execute(calls));
  return {};
}

Result<std::string> DescribeBlocker(sql::PgConnection& connection, int32_t pid) {
  MUSTER_ASSIGN(
      const sql::PgResult found,
      connection.Execute(
          Inside("SELECT a.pid, coalesce(a.usename, ''), coalesce(a.state, ''), "
                 "coalesce(to_char(a.xact_start, 'HH24:MI:SS'), '') FROM "
                 "unnest(pg_blocking_pids(" +
                 std::to_string(pid) +
                 ")) AS b(pid) JOIN pg_stat_activity a ON a.pid = b.pid ORDER BY 1 LIMIT 1"),
          sql::PgParams()));
  if (found.rows() == 0) return std::string();
  const auto text = [&](int column) { return std::string(found.Text(0, column)); };
  return "a lock held by process " + text(0) + " of " + text(1) + " at " + connection.Place() +
         ", " + text(2) + " in a transaction since " + text(3);
}

}  // namespace muster::task
