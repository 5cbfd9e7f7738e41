// Follows a real server: every kind of change, logs and servers that fail, and sources that cannot
// be continued.

#include "change/follow.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <thread>

#include "events/event_log_wrapper.h"
#include "events/events.h"
#include "sql/postgres.h"
#include "support/await.h"
#include "support/postgres_server.h"
#include "support/temporary_folder.h"

namespace muster::change {
namespace {

using testing::PostgresServer;

// Fails some appends: before they are applied, or after it, when only the answer is lost.
class UnluckyLog final : public events::EventLogWrapper {
 public:
  UnluckyLog(events::EventLog& log, uint64_t seed) : EventLogWrapper(log), state_(seed) {}

  Result<std::vector<int64_t>> Append(std::span<const events::StreamAppend> appends) override {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    const auto luck = (state_ >> 33) % 4;
    if (luck == 0) return Error{Code::kUnavailable, "unlucky"};
    auto appended = EventLogWrapper::Append(appends);
    if (luck == 1) return Error{Code::kUnknownOutcome, "unlucky"};
    return appended;
  }

 private:
  uint64_t state_;
};

class Waiting final : public FollowObserver {
 public:
  void Started(const std::string&) override { started = true; }
  void Waits(const Error& why) override {
    waits = why.code == Code::kConflict;
    const std::lock_guard lock(mutex_);
    why_ = why;
  }
  // The last reason to wait; without a message if there was none.
  Error why() {
    const std::lock_guard lock(mutex_);
    return why_;
  }
  std::atomic<bool> started = false;
  std::atomic<bool> waits = false;

 private:
  std::mutex mutex_;
  Error why_;
};

class FollowTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (PostgresServer::Unavailable().empty()) {
      server_ = std::make_unique<PostgresServer>(PostgresServer::Options{.logical = true});
    }
  }
  static void TearDownTestSuite() { server_.reset(); }

  void SetUp() override {
    if (server_ == nullptr) GTEST_SKIP() << PostgresServer::Unavailable();
    ExecOnIdleSlots("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots");
    server_->Exec(
        "SET client_min_messages = error; "
        "DROP PUBLICATION IF EXISTS muster_shop, muster_shop_outbox");
    server_->Clear();
    server_->Exec("CREATE TABLE orders (id int PRIMARY KEY, note text)");
    OpenLog("log.db");
  }

  // The server notices a little later that the last reader of a slot has left.
  static void ExecOnIdleSlots(const std::string& sql) {
    server_->Exec(
        "DO $$ BEGIN FOR i IN 1..6000 LOOP EXIT WHEN NOT EXISTS (SELECT FROM pg_replication_slots "
        "WHERE active); PERFORM pg_sleep(0.01); END LOOP; END $$");
    server_->Exec(sql);
  }

  void OpenLog(const std::string& file) {
    auto log = events::OpenEventLog("sqlite:" + folder_.At(file), {}, RealEnv());
    ASSERT_TRUE(log) << log.error().ToString();
    log_ = *std::move(log);
  }

  static FollowOptions Options() {
    return {.source = server_->Url(), .name = "shop", .tables = {"orders"}, .once = true};
  }

  Result<FollowReport> Once(const FollowOptions& options) { return Once(options, *log_); }
  Result<FollowReport> Once(const FollowOptions& options, events::EventLog& log) {
    FollowObserver silent;
    return Follow(log, options, silent, RealEnv(), {});
  }
  void MustFollow(const FollowOptions& options = Options()) {
    const auto report = Once(options);
    ASSERT_TRUE(report) << report.error().ToString();
  }

  Error FailureOf(const FollowOptions& options = Options()) {
    const auto report = Once(options);
    EXPECT_FALSE(report);
    return report ? Error{} : report.error();
  }

  // All events but checkpoints.
  std::vector<events::Event> Events() {
    std::vector<events::Event> events;
    for (int64_t after = 0;;) {
      auto page = log_->ReadAll(after, 1'000);
      if (!page) throw std::runtime_error(page.error().ToString());
      if (page->read_to == after) return events;
      after = page->read_to;
      for (events::Event& event : page->events) {
        if (event.type != "follow.checkpoint") events.push_back(std::move(event));
      }
    }
  }

  // "STREAM TYPE" of each.
  std::vector<std::string> InWords() {
    std::vector<std::string> words;
    for (const events::Event& event : Events()) words.push_back(event.stream + " " + event.type);
    return words;
  }

  static inline std::unique_ptr<PostgresServer> server_;
  testing::TemporaryFolder folder_;
  std::unique_ptr<events::EventLog> log_;
};

using Words = std::vector<std::string>;

TEST_F(FollowTest, EveryCommittedChangeIsOneEventInCommitOrder) {
  MustFollow();
  EXPECT_TRUE(Events().empty());
  server_->Exec("INSERT INTO orders VALUES (1, 'a'), (2, 'b')");
  server_->Exec("BEGIN; INSERT INTO orders VALUES (3, 'c'); ROLLBACK");
  server_->Exec("UPDATE orders SET note = 'A' WHERE id = 1");
  server_->Exec("UPDATE orders SET id = 9 WHERE id = 2");
  server_->Exec("DELETE FROM orders WHERE id = 1");
  server_->Exec("TRUNCATE orders");
  MustFollow();
  EXPECT_EQ(InWords(),
            (Words{"orders/1 orders.inserted", "orders/2 orders.inserted",
                   "orders/1 orders.updated", "orders/2 orders.deleted", "orders/9 orders.inserted",
                   "orders/1 orders.deleted", "orders orders.truncated"}));
  EXPECT_EQ(Events()[2].payload, R"({"key":{"id":1},"row":{"id":1,"note":"A"}})");
  MustFollow();
  EXPECT_EQ(Events().size(), 7u);
}

TEST_F(FollowTest, OutboxesTablesWithoutKeysAndLaterColumns) {
  server_->Exec(
      "CREATE TABLE outbox (id uuid DEFAULT gen_random_uuid(), aggregatetype text,"
      " aggregateid text, type text, payload jsonb)");
  server_->Exec("CREATE TABLE notes (note text); ALTER TABLE notes REPLICA IDENTITY FULL");
  FollowOptions options = Options();
  options.tables.emplace_back("notes");
  options.outboxes = {Outbox{.table = "outbox"}};
  MustFollow(options);
  server_->Exec("INSERT INTO outbox VALUES (DEFAULT, 'order', '7', 'Placed', '{\"total\": 3}')");
  server_->Exec("DELETE FROM outbox");
  server_->Exec("INSERT INTO notes VALUES ('x')");
  server_->Exec("UPDATE notes SET note = 'y'");
  server_->Exec("ALTER TABLE orders ADD COLUMN total numeric(9, 2)");
  server_->Exec("INSERT INTO orders VALUES (1, 'a', 1.50)");
  MustFollow(options);
  EXPECT_EQ(InWords(), (Words{"order/7 Placed", "notes notes.inserted", "notes notes.updated",
                              "orders/1 orders.inserted"}));
  EXPECT_EQ(Events()[0].payload, R"({"total": 3})");
  EXPECT_EQ(Events()[2].payload, R"({"row":{"note":"y"},"old":{"note":"x"}})");
  EXPECT_EQ(Events()[3].payload, R"({"key":{"id":1},"row":{"id":1,"note":"a","total":1.50}})");
}

TEST_F(FollowTest, UnchangedLargeValuesAreNamed) {
  server_->Exec("ALTER TABLE orders ALTER COLUMN note SET STORAGE EXTERNAL");
  server_->Exec("INSERT INTO orders VALUES (1, repeat('x', 100000))");
  MustFollow();
  server_->Exec("ALTER TABLE orders ADD COLUMN n int");
  server_->Exec("UPDATE orders SET n = 5");
  MustFollow();
  ASSERT_EQ(Events().size(), 1u);
  EXPECT_EQ(Events()[0].payload, R"({"key":{"id":1},"row":{"id":1,"n":5},"unchanged":["note"]})");
}

TEST_F(FollowTest, NothingIsLostOrRepeatedWhenAppendsFail) {
  for (const uint64_t seed : {1, 2}) {
    MustFollow();
    const size_t before = Events().size();
    server_->Exec("DELETE FROM orders");
    for (int i = 0; i < 5; ++i) {
      server_->Exec("INSERT INTO orders SELECT g * 5 + " + std::to_string(i) +
                    ", 'x' FROM generate_series(0, 2399) g");
    }
    UnluckyLog unlucky(*log_, seed);
    const auto report = Once(Options(), unlucky);
    ASSERT_TRUE(report) << report.error().ToString();
    std::map<std::string, int> seen;
    const auto events = Events();
    for (size_t i = before; i < events.size(); ++i) {
      if (events[i].type == "orders.inserted") ++seen[events[i].stream];
    }
    EXPECT_EQ(seen.size(), 12'000u);
    for (const auto& [stream, times] : seen) ASSERT_EQ(times, 1) << stream;
  }
}

TEST_F(FollowTest, LargeTransactionIsAppendedInPartsExactlyOnce) {
  MustFollow();
  server_->Exec("INSERT INTO orders SELECT g, 'x' FROM generate_series(1, 23000) g");
  UnluckyLog unlucky(*log_, 7);
  const auto report = Once(Options(), unlucky);
  ASSERT_TRUE(report) << report.error().ToString();
  const auto events = Events();
  ASSERT_EQ(events.size(), 23'000u);
  for (size_t i = 0; i < events.size(); ++i) {
    ASSERT_EQ(events[i].stream, "orders/" + std::to_string(i + 1));
    ASSERT_EQ(events[i].version, 1);
  }
}

TEST_F(FollowTest, AnotherProcessStandsByAndTakesOver) {
  FollowOptions options = Options();
  options.once = false;
  Waiting first;
  Waiting second;
  std::stop_source stop_first;
  std::stop_source stop_second;
  Result<FollowReport> first_report = FollowReport{};
  Result<FollowReport> second_report = FollowReport{};
  std::jthread one(
      [&] { first_report = Follow(*log_, options, first, RealEnv(), stop_first.get_token()); });
  EXPECT_TRUE(testing::Await([&] { return first.started.load(); }));
  std::jthread two(
      [&] { second_report = Follow(*log_, options, second, RealEnv(), stop_second.get_token()); });
  EXPECT_TRUE(testing::Await([&] { return second.waits.load(); }));
  server_->Exec("INSERT INTO orders VALUES (1, 'a')");
  EXPECT_TRUE(testing::Await([&] { return Events().size() == 1; }));
  stop_first.request_stop();
  one.join();
  server_->Exec("INSERT INTO orders VALUES (2, 'b')");
  EXPECT_TRUE(testing::Await([&] { return Events().size() == 2; }));
  // It waits for a server that restarts.
  server_->Restart();
  server_->Exec("INSERT INTO orders VALUES (3, 'c')");
  EXPECT_TRUE(testing::Await([&] { return Events().size() == 3; }));
  stop_second.request_stop();
  two.join();
  EXPECT_TRUE(first_report) << first_report.error().ToString();
  EXPECT_TRUE(second_report) << second_report.error().ToString();
  EXPECT_EQ(InWords(), (Words{"orders/1 orders.inserted", "orders/2 orders.inserted",
                              "orders/3 orders.inserted"}));
}

TEST_F(FollowTest, AllMissingRequirementsAreListedTogether) {
  server_->Exec("CREATE TABLE keyless (n int); CREATE VIEW seen AS SELECT 1 AS n");
  server_->Exec("CREATE ROLE reader LOGIN");
  FollowOptions options = Options();
  options.source = server_->UrlAs("reader");
  options.tables = {"orders", "keyless", "seen", "absent"};
  const Error error = FailureOf(options);
  EXPECT_EQ(error.code, Code::kInvalid);
  for (const char* part : {"may not replicate", "'keyless' has no primary key",
                           "'seen' is not a table", "no table 'absent'", "'orders' belongs to"}) {
    EXPECT_NE(error.message.find(part), std::string::npos) << part << ": " << error.message;
  }
  EXPECT_EQ(server_->Exec("SELECT count(*) FROM pg_publication"), "0");
  EXPECT_EQ(server_->Exec("SELECT count(*) FROM pg_replication_slots"), "0");
}

TEST_F(FollowTest, ServerWithoutLogicalDecodingIsRejected) {
  PostgresServer& plain = PostgresServer::Shared();
  plain.Exec("CREATE TABLE IF NOT EXISTS orders (id int PRIMARY KEY)");
  FollowOptions options = Options();
  options.source = plain.Url();
  EXPECT_NE(FailureOf(options).message.find("wal_level"), std::string::npos);
}

TEST_F(FollowTest, MissingChangesAreDetected) {
  MustFollow();
  server_->Exec("INSERT INTO orders VALUES (1, 'a')");
  // Another reader moves the slot ahead.
  ExecOnIdleSlots("SELECT pg_replication_slot_advance('muster_shop', pg_current_wal_lsn())");
  EXPECT_EQ(FailureOf().code, Code::kIncompatible);
  ExecOnIdleSlots("SELECT pg_drop_replication_slot('muster_shop')");
  EXPECT_EQ(FailureOf().code, Code::kIncompatible);
  server_->Exec("SELECT pg_create_logical_replication_slot('muster_shop', 'pgoutput')");
  EXPECT_EQ(FailureOf().code, Code::kIncompatible);
  EXPECT_TRUE(Events().empty());
  ASSERT_TRUE(Unfollow(*log_, Options(), RealEnv()).value());
  MustFollow();
  server_->Exec("INSERT INTO orders VALUES (2, 'b')");
  MustFollow();
  EXPECT_EQ(InWords(), Words{"orders/2 orders.inserted"});
}

TEST_F(FollowTest, ASlotOfAnotherLogIsLeftAlone) {
  MustFollow();
  OpenLog("other.db");
  EXPECT_EQ(FailureOf().code, Code::kIncompatible);
  EXPECT_EQ(Unfollow(*log_, Options(), RealEnv()).error().code, Code::kIncompatible);
  EXPECT_TRUE(Events().empty());
  // Also if it had begun to create one itself.
  ExecOnIdleSlots("SELECT pg_drop_replication_slot('muster_shop')");
  EXPECT_EQ(FailureOf().code, Code::kIncompatible);
}

TEST_F(FollowTest, ReplacedTableIsDetected) {
  MustFollow();
  server_->Exec("DROP TABLE orders; CREATE TABLE orders (id int PRIMARY KEY)");
  server_->Exec("INSERT INTO orders VALUES (1)");
  EXPECT_EQ(FailureOf().code, Code::kIncompatible);
  server_->Exec("ALTER PUBLICATION muster_shop SET TABLE orders");
  EXPECT_EQ(FailureOf().code, Code::kIncompatible);
}

TEST_F(FollowTest, SettingsOfTheRoleDoNotChangeValues) {
  server_->Exec("CREATE TABLE v (id int PRIMARY KEY, f float8, b bytea, t timestamptz)");
  server_->Exec("ALTER ROLE muster SET extra_float_digits = -5");
  server_->Exec("ALTER ROLE muster SET datestyle = 'German'");
  server_->Exec("ALTER ROLE muster SET bytea_output = 'escape'");
  FollowOptions options = Options();
  options.tables = {"v"};
  const auto begun = Once(options);
  server_->Exec(
      "INSERT INTO v VALUES"
      " (1, 0.1::float8 + 0.2::float8, '\\x00ff', '2024-02-03 04:05:06+00')");
  const auto followed = Once(options);
  server_->Exec("ALTER ROLE muster RESET ALL");
  ASSERT_TRUE(begun) << begun.error().ToString();
  ASSERT_TRUE(followed) << followed.error().ToString();
  ASSERT_EQ(Events().size(), 1u);
  EXPECT_EQ(Events()[0].payload,
            R"({"key":{"id":1},"row":{"id":1,"f":0.30000000000000004,"b":"\\x00ff",)"
            R"("t":"2024-02-03 04:05:06+00"}})");
}

TEST_F(FollowTest, ATransactionOfExactlyOnePartIsFinished) {
  MustFollow();
  server_->Exec("INSERT INTO orders SELECT g, 'x' FROM generate_series(1, 5000) g");
  MustFollow();
  EXPECT_EQ(Events().size(), 5'000u);
  EXPECT_EQ(server_->Exec("SELECT count(*) FROM pg_replication_slots WHERE "
                          "pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn) > 100000"),
            "0");
}

TEST_F(FollowTest, FollowerReportsThatItWaitsForAFreeSlot) {
  // A transaction that is open must not be taken for the reason.
  auto busy = sql::PgConnection::Open({.uri = server_->Url()});
  ASSERT_TRUE(busy) << busy.error().ToString();
  const auto run = [&](const std::string& sql) {
    const auto done = (*busy)->Execute(sql::PgStatement{"", sql}, sql::PgParams());
    ASSERT_TRUE(done) << done.error().ToString();
  };
  const int slots = std::stoi(server_->Exec("SHOW max_replication_slots"));
  for (int i = 0; i < slots; ++i) {
    server_->Exec("SELECT pg_create_physical_replication_slot('taken" + std::to_string(i) + "')");
  }
  run("BEGIN");
  run("INSERT INTO orders VALUES (7, 'open')");
  Waiting waiting;
  std::stop_source stop;
  std::jthread follower(
      [&] { static_cast<void>(Follow(*log_, Options(), waiting, RealEnv(), stop.get_token())); });
  EXPECT_TRUE(testing::Await([&] { return !waiting.why().message.empty(); }));
  const Error why = waiting.why();
  EXPECT_NE(why.message.find("replication slots are in use"), std::string::npos) << why.ToString();
  EXPECT_NE(why.hint.find("max_replication_slots"), std::string::npos) << why.ToString();
  stop.request_stop();
  follower.join();
  run("ROLLBACK");
}

TEST_F(FollowTest, ADroppedPublicationIsNamedAtOnce) {
  FollowOptions options = Options();
  options.once = false;
  Waiting waiting;
  Result<FollowReport> report = FollowReport{};
  std::stop_source stop;
  std::jthread follower(
      [&] { report = Follow(*log_, options, waiting, RealEnv(), stop.get_token()); });
  EXPECT_TRUE(testing::Await([&] { return waiting.started.load(); }));
  server_->Exec("DROP PUBLICATION muster_shop");
  server_->Exec("INSERT INTO orders VALUES (1, 'a')");
  follower.join();
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Code::kIncompatible);
  EXPECT_EQ(waiting.why().message, "") << "there is nothing to wait for";
}

TEST_F(FollowTest, UnfollowRemovesEverythingAndCanBeRepeated) {
  MustFollow();
  for (const bool existed : {true, false}) {
    const auto removed = Unfollow(*log_, Options(), RealEnv());
    ASSERT_TRUE(removed) << removed.error().ToString();
    EXPECT_EQ(*removed, existed);
    EXPECT_EQ(server_->Exec("SELECT count(*) FROM pg_publication"), "0");
    EXPECT_EQ(server_->Exec("SELECT count(*) FROM pg_replication_slots"), "0");
  }
}

TEST_F(FollowTest, UnfollowRefusesWhileAFollowerReads) {
  FollowOptions options = Options();
  options.once = false;
  Waiting waiting;
  std::stop_source stop;
  Result<FollowReport> report = FollowReport{};
  std::jthread follower(
      [&] { report = Follow(*log_, options, waiting, RealEnv(), stop.get_token()); });
  EXPECT_TRUE(testing::Await([&] { return waiting.started.load(); }));
  EXPECT_EQ(Unfollow(*log_, Options(), RealEnv()).error().code, Code::kConflict);
  stop.request_stop();
  follower.join();
  EXPECT_TRUE(report) << report.error().ToString();
  EXPECT_TRUE(Unfollow(*log_, Options(), RealEnv()).value());
}

TEST_F(FollowTest, StopBeforeTheEndIsReported) {
  std::stop_source stop;
  stop.request_stop();
  FollowObserver silent;
  const auto report = Follow(*log_, Options(), silent, RealEnv(), stop.get_token());
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Code::kCancelled);
}

TEST_F(FollowTest, TablesCanBeAdded) {
  server_->Exec("CREATE TABLE customers (id int PRIMARY KEY)");
  MustFollow();
  FollowOptions options = Options();
  options.tables.emplace_back("customers");
  MustFollow(options);
  server_->Exec("INSERT INTO customers VALUES (1)");
  MustFollow(options);
  EXPECT_EQ(InWords(), Words{"customers/1 customers.inserted"});
}

}  // namespace
}  // namespace muster::change
