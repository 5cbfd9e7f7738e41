#include "store/postgres/postgres_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <stdexcept>
#include <thread>

#include "store/postgres/postgres_statements.h"
#include "support/await.h"
#include "support/fault_proxy.h"
#include "support/postgres_server.h"

// PostgreSQL specifics: broken connections, restarts, plans, privileges, migrations. The general
// store contract is in tests/contract.

namespace muster::store {
namespace {

using std::chrono::seconds;
using testing::FaultProxy;
using testing::PostgresServer;

// Short, so that tests with unresponsive servers are.
constexpr PostgresLimits kImpatient{.connect_timeout = milliseconds(2'000),
                                    .call_timeout = milliseconds(1'000)};

class PostgresStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = PostgresServer::Unavailable(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
    server_ = &Server();
    // Every test has a namespace of its own.
    space_ = "space_" + RealEnv().NewId();
  }

  virtual PostgresServer& Server() { return PostgresServer::Shared(); }

  std::unique_ptr<Store> Open(const std::string& url, const PostgresLimits& limits = {}) {
    auto store = OpenPostgresStore(url, space_, RealEnv(), limits);
    EXPECT_TRUE(store) << store.error().ToString();
    return store ? *std::move(store) : nullptr;
  }

  std::unique_ptr<Store> Open() { return Open(server_->Url()); }

  Error OpenError(const std::string& url) {
    auto store = OpenPostgresStore(url, space_, RealEnv(), kImpatient);
    EXPECT_FALSE(store);
    return store ? Error{} : store.error();
  }

  static Record NewRecord(const std::string& key) {
    return {.kind = "work", .queue = "q", .key = key};
  }

  static ClaimRequest NewClaim(int limit = 1) {
    return {
        .kind = "work", .queue = "q", .limit = limit, .owner = "me", .claim_id = RealEnv().NewId()};
  }

  static Record Create(Store& store, const std::string& key, Due due = Due::AtOnce()) {
    Record record = NewRecord(key);
    auto written = store.Write({{Change::Put(record, due)}});
    EXPECT_TRUE(written) << written.error().ToString();
    if (!written) return record;
    EXPECT_TRUE(written->front().applied);
    record.version = written->front().version;
    return record;
  }

  std::string Table() const { return space_ + ".records"; }

  PostgresServer* server_ = nullptr;
  std::string space_;
};

// Has its own server, which it stops and pauses.
class PostgresOutage : public PostgresStoreTest {
 protected:
  static void TearDownTestSuite() { own_.reset(); }

  PostgresServer& Server() override {
    if (!own_) own_ = std::make_unique<PostgresServer>();
    return *own_;
  }

 private:
  static inline std::unique_ptr<PostgresServer> own_;
};

TEST_F(PostgresStoreTest, ConcurrentFirstOpensCreateOneSchema) {
  std::atomic<int> opened = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 16; ++i) {
      threads.emplace_back([&] {
        auto store = OpenPostgresStore(server_->Url(), space_, RealEnv(), {});
        EXPECT_TRUE(store) << store.error().ToString();
        if (store) ++opened;
      });
    }
  }
  EXPECT_EQ(opened, 16);
  EXPECT_EQ(
      server_->Exec("SELECT string_agg(version::text, ',') FROM " + space_ + ".schema_version"),
      "1");
}

TEST_F(PostgresStoreTest, ANewerSchemaIsIncompatibleAndBothVersionsAreNamed) {
  Open();
  server_->Exec("INSERT INTO " + space_ + ".schema_version VALUES (77)");
  const Error error = OpenError(server_->Url());
  EXPECT_EQ(error.code, Code::kIncompatible) << error.ToString();
  EXPECT_NE(error.message.find("77"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("up to 1"), std::string::npos) << error.message;
  EXPECT_NE(error.hint.find("upgrade muster"), std::string::npos) << error.hint;
}

TEST_F(PostgresStoreTest, AFailedMigrationLeavesNothingBehind) {
  server_->Exec("CREATE SCHEMA " + space_ + "; CREATE TABLE " + Table() + " (its integer)");
  EXPECT_EQ(OpenError(server_->Url()).code, Code::kInternal);
  EXPECT_EQ(server_->Exec("SELECT count(*) FROM pg_class WHERE relnamespace = '" + space_ +
                          "'::regnamespace"),
            "1");
}

TEST_F(PostgresStoreTest, ADatabaseThatIsNotUtf8IsIncompatible) {
  const std::string name = server_->database() + "_ascii";
  server_->Exec("CREATE DATABASE " + name + " ENCODING 'SQL_ASCII' TEMPLATE template0");
  const Error error =
      OpenError("postgresql://muster@127.0.0.1:" + std::to_string(server_->port()) + "/" + name);
  server_->Exec("DROP DATABASE " + name + " WITH (FORCE)");
  EXPECT_EQ(error.code, Code::kIncompatible) << error.ToString();
}

TEST_F(PostgresStoreTest, AWrongPasswordIsAPermissionErrorThatDoesNotShowIt) {
  for (const std::string user : {"guarded:wrongword", "guarded", "stranger:wrongword"}) {
    const Error error = OpenError(server_->UrlAs(user) + "?passfile=/nowhere");
    EXPECT_EQ(error.code, Code::kPermission) << error.ToString();
    EXPECT_EQ(error.ToString().find("wrongword"), std::string::npos) << error.ToString();
    EXPECT_EQ(error.ToString().find('\n'), std::string::npos) << error.ToString();
  }
}

TEST_F(PostgresStoreTest, AMissingDatabaseIsNotFound) {
  const Error error =
      OpenError("postgresql://muster@127.0.0.1:" + std::to_string(server_->port()) + "/nowhere");
  EXPECT_EQ(error.code, Code::kNotFound) << error.ToString();
}

TEST_F(PostgresStoreTest, RoleWithoutCreateCanUseAnExistingSchema) {
  const std::string guarded = server_->UrlAs("guarded:open%20sesame");
  EXPECT_EQ(OpenError(guarded).code, Code::kPermission);
  Open();
  EXPECT_EQ(OpenError(guarded).code, Code::kPermission);
  server_->Exec("GRANT USAGE ON SCHEMA " + space_ +
                " TO guarded;"
                "GRANT SELECT ON " +
                space_ +
                ".schema_version TO guarded;"
                "GRANT SELECT, INSERT, UPDATE, DELETE ON " +
                Table() + " TO guarded");
  auto store = Open(guarded);
  Create(*store, "a");
  auto claimed = store->Claim(NewClaim());
  ASSERT_TRUE(claimed) << claimed.error().ToString();
  EXPECT_EQ(claimed->size(), 1u);
  server_->Exec("REVOKE ALL ON SCHEMA " + space_ + " FROM guarded; REVOKE ALL ON " + Table() +
                ", " + space_ + ".schema_version FROM guarded");
}

TEST_F(PostgresStoreTest, OwnerOfAnEmptySchemaNeedsNoOtherPrivileges) {
  server_->Exec("CREATE SCHEMA " + space_ + " AUTHORIZATION guarded");
  auto store = Open(server_->UrlAs("guarded:open%20sesame"));
  ASSERT_TRUE(store);
  Create(*store, "a");
}

TEST_F(PostgresStoreTest, AReadOnlyServerReadsAndRefusesToWrite) {
  Create(*Open(), "a");
  auto store = Open(server_->Url() + "?options=-c%20default_transaction_read_only%3Don");
  auto written = store->Write({{Change::Put(NewRecord("b"), Due::AtOnce())}});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::kReadOnly) << written.error().ToString();
  EXPECT_FALSE(written.error().hint.empty());
  auto claimed = store->Claim(NewClaim());
  ASSERT_FALSE(claimed);
  EXPECT_EQ(claimed.error().code, Code::kReadOnly);
  auto found = store->Get("work", "a");
  ASSERT_TRUE(found) << found.error().ToString();
  EXPECT_TRUE(found->has_value());
}

TEST_F(PostgresStoreTest, CommitsAreDurableWhateverTheRolesDefault) {
  auto store = Open(server_->Url() + "?application_name=durable");
  server_->Exec("ALTER DATABASE " + server_->database() + " SET synchronous_commit = off");
  auto second = Open(server_->Url());
  server_->Exec("CREATE FUNCTION " + space_ +
                ".note() RETURNS trigger LANGUAGE plpgsql AS "
                "'BEGIN NEW.owner = current_setting(''synchronous_commit''); RETURN NEW; END';"
                "CREATE TRIGGER note BEFORE INSERT ON " +
                Table() + " FOR EACH ROW EXECUTE FUNCTION " + space_ + ".note()");
  Create(*second, "a");
  server_->Exec("ALTER DATABASE " + server_->database() + " RESET synchronous_commit");
  EXPECT_EQ(server_->Exec("SELECT owner FROM " + Table()), "on");
}

TEST_F(PostgresOutage, NextCallReconnectsAfterARestart) {
  auto store = Open();
  const Record record = Create(*store, "a");
  server_->Restart();
  auto claimed = store->Claim(NewClaim());
  ASSERT_TRUE(claimed) << claimed.error().ToString();
  ASSERT_EQ(claimed->size(), 1u);
  EXPECT_GT(claimed->front().version, record.version);
}

TEST_F(PostgresOutage, StoppedServerIsUnavailableUntilItRestarts) {
  auto store = Open(server_->Url(), kImpatient);
  Create(*store, "a");
  server_->Kill();
  auto written = store->Write({{Change::Put(NewRecord("b"), Due::AtOnce())}});
  auto found = store->Get("work", "a");
  server_->Start();
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::kUnavailable) << written.error().ToString();
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::kUnavailable) << found.error().ToString();
  EXPECT_TRUE(store->Get("work", "a")->has_value());
  EXPECT_FALSE(store->Get("work", "b")->has_value());
}

TEST_F(PostgresOutage, PausedServerTimesOutAndAWriteIsUnknown) {
  auto store = Open(server_->Url(), kImpatient);
  const Record record = Create(*store, "a");
  const auto start = std::chrono::steady_clock::now();
  server_->Pause();
  auto written = store->Write({{Change::Put(record, Due::Never())}});
  auto found = store->Get("work", "a");
  server_->Resume();
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(20));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::kUnknownOutcome) << written.error().ToString();
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::kUnavailable) << found.error().ToString();
  EXPECT_TRUE(store->Get("work", "a")->has_value());
}

// The server commits on a request's last byte. An unsent byte must not be sent later.
TEST_F(PostgresOutage, UnsentRequestToAPausedServerIsNotApplied) {
  auto store = Open(server_->Url() + "?application_name=" + space_, kImpatient);
  std::vector<Change> changes;
  for (int i = 0; i < 100; ++i) {  // far more than the network buffers
    Record record = NewRecord("k" + std::to_string(i));
    record.body = '"' + std::string(kMaxBodyBytes - 2, 'x') + '"';
    changes.push_back(Change::Put(record, Due::AtOnce()));
  }
  server_->Pause();
  auto written = store->Write(changes);
  server_->Resume();
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::kUnavailable) << written.error().ToString();
  EXPECT_TRUE(testing::Await([&] {
    return server_->Exec("SELECT count(*) FROM pg_stat_activity WHERE application_name = '" +
                         space_ + "'") == "0";
  }));
  EXPECT_EQ(server_->Exec("SELECT count(*) FROM " + Table()), "0");
}

TEST_F(PostgresStoreTest, StatementTimeoutIsRolledBackAndUnavailable) {
  auto store = Open(server_->Url(), kImpatient);
  const Record record = Create(*store, "a");
  const std::string hold = "BEGIN; LOCK TABLE " + Table() + "; SELECT pg_sleep(60)";
  std::jthread holder([&] { EXPECT_THROW(server_->Exec(hold), std::runtime_error); });
  EXPECT_TRUE(testing::Await([&] {
    return server_->Exec(
               "SELECT count(*) FROM pg_locks WHERE granted AND mode = "
               "'AccessExclusiveLock' AND relation = '" +
               Table() + "'::regclass") == "1";
  }));
  auto written = store->Write({{Change::Put(record, Due::Never())}});
  server_->Exec("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query = '" + hold + "'");
  holder.join();
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::kUnavailable) << written.error().ToString();
  EXPECT_EQ(store->Get("work", "a")->value().version, record.version);
}

TEST_F(PostgresStoreTest, ConnectionLostWhileIdleIsReplacedBeforeAnythingIsSent) {
  FaultProxy proxy(server_->port());
  auto store = Open(server_->Url(proxy.port()));
  Create(*store, "a");
  const int ends = proxy.ends();
  const std::string ended = server_->Exec(
      "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE "
      "application_name = 'muster' AND datname = current_database()");
  EXPECT_TRUE(testing::Await([&] { return proxy.ends() - ends >= std::stoi(ended); }));
  const auto claimed = store->Claim(NewClaim());
  ASSERT_TRUE(claimed) << claimed.error().ToString();
  EXPECT_EQ(claimed->size(), 1u);
  proxy.Refuse(true);
  proxy.CutAll();
  EXPECT_TRUE(testing::Await([&] { return !store->Now(); }));  // the cut has arrived
  auto written = store->Write({{Change::Put(NewRecord("b"), Due::AtOnce())}});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::kUnavailable) << written.error().ToString();
  proxy.Refuse(false);
  EXPECT_FALSE(store->Get("work", "b")->has_value());
}

// The request is cut after every possible number of bytes, then the reply: success is reported only
// if the change is there, and "nothing was applied" only if it is not.
TEST_F(PostgresStoreTest, WriteCutAnywhereIsNeverAFalseSuccessOrFailure) {
  FaultProxy proxy(server_->port());
  auto observer = Open();
  for (const bool in_reply : {false, true}) {
    int applied_in_doubt = 0;
    int not_applied_in_doubt = 0;
    bool passed = false;
    for (size_t bytes = 0; !passed; bytes += 1 + bytes / 16) {
      ASSERT_LT(bytes, 100'000u);
      const std::string key = (in_reply ? "reply" : "request") + std::to_string(bytes);
      const Record record = Create(*observer, key);
      auto store = Open(server_->Url(proxy.port()));
      ASSERT_TRUE(store->Get("work", key)->has_value());
      const int cuts = proxy.cuts();
      in_reply ? proxy.CutReplyAfter(bytes) : proxy.CutRequestAfter(bytes);
      auto written = store->Write({{Change::Put(record, Due::Never())}});
      proxy.Forget();
      const bool applied = observer->Get("work", key)->value().version == record.version + 1;
      if (written) {
        EXPECT_TRUE(applied) << bytes;
        EXPECT_EQ(proxy.cuts(), cuts);
        passed = true;
        continue;
      }
      EXPECT_EQ(proxy.cuts(), cuts + 1);
      EXPECT_EQ(written.error().code, Code::kUnknownOutcome) << written.error().ToString();
      ++(applied ? applied_in_doubt : not_applied_in_doubt);
    }
    if (in_reply) {
      EXPECT_GT(applied_in_doubt, 10);
      EXPECT_EQ(not_applied_in_doubt, 0);
    } else {
      EXPECT_GT(not_applied_in_doubt, 10);
      EXPECT_EQ(applied_in_doubt, 0);
    }
  }
}

TEST_F(PostgresStoreTest, ClaimWithALostResponseGivesTheSameResultWhenRepeated) {
  FaultProxy proxy(server_->port());
  auto observer = Open();
  for (int i = 0; i < 10; ++i) Create(*observer, "k" + std::to_string(i));
  auto store = Open(server_->Url(proxy.port()));
  ClaimRequest request = NewClaim(3);
  proxy.CutReplyAfter(0);
  auto lost = store->Claim(request);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, Code::kUnknownOutcome) << lost.error().ToString();
  request.repeat = true;
  auto again = store->Claim(request);
  ASSERT_TRUE(again) << again.error().ToString();
  ASSERT_EQ(again->size(), 3u);
  for (const Record& record : *again) EXPECT_EQ(record.epoch, 1);
  EXPECT_EQ(store->Claim(request)->size(), 3u);
  proxy.CutRequestAfter(0);
  ClaimRequest second = NewClaim(10);
  EXPECT_EQ(store->Claim(second).error().code, Code::kUnknownOutcome);
  second.repeat = true;
  EXPECT_EQ(store->Claim(second)->size(), 7u);
}

TEST_F(PostgresStoreTest, ReadWithALostResponseIsRepeatedOnANewConnection) {
  FaultProxy proxy(server_->port());
  auto store = Open(server_->Url(proxy.port()));
  Create(*store, "a");
  proxy.CutReplyAfter(0);
  auto found = store->Get("work", "a");
  ASSERT_TRUE(found) << found.error().ToString();
  EXPECT_TRUE(found->has_value());
  EXPECT_EQ(proxy.cuts(), 1);
}

// The commit comes after the last statement's result: its failure must not be missed.
TEST_F(PostgresStoreTest, FailedCommitFailsTheCall) {
  auto store = Open();
  server_->Exec("CREATE FUNCTION " + space_ +
                ".refuse() RETURNS trigger LANGUAGE plpgsql AS "
                "'BEGIN RAISE EXCEPTION ''refused at commit'' USING ERRCODE = ''53100''; END';"
                "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON " +
                Table() + " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION " + space_ +
                ".refuse()");
  auto written = store->Write({{Change::Put(NewRecord("a"), Due::AtOnce())}});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Code::kFull) << written.error().ToString();
  EXPECT_FALSE(store->Get("work", "a")->has_value());
}

// Writers of the same records in opposite orders, with claims in between.
TEST_F(PostgresStoreTest, WritersOfTheSameRecordsInAnyOrderAllFinish) {
  auto store = Open();
  constexpr int kRecords = 20;
  std::vector<Change> creates;
  for (int i = 0; i < kRecords; ++i) {
    creates.push_back(Change::Put(NewRecord("k" + std::to_string(i)), Due::AtOnce()));
  }
  ASSERT_TRUE(store->Write(creates));
  const std::string sum = "SELECT sum(version % 1000000000) FROM " + Table();
  const int64_t before = std::stoll(server_->Exec(sum));
  std::atomic<int64_t> applied = 0;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 6; ++thread) {
      threads.emplace_back([&, thread] {
        for (int round = 0; round < 50; ++round) {
          auto page = store->Scan("work", "", "", kRecords);
          ASSERT_TRUE(page) << page.error().ToString();
          if (thread % 2 == 0) std::reverse(page->begin(), page->end());
          std::vector<Change> changes;
          for (const Record& record : *page) changes.push_back(Change::Put(record, Due::AtOnce()));
          auto written = store->Write(changes);
          ASSERT_TRUE(written) << written.error().ToString();
          for (size_t i = 0; i < written->size(); ++i) {
            if (!(*written)[i].applied) continue;
            EXPECT_EQ((*written)[i].version, changes[i].record.version + 1);
            ++applied;
          }
        }
      });
    }
  }
  EXPECT_EQ(std::stoll(server_->Exec(sum)) - before, applied);
  EXPECT_GE(applied, 50 * kRecords);
}

TEST_F(PostgresStoreTest, MixedWriteReturnsResultsInOrder) {
  auto store = Open();
  const Record kept = Create(*store, "m");
  const Record gone = Create(*store, "a");
  Record stale = Create(*store, "z");
  stale.version += 5;
  Record taken = NewRecord("m");
  taken.kind = "other";
  auto written =
      store->Write({{Change::Put(NewRecord("q"), Due::AtOnce()), Change::Delete(gone),
                     Change::Put(stale, Due::Never()), Change::Put(kept, Due::Never()),
                     Change::Put(taken, Due::Never()), Change::Put(NewRecord("b"), Due::Never())}});
  ASSERT_TRUE(written) << written.error().ToString();
  ASSERT_EQ(written->size(), 6u);
  EXPECT_TRUE((*written)[0].applied);
  EXPECT_EQ((*written)[0].version, store->Get("work", "q")->value().version);
  EXPECT_TRUE((*written)[1].applied);
  EXPECT_FALSE((*written)[2].applied);
  EXPECT_TRUE((*written)[3].applied);
  EXPECT_EQ((*written)[3].version, kept.version + 1);
  EXPECT_TRUE((*written)[4].applied);
  EXPECT_TRUE((*written)[5].applied);
  EXPECT_EQ((*written)[5].version, store->Get("work", "b")->value().version);
  EXPECT_FALSE(store->Get("work", "a")->has_value());

  // Creates existing records among new ones.
  auto again = store->Write(
      {{Change::Put(NewRecord("q"), Due::AtOnce()), Change::Put(NewRecord("new"), Due::AtOnce()),
        Change::Put(NewRecord("b"), Due::AtOnce())}});
  ASSERT_TRUE(again);
  EXPECT_FALSE((*again)[0].applied);
  EXPECT_TRUE((*again)[1].applied);
  EXPECT_EQ((*again)[1].version, store->Get("work", "new")->value().version);
  EXPECT_FALSE((*again)[2].applied);
}

TEST_F(PostgresStoreTest, ClaimsAndWritesUseTheIndexAmongManyFinishedRecords) {
  auto store = Open();
  server_->Exec("INSERT INTO " + Table() +
                " (kind, queue, key, version, due, owner, attempt, body) "
                "SELECT 'work', 'q', 'done' || i, 1, NULL, 'me', 1, '{}' "
                "FROM generate_series(1, 200000) i; ANALYZE " +
                Table());
  for (int i = 0; i < 10; ++i) Create(*store, "due" + std::to_string(i));
  const PostgresStatements statements(space_);
  std::string settings;
  for (const auto& [name, value] : PostgresSessionSettings()) {
    settings += "SET " + name + " = '" + value + "';";
  }
  const auto explain = [&](const sql::PgStatement& statement, const std::string& arguments) {
    return server_->Exec("BEGIN;" + settings + "PREPARE s AS " + statement.sql +
                         "; CREATE FUNCTION pg_temp.plan() RETURNS text LANGUAGE plpgsql AS "
                         "$plan$DECLARE line text; all_lines text = ''; BEGIN FOR line IN EXECUTE "
                         "$e$EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) EXECUTE s(" +
                         arguments +
                         ")$e$ LOOP all_lines = all_lines || line || E'\\n'; END LOOP; "
                         "RETURN all_lines; END$plan$; SELECT pg_temp.plan();");
  };
  const std::string claim =
      explain(statements.claim, "'work', 'q', 10, 'o', 'c', 1000, 9000, 7, '-infinity'");
  EXPECT_NE(claim.find("Index Scan using records_due"), std::string::npos) << claim;
  EXPECT_NE(
      claim.find("Index Cond: ((kind = $1) AND (queue = $2) AND (due <= statement_timestamp()) "
                 "AND (due >= $9))"),
      std::string::npos)
      << claim;
  EXPECT_NE(claim.find("Tid Scan"), std::string::npos) << claim;
  EXPECT_EQ(claim.find("Sort"), std::string::npos) << claim;
  EXPECT_EQ(claim.find("Seq Scan"), std::string::npos) << claim;

  const std::string again =
      explain(statements.claim_again, "'work', 'q', 10, 'o', 'c', 1000, 9000, 7");
  EXPECT_NE(again.find("Index Scan using records_due"), std::string::npos) << again;
  EXPECT_EQ(again.find("Seq Scan"), std::string::npos) << again;

  const std::string replace_many = explain(
      statements.replace_many, "'{work}', '{due1}', '{1}', '{0}', '{o}', '{1}', array['{}'::json]");
  EXPECT_NE(replace_many.find("Nested Loop"), std::string::npos) << replace_many;
  EXPECT_NE(replace_many.find("Index Scan using records_pkey"), std::string::npos) << replace_many;
  EXPECT_EQ(replace_many.find("Seq Scan"), std::string::npos) << replace_many;

  const std::string scan = explain(statements.scan, "'work', 'done1', 'done12', 10");
  EXPECT_NE(scan.find("Index Scan using records_pkey"), std::string::npos) << scan;
  EXPECT_NE(scan.find("key <="), std::string::npos) << scan;
  EXPECT_EQ(scan.find("Sort"), std::string::npos) << scan;

  EXPECT_EQ(store->Claim(NewClaim(100))->size(), 10u);
}

TEST_F(PostgresStoreTest, RecordBelowTheDueFloorIsFoundWhenNothingElseIsDue) {
  auto store = Open();
  Create(*store, "a");
  ASSERT_EQ(store->Claim(NewClaim())->size(), 1u);
  server_->Exec("UPDATE " + Table() + " SET due = now() - interval '1 hour'");
  auto claimed = store->Claim(NewClaim());
  ASSERT_TRUE(claimed) << claimed.error().ToString();
  ASSERT_EQ(claimed->size(), 1u);
  EXPECT_EQ(claimed->front().epoch, 2);
}

TEST_F(PostgresStoreTest, WritesOfOthersWakeAWaiterBeforeItsTimeout) {
  auto waiter = Open();
  auto writer = Open();
  std::atomic<int> woken = 0;
  std::jthread thread([&] {
    // The first wait may end because listening begins; the others end only on a notification.
    for (int i = 0; i < 3; ++i) {
      waiter->Wait("work", milliseconds(60'000), {});
      ++woken;
    }
  });
  EXPECT_TRUE(testing::Await([&] {
    Create(*writer, RealEnv().NewId());
    return woken == 3;
  }));
}

TEST_F(PostgresStoreTest, TimeoutAndStopEndAWaitWithAndWithoutNotifications) {
  FaultProxy proxy(server_->port());
  auto store = Open(server_->Url(proxy.port()));
  for (const bool listening : {true, false}) {
    proxy.Refuse(!listening);
    if (!listening) proxy.CutAll();
    auto start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start < milliseconds(300)) {
      store->Wait("work", milliseconds(300), {});
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(5));

    std::stop_source stop;
    std::atomic<bool> ended = false;
    std::jthread waiter([&] {
      while (!stop.stop_requested()) store->Wait("work", seconds(60), stop.get_token());
      ended = true;
    });
    start = std::chrono::steady_clock::now();
    stop.request_stop();
    waiter.join();
    EXPECT_TRUE(ended);
    EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(5));
  }
}

TEST_F(PostgresStoreTest, MoreThreadsThanConnectionsTakeTurns) {
  auto store = Open(server_->Url() + "?application_name=" + space_, {.connections = 2});
  std::atomic<int> answers = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        for (int round = 0; round < 50; ++round) {
          if (store->Now()) ++answers;
        }
      });
    }
  }
  EXPECT_EQ(answers, 400);
  EXPECT_LE(std::stoi(server_->Exec("SELECT count(*) FROM pg_stat_activity WHERE "
                                    "application_name = '" +
                                    space_ + "'")),
            2);
}

TEST_F(PostgresStoreTest, StateIsVisibleInAView) {
  auto store = Open();
  Create(*store, "a");
  Create(*store, "b");
  Create(*store, "later", Due::After(seconds(1000)));
  Create(*store, "done", Due::Never());
  ASSERT_EQ(store->Claim(NewClaim())->size(), 1u);
  EXPECT_EQ(server_->Exec("SELECT concat_ws(' ', kind, queue, due, leased, waiting, never_due, "
                          "records) FROM " +
                          space_ + ".queues"),
            "work q 1 1 1 1 4");
  EXPECT_EQ(server_->Exec("SELECT string_agg(key || ' ' || state, ', ' ORDER BY key) FROM " +
                          space_ + ".status"),
            "a leased, b due, done never due, later waiting");
}

}  // namespace
}  // namespace muster::store
