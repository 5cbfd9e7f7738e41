// `muster events follow` as processes that are killed at random, two at a time, while a table is
// written to. The events, replayed, must be the table, and each change must be there once.

#include <gtest/gtest.h>
#include <signal.h>

#include <map>
#include <random>
#include <thread>

#include "core/json.h"
#include "muster/events.h"
#include "sql/postgres.h"
#include "support/postgres_server.h"
#include "support/spawn.h"
#include "support/temporary_folder.h"

namespace muster::testing {
namespace {

using namespace std::chrono_literals;

constexpr int kRows = 40;
constexpr auto kWritesFor = 6s;

class FollowedTable : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = PostgresServer::Unavailable(); !reason.empty()) {
      GTEST_SKIP() << reason;
    }
    server_ = std::make_unique<PostgresServer>(PostgresServer::Options{.logical = true});
    server_->Exec("CREATE TABLE counters (id int PRIMARY KEY, n int NOT NULL)");
  }

  std::vector<std::string> Command(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> command = {MUSTER_PROGRAM, "events",       "follow",  Log(),
                                        "--from",       server_->Url(), "--table", "counters"};
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }
  std::string Log() const { return "sqlite:" + folder_.At("log.db"); }
  pid_t Start(const std::vector<std::string>& more = {}) const {
    return Spawn(Command(more), {}, -1, folder_.At("follow.txt"));
  }

  // Each statement raises a counter by one, so that a lost or repeated change shows.
  void Write(uint64_t seed, const std::stop_token& stop) const {
    std::mt19937_64 random(seed);
    auto connection = sql::PgConnection::Open({.uri = server_->Url()});
    ASSERT_TRUE(connection) << connection.error().ToString();
    while (!stop.stop_requested()) {
      const std::string id = std::to_string(random() % kRows);
      const bool removes = random() % 10 == 0;
      const std::string sql = removes
                                  ? "DELETE FROM counters WHERE id = " + id
                                  : "INSERT INTO counters VALUES (" + id +
                                        ", 1) ON CONFLICT (id) DO UPDATE SET n = counters.n + 1";
      const auto done = (*connection)->Execute(sql::PgStatement{"", sql}, sql::PgParams());
      ASSERT_TRUE(done) << done.error().ToString();
    }
  }

  // Follows the counters by their events; adds a failure for each that does not fit.
  std::map<std::string, int64_t> Replay() const {
    std::map<std::string, int64_t> counters;
    auto log = events::OpenEventLog(Log(), {.create = false}, RealEnv());
    if (!log) throw std::runtime_error(log.error().ToString());
    for (int64_t after = 0;;) {
      const auto page = (*log)->ReadAll(after, 1'000);
      if (!page) throw std::runtime_error(page.error().ToString());
      if (page->read_to == after) return counters;
      after = page->read_to;
      for (const events::Event& event : page->events) Apply(event, counters);
    }
  }

  static void Apply(const events::Event& event, std::map<std::string, int64_t>& counters) {
    if (event.type == "follow.checkpoint") return;
    const auto payload = ParseJson(event.payload, event.stream);
    ASSERT_TRUE(payload) << payload.error().ToString();
    const auto known = counters.find(event.stream);
    if (event.type == "counters.deleted") {
      EXPECT_NE(known, counters.end()) << event.stream << " is deleted twice, or was lost";
      counters.erase(event.stream);
      return;
    }
    const int64_t n = (*payload)["row"]["n"].get<int64_t>();
    EXPECT_EQ(n, known == counters.end() ? 1 : known->second + 1) << event.stream;
    counters[event.stream] = n;
  }

  std::map<std::string, int64_t> Table() const {
    std::map<std::string, int64_t> counters;
    auto connection = sql::PgConnection::Open({.uri = server_->Url()});
    if (!connection) throw std::runtime_error(connection.error().ToString());
    const sql::PgStatement all{"", "SELECT id::text, n::bigint FROM counters", false};
    const auto rows = (*connection)->Execute(all, sql::PgParams());
    if (!rows) throw std::runtime_error(rows.error().ToString());
    for (int row = 0; row < rows->rows(); ++row) {
      counters["counters/" + std::string(rows->Text(row, 0))] = rows->Int64(row, 1);
    }
    return counters;
  }

  TemporaryFolder folder_;
  std::unique_ptr<PostgresServer> server_;
};

TEST_F(FollowedTable, IsRebuiltFromItsEventsThoughItsFollowersAreKilled) {
  ASSERT_EQ(WaitFor(Start({"--once"})), 0);
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  {
    std::vector<std::jthread> writers;
    for (uint64_t i = 0; i < 3; ++i) {
      writers.emplace_back([this, i, seed](const std::stop_token& stop) { Write(seed + i, stop); });
    }
    const auto end = std::chrono::steady_clock::now() + kWritesFor;
    pid_t standby = Start();
    while (std::chrono::steady_clock::now() < end) {
      const pid_t follower = standby;
      standby = Start();
      std::this_thread::sleep_for(std::chrono::milliseconds(100 + random() % 700));
      kill(follower, SIGKILL);
      WaitFor(follower);
    }
    kill(standby, SIGKILL);
    WaitFor(standby);
  }
  ASSERT_EQ(WaitFor(Start({"--once"})), 0);
  EXPECT_EQ(Replay(), Table());
}

}  // namespace
}  // namespace muster::testing
