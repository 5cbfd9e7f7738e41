// Goal: a transform loads once, however often it is tried, and a delayed session cannot overwrite
// later loads. Method: two sessions on one target, one of which is suspended at the worst moment;
// and connections that are cut at every byte.

#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <mutex>

#include "core/interrupt.h"
#include "core/wait_watch.h"
#include "sql/postgres.h"
#include "sql/sqlite.h"
#include "support/await.h"
#include "support/fault_proxy.h"
#include "support/postgres_server.h"
#include "support/temporary_folder.h"
#include "task/data/transform_executor.h"
#include "task/data/transform_target.h"
#include "task/test_context.h"

namespace muster::task {
namespace {

const LoadFence kFence{.task = "t/m/load", .run = "r", .attempt = 1, .call = "m:0:1"};

LoadFence Later() {
  LoadFence later = kFence;
  later.attempt = 2;
  later.call = "m.2:0:1";
  return later;
}

class FenceTest : public ::testing::TestWithParam<std::string> {
 protected:
  bool sqlite() const { return GetParam() == "Sqlite"; }

  void SetUp() override {
    if (sqlite()) {
      db_ = *sql::SqliteDb::Open(folder_.At("t.db"), sql::SqliteDb::Mode::kCreate,
                                 std::chrono::milliseconds(5000));
      ASSERT_TRUE(db_->Execute(
          "CREATE TABLE s_a (id TEXT PRIMARY KEY); CREATE TABLE loads (id TEXT);"
          "CREATE TRIGGER i AFTER INSERT ON s_a BEGIN INSERT INTO loads VALUES (NEW.id); END;"
          "CREATE TRIGGER u AFTER UPDATE ON s_a BEGIN INSERT INTO loads VALUES (NEW.id); END"));
      url_ = "sqlite:" + folder_.path() + "/t.db";
      return;
    }
    const std::string missing = testing::PostgresServer::Unavailable();
    if (!missing.empty()) GTEST_SKIP() << "PostgreSQL: " << missing;
    server_ = &testing::PostgresServer::Shared();
    server_->Exec(
        "SET client_min_messages = warning; DROP SCHEMA IF EXISTS s CASCADE; DROP TABLE IF EXISTS "
        "muster_transform; CREATE SCHEMA s; CREATE TABLE s.a (id text PRIMARY KEY); CREATE TABLE "
        "s.loads (id text); CREATE FUNCTION s.note() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN "
        "INSERT INTO s.loads VALUES (NEW.id); RETURN NEW; END$$; CREATE TRIGGER n AFTER INSERT OR "
        "UPDATE ON s.a FOR EACH ROW EXECUTE FUNCTION s.note()");
    url_ = server_->Url();
  }

  // How often rows were loaded, counting those that replaced themselves.
  std::string Loads() {
    if (server_ != nullptr) return server_->Exec("SELECT count(*) FROM s.loads");
    return *db_->QueryText("SELECT count(*) FROM loads");
  }

  std::unique_ptr<TransformTarget> Open() {
    auto target = OpenTransformTarget(url_, RealEnv());
    if (!target) throw std::runtime_error(target.error().ToString());
    return *std::move(target);
  }

  Result<int64_t> LoadOne(TransformTarget& target) {
    MUSTER_ASSIGN(const TargetTable table, target.Describe("s", "a"));
    MUSTER_ASSIGN(const auto duck, sql::DuckDb::Open({}));
    MUSTER_TRY(duck->Execute("CREATE TABLE r AS SELECT 'x' AS id"));
    const RowsToLoad rows{
        .from = "r", .where = "true", .last_rowid = 0, .columns = {"id"}, .types = {"VARCHAR"}};
    return target.Load(*duck, rows, table, {});
  }

  testing::TemporaryFolder folder_;
  std::unique_ptr<sql::SqliteDb> db_;
  testing::PostgresServer* server_ = nullptr;
  std::string url_;
};

TEST_P(FenceTest, ACallThatHasCommittedIsNotLoadedByAnotherTry) {
  auto first = Open();
  ASSERT_FALSE(*first->Take(kFence, {}));
  ASSERT_TRUE(LoadOne(*first));
  ASSERT_TRUE(first->Commit(R"({"loaded":1})"));
  EXPECT_EQ(Open()->Take(kFence, {}).value(), R"({"loaded":1})");
  // Another call, and a run of the same name on another store, load separately.
  EXPECT_FALSE(*Open()->Take(Later(), {}));
  LoadFence other = kFence;
  other.run = "another";
  EXPECT_FALSE(*Open()->Take(other, {}));
}

// A run that is cancelled does not wait for others' locks.
TEST_P(FenceTest, AStopEndsTheWaitForALock) {
  std::stop_source stop;
  auto target = Open();
  ASSERT_FALSE(*target->Take(kFence, {}));
  std::unique_ptr<sql::PgConnection> holder;
  if (sqlite()) {
    ASSERT_TRUE(db_->Execute("BEGIN IMMEDIATE"));
  } else {
    holder = *sql::PgConnection::Open({.uri = server_->Url()});
    for (const char* sql : {"BEGIN", "LOCK TABLE s.a IN ACCESS EXCLUSIVE MODE"})
      ASSERT_TRUE(holder->Execute({.name = "", .sql = sql, .writes = false}, sql::PgParams()));
  }
  auto loading = std::async(std::launch::async, [&] {
    const InterruptScope interrupt(stop.get_token());
    return LoadOne(*target);
  });
  EXPECT_EQ(loading.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  stop.request_stop();
  ASSERT_EQ(loading.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_FALSE(loading.get());
  if (sqlite()) {
    ASSERT_TRUE(db_->Execute("ROLLBACK"));
  }
  holder.reset();
  EXPECT_EQ(Loads(), "0");
}

TEST_P(FenceTest, DelayedSessionCanNoLongerLoad) {
  auto old = Open();
  ASSERT_FALSE(*old->Take(kFence, {}));
  auto young = Open();
  ASSERT_FALSE(*young->Take(kFence, {}));
  const auto refused = LoadOne(*old);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kLeaseLost) << refused.error().ToString();
  old.reset();
  ASSERT_TRUE(LoadOne(*young));
  ASSERT_TRUE(young->Commit("{}"));
  EXPECT_EQ(Loads(), "1");
}

TEST_P(FenceTest, AnEarlierAttemptIsRefused) {
  ASSERT_FALSE(*Open()->Take(Later(), {}));
  const auto refused = Open()->Take(kFence, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kLeaseLost);
  EXPECT_NE(refused.error().message.find("attempt 2 of t/m/load has started loading"),
            std::string::npos)
      << refused.error().message;
}

TEST_P(FenceTest, WaitIsReportedWithItsReason) {
  auto holder = OpenTransformTarget(url_, RealEnv()).value();
  LoadFence other = kFence;
  other.task = "t/m/other";
  ASSERT_FALSE(*holder->Take(other, {}));
  std::promise<std::string> said;
  auto waiting =
      OpenTransformTarget(url_, RealEnv(),
                          [&, once = std::make_shared<std::once_flag>()](const std::string& what) {
                            std::call_once(*once, [&] { said.set_value(what); });
                          })
          .value();
  ASSERT_FALSE(*waiting->Take(kFence, {}));
  // A row that the other session has not committed yet.
  ASSERT_TRUE(LoadOne(*holder));
  auto loaded = std::async(std::launch::async, [&]() -> Status {
    MUSTER_TRY(LoadOne(*waiting));
    return waiting->Commit("{}");
  });
  const std::string what = said.get_future().get();
  EXPECT_NE(what.find(sqlite() ? "the write lock of " : "a lock held by process "),
            std::string::npos)
      << what;
  ASSERT_TRUE(holder->Commit("{}"));
  EXPECT_TRUE(loaded.get());
}

// Unversioned tables lack the column `format`.
TEST_P(FenceTest, AnOlderVersionsTableIsUsedAndANewerOnesRefused) {
  const std::string columns =
      "CREATE TABLE muster_transform (task text PRIMARY KEY, run text NOT NULL, attempt bigint NOT "
      "NULL, epoch bigint NOT NULL, call text NOT NULL, result text, holder_pid integer, "
      "holder_since timestamptz, updated text NOT NULL DEFAULT CURRENT_TIMESTAMP";
  const auto execute = [&](const std::string& sql) {
    if (sqlite()) {
      ASSERT_TRUE(db_->Execute(sql));
    } else {
      server_->Exec(sql);
    }
  };
  execute(columns + ")");
  EXPECT_FALSE(*Open()->Take(kFence, {}));
  execute("DROP TABLE muster_transform");
  execute(columns + ", format integer NOT NULL DEFAULT 2)");
  const auto refused = Open()->Take(kFence, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kIncompatible);
  EXPECT_NE(refused.error().message.find("table muster_transform has schema version 2; this "
                                         "muster supports versions up to 1"),
            std::string::npos)
      << refused.error().message;
}

INSTANTIATE_TEST_SUITE_P(Targets, FenceTest, ::testing::Values("Sqlite", "Postgres"),
                         [](const auto& test) { return test.param; });

class PostgresFenceTest : public FenceTest {};

// What a target has said that it waits for, from any thread.
class Words {
 public:
  void Add(const std::string& what) {
    const std::lock_guard lock(mutex_);
    all_.push_back(what);
  }
  std::vector<std::string> All() {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> all_;
};

// Before the transaction too, in which a lock on a row would be waited for.
TEST_P(PostgresFenceTest, AWaitForALockOnTheTableIsReported) {
  const auto holder = *sql::PgConnection::Open({.uri = server_->Url()});
  for (const char* sql : {"BEGIN", "LOCK TABLE s.a"})
    ASSERT_TRUE(holder->Execute({.name = "", .sql = sql, .writes = false}, sql::PgParams()));
  Words words;
  auto target = OpenTransformTarget(url_, RealEnv(), [&](const std::string& what) {
                  words.Add(what);
                }).value();
  ASSERT_FALSE(*target->Take(kFence, {}));
  auto loaded = std::async(std::launch::async, [&]() -> Status {
    MUSTER_TRY(LoadOne(*target));
    return target->Commit("{}");
  });
  const auto said = [&] {
    const auto all = words.All();
    return !all.empty() && all[0].starts_with("a lock held by process ");
  };
  EXPECT_TRUE(testing::Await(said));
  ASSERT_TRUE(holder->Execute({.name = "", .sql = "ROLLBACK", .writes = false}, sql::PgParams()));
  EXPECT_TRUE(loaded.get());
  EXPECT_EQ(words.All().back(), "");
}

// A foreign key is checked against its parent's table, which another session may have locked.
TEST_P(PostgresFenceTest, AKeyCheckReportsTheLockItWaitsFor) {
  const auto holder = *sql::PgConnection::Open({.uri = server_->Url()});
  for (const char* sql : {"CREATE TABLE s.child (id text PRIMARY KEY, a text REFERENCES s.a)",
                          "BEGIN", "LOCK TABLE s.a"})
    ASSERT_TRUE(holder->Execute({.name = "", .sql = sql, .writes = false}, sql::PgParams()));
  Words words;
  auto target = OpenTransformTarget(url_, RealEnv(), [&](const std::string& what) {
                  words.Add(what);
                }).value();
  const TargetTable child{.name = "s.child", .sql = "s.child", .columns = {}, .key = {}};
  auto checked =
      std::async(std::launch::async, [&] { return target->CheckKeys(child).has_value(); });
  const auto said = [&] {
    const auto all = words.All();
    return !all.empty() && all[0].starts_with("a lock held by process ");
  };
  EXPECT_TRUE(testing::Await(said));
  ASSERT_TRUE(holder->Execute({.name = "", .sql = "ROLLBACK", .writes = false}, sql::PgParams()));
  EXPECT_TRUE(checked.get());
}

// Like a process that sleeps for longer than its lease, with its transaction open.
TEST_P(PostgresFenceTest, SessionSleepingInItsTransactionIsTerminated) {
  auto old = Open();
  ASSERT_FALSE(*old->Take(kFence, {}));
  ASSERT_TRUE(LoadOne(*old));
  auto young = Open();
  const auto taken = young->Take(kFence, {});
  ASSERT_TRUE(taken) << taken.error().ToString();
  ASSERT_FALSE(*taken);
  ASSERT_TRUE(LoadOne(*young));
  ASSERT_TRUE(young->Commit("{}"));
  EXPECT_FALSE(old->Commit("{}"));
  EXPECT_EQ(Loads(), "1");
}

TEST_P(PostgresFenceTest, ALostConnectionLeavesRowsLoadedOnce) {
  testing::FaultProxy proxy(server_->port());
  folder_.Write("plan/load.sql", "SELECT 'x' AS id");
  const auto executor = MakeTransformExecutor();
  TestContext context;
  const auto call = [&](int number, int retry) {
    return executor->Start(
        {.resource = "muster:transform",
         .input = Json{{"script", "load.sql"},
                       {"plan_folder", folder_.path() + "/plan"},
                       {"staging", folder_.path() + "/staging"},
                       {"target", server_->Url(proxy.port())},
                       {"tenant", "t"},
                       {"migration", "m"},
                       {"run", {{"id", "r"}, {"attempt", 1}}},
                       {"arguments",
                        {{"ENTITY_NAME", "load"}, {"TARGET_SCHEMA", "s"}, {"TARGET_TABLE", "a"}}}},
         .credentials = nullptr,
         .token = "m:0:" + std::to_string(number) + ":" + std::to_string(retry),
         .execution = "m",
         .state = "Load"},
        context);
  };
  int calls = 0;
  int found_out = 0;  // a cut whose outcome the call itself knew
  // Whether the responses to a load have as many bytes.
  const auto is_cut_after = [&](size_t bytes) {
    const int cuts = proxy.cuts();
    proxy.CutReplyAfter(bytes);
    ++calls;
    int retry = 0;
    states::TaskOutcome outcome = call(calls, retry);
    while (std::holds_alternative<states::TaskFailure>(outcome) && retry < 5)
      outcome = call(calls, ++retry);
    proxy.Forget();
    const auto* success = std::get_if<states::TaskSuccess>(&outcome);
    EXPECT_NE(success, nullptr) << std::get<states::TaskFailure>(outcome).cause;
    EXPECT_EQ(success == nullptr ? Json() : success->output["loaded"], 1);
    EXPECT_EQ(Loads(), std::to_string(calls)) << "cut after " << bytes;
    const bool cut = proxy.cuts() > cuts;
    found_out += cut && retry == 0 ? 1 : 0;
    return cut;
  };
  // The answer to COMMIT is at the end, wherever that is.
  size_t end = 200;
  while (end < 20'000 && is_cut_after(end)) end += 101;
  for (size_t bytes = end - 101; bytes < end; bytes += 7) is_cut_after(bytes);
  EXPECT_GT(proxy.cuts(), 10);
  EXPECT_GT(found_out, 0);
}

INSTANTIATE_TEST_SUITE_P(Targets, PostgresFenceTest, ::testing::Values("Postgres"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace muster::task
