// The promises of read_model.h, checked on every read model.

#include <gtest/gtest.h>

#include <filesystem>

#include "replica/read_model.h"
#include "sql/postgres_copy.h"
#include "sql/sqlite.h"
#include "support/postgres_server.h"
#include "support/shared_server.h"
#include "support/temporary_folder.h"

namespace muster::replica {
namespace {

const Instance kInstance{"set", "totals", 1};
const std::vector<int> kSlots{1, 2};

class ReadModelContract : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "sqlite") {
      url_ = "sqlite:" + folder_.path() + "/read.db";
    } else if (GetParam() == "postgresql") {
      const std::string reason = testing::PostgresServer::Unavailable();
      if (!reason.empty()) GTEST_SKIP() << "no PostgreSQL: " << reason;
      url_ = testing::PostgresServer::Shared().Url() + "?namespace=" + space_;
    }
    auto model = OpenReadModel(url_, RealEnv());
    ASSERT_TRUE(model) << model.error().ToString();
    model_ = *std::move(model);
  }
  void TearDown() override { model_.reset(); }

  std::vector<SlotState> TakeOver(int64_t generation) {
    auto states = model_->TakeOver(kInstance, generation, kSlots);
    if (!states) throw std::runtime_error(states.error().ToString());
    return *states;
  }
  Status Commit(const ReadModelProgress& progress, const Instance& instance = kInstance) {
    auto transaction = model_->Begin();
    if (!transaction) return transaction.error();
    return model_->Commit(**transaction, instance, progress);
  }

  const std::string space_ = "m" + RealEnv().NewId().substr(0, 12);
  testing::TemporaryFolder folder_;
  std::string url_ = "memory:";
  std::unique_ptr<ReadModel> model_;
};

TEST_P(ReadModelContract, SlotsStartAtZeroAndContinueFromTheirCheckpoints) {
  EXPECT_EQ(TakeOver(1), (std::vector<SlotState>{{1, 1, 0, 0, 0}, {2, 1, 0, 0, 0}}));
  ASSERT_TRUE(Commit({.moves = {{1, 1, 0, 50, 3, 0x5555}}}));
  ASSERT_TRUE(Commit({.moves = {{1, 1, 50, 60, 1, 0x1111}, {2, 1, 0, 55, 2, -1}}}));
  EXPECT_EQ(TakeOver(2), (std::vector<SlotState>{{1, 2, 60, 4, 0x4444}, {2, 2, 55, 2, -1}}));
  EXPECT_EQ(*model_->HighestGeneration("set"), 2);
  EXPECT_EQ(*model_->HighestGeneration("other"), 0);
}

TEST_P(ReadModelContract, ACheckpointKeepsTheMarkOfItsEventUntilAnOperatorMovesIt) {
  TakeOver(1);
  const events::EventMark first{50, 7}, second{60, -9};
  ASSERT_TRUE(Commit({.moves = {{.slot = 1, .generation = 1, .to = 50, .mark = first},
                                {.slot = 2, .generation = 1, .to = 60, .mark = second}}}));
  ASSERT_TRUE(Commit({.moves = {{.slot = 2, .generation = 1, .from = 60, .to = 70}}}));
  auto slots = TakeOver(2);
  EXPECT_EQ(slots[0].mark, first);
  EXPECT_EQ(slots[1].mark, second);
  EXPECT_EQ(*model_->Slots(kInstance), slots);
  const auto transaction = model_->Begin();
  const events::SlotPosition start{1, 0};
  ASSERT_TRUE(model_->Put(**transaction, kInstance, {&start, 1}, false));
  ASSERT_TRUE(model_->Commit(**transaction));
  slots = *model_->Slots(kInstance);
  EXPECT_EQ(slots[0].mark, events::EventMark{});
  EXPECT_EQ(slots[1].mark, second);
}

TEST_P(ReadModelContract, NewFilesAreForTheirOwnerOnly) {
  TakeOver(1);
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    using std::filesystem::perms;
    EXPECT_EQ(entry.status().permissions(), perms::owner_read | perms::owner_write) << entry.path();
  }
}

TEST_P(ReadModelContract, TablesOfANewerVersionAreRefused) {
  if (GetParam() == "memory") return;
  if (GetParam() == "sqlite") {
    auto db = sql::SqliteDb::Open(folder_.path() + "/read.db", sql::SqliteDb::Mode::kExisting,
                                  std::chrono::seconds(1));
    ASSERT_TRUE(db && (*db)->Execute("UPDATE muster_checkpoints_schema SET version = 99"));
  } else {
    testing::PostgresServer::Shared().Exec("INSERT INTO " + space_ +
                                           ".checkpoints_version VALUES (99)");
  }
  const auto model = OpenReadModel(url_, RealEnv());
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, Code::kIncompatible);
  EXPECT_NE(model.error().message.find("the read model"), std::string::npos);
  EXPECT_NE(model.error().message.find("99"), std::string::npos) << model.error().message;
}

// The oldest tables, from before there were versions.
TEST_P(ReadModelContract, OlderTablesAreUpgradedWithTheirCheckpoints) {
  if (GetParam() == "memory") return;
  const std::string prefix = GetParam() == "sqlite" ? "muster_" : space_ + ".";
  const std::string key = "replica_set TEXT, projection TEXT, version INTEGER, ";
  const std::string old =
      "DROP TABLE $checkpoints_; DROP TABLE $checkpoints; DROP TABLE $parked_events;"
      "CREATE TABLE $checkpoints (" +
      key +
      "slot INTEGER, generation BIGINT NOT NULL, position BIGINT NOT NULL, handled BIGINT NOT NULL "
      "DEFAULT 0, digest BIGINT NOT NULL DEFAULT 0, PRIMARY KEY (replica_set, projection, version, "
      "slot));"
      "CREATE TABLE $parked_events (" +
      key +
      "stream TEXT, event_version BIGINT, PRIMARY KEY (replica_set, projection, version, stream, "
      "event_version));"
      "INSERT INTO $checkpoints VALUES ('set', 'totals', 1, 1, 4, 60, 3, 5)";
  std::string sql;
  for (const char c : old) sql += c == '$' ? prefix : std::string(1, c);
  const std::string versions = GetParam() == "sqlite" ? "schema" : "version";
  sql.insert(sql.find("checkpoints_;") + 12, versions);
  model_.reset();
  if (GetParam() == "sqlite") {
    auto db = sql::SqliteDb::Open(folder_.path() + "/read.db", sql::SqliteDb::Mode::kExisting,
                                  std::chrono::seconds(1));
    const Status made = (*db)->Execute(sql);
    ASSERT_TRUE(made) << made.error().ToString();
  } else {
    testing::PostgresServer::Shared().Exec(sql);
  }
  auto model = OpenReadModel(url_, RealEnv());
  ASSERT_TRUE(model) << model.error().ToString();
  model_ = *std::move(model);
  EXPECT_EQ(*model_->Slots(kInstance), (std::vector<SlotState>{{1, 4, 60, 3, 5}}));
  TakeOver(5);
  ASSERT_TRUE(
      Commit({.moves = {{.slot = 1, .generation = 5, .from = 60, .to = 70, .mark = {70, 1}}},
              .parked = {{1, "s", 1, false}},
              .error = "why"}));
  EXPECT_EQ(model_->Slots(kInstance)->front().mark.position, 70);
  ASSERT_TRUE(OpenReadModel(url_, RealEnv()));  // again
}

TEST_P(ReadModelContract, ACommitOfAnOlderGenerationFailsAndChangesNothing) {
  TakeOver(1);
  TakeOver(2);
  const Status late = Commit({.moves = {{1, 1, 0, 50, 1, 1}}});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kLeaseLost);
  EXPECT_EQ((*model_->Slots(kInstance))[0].position, 0);
  auto older = model_->TakeOver(kInstance, 1, kSlots);
  ASSERT_FALSE(older);
  EXPECT_EQ(older.error().code, Code::kLeaseLost);
  EXPECT_EQ((*model_->Slots(kInstance))[1].generation, 2);
}

TEST_P(ReadModelContract, ACommitFromAnotherPositionFailsAsAWhole) {
  TakeOver(1);
  ASSERT_TRUE(Commit({.moves = {{1, 1, 0, 50, 1, 1}}}));
  // Repeated, as after a lost reply, together with a slot that could move.
  const Status again = Commit({.moves = {{2, 1, 0, 40, 1, 1}, {1, 1, 0, 50, 1, 1}}});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::kLeaseLost);
  const auto slots = *model_->Slots(kInstance);
  EXPECT_EQ(slots[0].position, 50);
  EXPECT_EQ(slots[1].position, 0);
}

TEST_P(ReadModelContract, VersionsAndSetsHaveSeparateCheckpoints) {
  TakeOver(1);
  ASSERT_TRUE(Commit({.moves = {{1, 1, 0, 50, 1, 1}}}));
  const Instance second{"set", "totals", 2};
  const Instance other{"other", "totals", 1};
  for (const Instance& instance : {second, other}) {
    auto states = model_->TakeOver(instance, 1, kSlots);
    ASSERT_TRUE(states);
    EXPECT_EQ(states->front().position, 0);
  }
}

TEST_P(ReadModelContract, ParkedEventsWaitInOrderUntilTheyAreReplayed) {
  TakeOver(1);
  ASSERT_TRUE(Commit({.moves = {{1, 1, 0, 50, 1, 1}}, .parked = {{1, "s", 3}}, .error = "why"}));
  ASSERT_TRUE(Commit({.moves = {{1, 1, 50, 60, 1, 1}}, .parked = {{1, "s", 4}}}));
  auto parked = model_->Parked(kInstance, kSlots);
  ASSERT_TRUE(parked) << parked.error().ToString();
  ASSERT_EQ(parked->size(), 1u);
  EXPECT_EQ(parked->front().stream, "s");
  EXPECT_EQ(parked->front().error, "why");
  EXPECT_EQ(parked->front().versions, (std::vector<int64_t>{3, 4}));
  EXPECT_FALSE(parked->front().replay);
  const std::vector<int> others{2};
  EXPECT_TRUE(model_->Parked(kInstance, others)->empty());
  EXPECT_EQ(*model_->RequestReplay(kInstance, "t"), 0);
  EXPECT_EQ(*model_->RequestReplay(kInstance, ""), 1);
  EXPECT_TRUE(model_->Parked(kInstance, kSlots)->front().replay);
  ASSERT_TRUE(Commit({.moves = {{1, 1, 60, 60, 0, 0}}, .error = "again", .failed = {{1, "s", 3}}}));
  EXPECT_FALSE(model_->Parked(kInstance, kSlots)->front().replay);
  EXPECT_EQ(model_->Parked(kInstance, kSlots)->front().versions.size(), 2u);
  ASSERT_TRUE(Commit({.moves = {{1, 1, 60, 60, 0, 0}}, .replayed = {{1, "s", 3}}}));
  EXPECT_EQ(model_->Parked(kInstance, kSlots)->front().versions, (std::vector<int64_t>{4}));
  ASSERT_TRUE(Commit({.moves = {{1, 1, 60, 60, 0, 0}}, .replayed = {{1, "s", 4}}}));
  EXPECT_TRUE(model_->Parked(kInstance, kSlots)->empty());
}

TEST_P(ReadModelContract, CommitFailsIfAnEventIsNotParkedAsExpected) {
  TakeOver(1);
  // As by a follower that does not know that the stream was unparked.
  const ReadModelProgress behind{.moves = {{1, 1, 0, 50, 1, 1}}, .parked = {{1, "s", 1}}};
  EXPECT_EQ(Commit(behind).error().code, Code::kLeaseLost);
  ASSERT_TRUE(Commit({.moves = {{1, 1, 0, 50, 1, 1}}, .parked = {{1, "s", 1}}, .error = "why"}));
  const ReadModelProgress replayed{.moves = {{1, 1, 50, 50}},
                                   .replayed = {{1, "s", 1}, {1, "s", 2}}};
  EXPECT_EQ(Commit(replayed).error().code, Code::kLeaseLost);
  // As by a failed replay that is reported after another succeeded.
  const ReadModelProgress failed{
      .moves = {{1, 1, 50, 50}}, .error = "late", .failed = {{1, "s", 2}}};
  EXPECT_EQ(Commit(failed).error().code, Code::kLeaseLost);
  ASSERT_EQ(model_->Parked(kInstance, kSlots)->size(), 1u);
  EXPECT_EQ(model_->Parked(kInstance, kSlots)->front().versions, (std::vector<int64_t>{1}));
  EXPECT_EQ(model_->Parked(kInstance, kSlots)->front().error, "why");
  EXPECT_EQ(model_->Slots(kInstance)->front().position, 50);
}

TEST_P(ReadModelContract, SwapHandsSideEffectsOverAtTheNewVersionsPosition) {
  const Instance second{"set", "totals", 2};
  const std::vector<int> slots{0, 1};
  ASSERT_TRUE(model_->TakeOver(kInstance, 1, slots));
  ASSERT_TRUE(Commit({.moves = {{0, 1, 0, 50, 1, 1}, {1, 1, 0, 10, 1, 1}}}));
  const auto swap = [&](const Instance& from, int to) {
    auto transaction = *model_->Begin();
    return model_->Swap(*transaction, from, to, 2);
  };
  const auto until = [&](const Instance& instance) {
    std::vector<int64_t> positions;
    const auto states = *model_->Slots(instance);
    for (const SlotState& state : states) positions.push_back(state.effects_until);
    return positions;
  };
  EXPECT_EQ(swap(kInstance, 2).error().code, Code::kConflict);
  ASSERT_TRUE(model_->TakeOver(second, 1, slots));
  ASSERT_TRUE(Commit({.moves = {{0, 1, 0, 49, 1, 1}, {1, 1, 0, 20, 1, 1}}}, second));
  EXPECT_EQ(swap(kInstance, 2).error().code, Code::kConflict);
  EXPECT_EQ(until(kInstance), (std::vector<int64_t>{kEffectsByVersion, kEffectsByVersion}));
  ASSERT_TRUE(Commit({.moves = {{0, 1, 49, 60, 1, 1}}}, second));
  ASSERT_TRUE(swap(kInstance, 2));
  EXPECT_EQ(until(kInstance), (std::vector<int64_t>{60, 20}));
  EXPECT_EQ(until(second), (std::vector<int64_t>{kEffectsAlways, kEffectsAlways}));
  // Commits begun before it fail; those that know of it succeed.
  EXPECT_EQ(Commit({.moves = {{0, 1, 60, 70, 1, 1}}}, second).error().code, Code::kLeaseLost);
  EXPECT_EQ(Commit({.moves = {{0, 1, 50, 70, 1, 1}}}).error().code, Code::kLeaseLost);
  ASSERT_TRUE(Commit({.moves = {{0, 1, 60, 70, 1, 1, kEffectsAlways}}}, second));
  EXPECT_EQ(swap(second, 2).error().code, Code::kConflict);
  // Repeated, as after a lost reply.
  ASSERT_TRUE(swap(kInstance, 2));
  EXPECT_EQ(until(kInstance), (std::vector<int64_t>{60, 20}));
  // And back, for which the old version has to catch up.
  EXPECT_EQ(swap(second, 1).error().code, Code::kConflict);
  ASSERT_TRUE(Commit({.moves = {{0, 1, 50, 75, 1, 1, 60}, {1, 1, 10, 20, 1, 1, 20}}}));
  ASSERT_TRUE(swap(second, 1));
  auto forget = *model_->Begin();
  EXPECT_EQ(model_->Forget(*forget, kInstance, true).error().code, Code::kConflict);
  forget = *model_->Begin();
  EXPECT_EQ(until(second), (std::vector<int64_t>{75, 20}));
  EXPECT_EQ(until(kInstance), (std::vector<int64_t>{kEffectsAlways, kEffectsAlways}));
}

TEST_P(ReadModelContract, ARefusedSwapChangesNothing) {
  auto transaction = *model_->Begin();
  EXPECT_EQ(model_->Swap(*transaction, kInstance, 2, 2).error().code, Code::kConflict);
  EXPECT_TRUE(model_->Slots(kInstance)->empty());
  EXPECT_TRUE(model_->Slots({"set", "totals", 2})->empty());
}

TEST_P(ReadModelContract, AParkedEventIsSkippedOnceAndRemembersItsSideEffects) {
  TakeOver(1);
  ASSERT_TRUE(Commit({.moves = {{1, 1, 0, 50, 2, 1}},
                      .parked = {{1, "s", 1, true}, {1, "s", 2, false}},
                      .error = "why"}));
  EXPECT_EQ(model_->Parked(kInstance, kSlots)->front().quiet, (std::set<int64_t>{2}));
  ASSERT_TRUE(model_->SkipParked(kInstance, {1, "s", 1}));
  EXPECT_EQ(model_->SkipParked(kInstance, {1, "s", 1}).error().code, Code::kNotFound);
  EXPECT_EQ(model_->Parked(kInstance, kSlots)->front().versions, (std::vector<int64_t>{2}));
  EXPECT_EQ(model_->Parked(kInstance, kSlots)->front().error, SkippedError(1));
  ASSERT_TRUE(model_->SkipParked(kInstance, {1, "s", 2}));
  EXPECT_TRUE(model_->Parked(kInstance, kSlots)->empty());
  EXPECT_EQ(model_->Slots(kInstance)->front().skipped, 2);
}

TEST_P(ReadModelContract, OnlyTheFailedEventTakesItsErrorWithIt) {
  TakeOver(1);
  ASSERT_TRUE(Commit({.moves = {{1, 1, 0, 50, 7, 9}},
                      .parked = {{1, "s", 1}, {1, "s", 2}, {1, "other", 1}},
                      .error = "why"}));
  ASSERT_TRUE(model_->SkipParked(kInstance, {1, "s", 2}));
  const auto parked = model_->Parked(kInstance, kSlots);
  ASSERT_TRUE(parked);
  ASSERT_FALSE(parked->empty());
  for (const ParkedStream& stream : *parked) {
    EXPECT_EQ(stream.error, "why") << stream.stream;
  }
}

TEST_P(ReadModelContract, OperatorsSetAndForgetCheckpoints) {
  TakeOver(1);
  ASSERT_TRUE(Commit({.moves = {{1, 1, 0, 50, 7, 9}}, .parked = {{1, "s", 1}}, .error = "x"}));
  const std::vector<events::SlotPosition> start{{1, 0}, {2, 0}};
  auto transaction = *model_->Begin();
  ASSERT_TRUE(model_->Put(*transaction, kInstance, start, true));
  ASSERT_TRUE(model_->Commit(*transaction));
  transaction.reset();
  EXPECT_EQ(model_->Slots(kInstance)->front(), (SlotState{1, 1, 0, 0, 0}));
  EXPECT_TRUE(model_->Parked(kInstance, kSlots)->empty());
  EXPECT_EQ(Commit({.moves = {{1, 1, 50, 60, 1, 1}}}).error().code, Code::kLeaseLost);
  transaction = *model_->Begin();
  ASSERT_TRUE(model_->Forget(*transaction, kInstance, false));
  ASSERT_TRUE(model_->Commit(*transaction));
  EXPECT_TRUE(model_->Slots(kInstance)->empty());
}

TEST_P(ReadModelContract, TransactionCommitsOnlyTogetherWithItsCheckpoint) {
  if (GetParam() == "memory") return;  // has no tables
  auto setup = *model_->Begin();
  ASSERT_TRUE(setup->Execute(
      "CREATE TABLE seen_" + std::string(GetParam()) + " (id TEXT PRIMARY KEY, n INTEGER, t TEXT)",
      {}));
  ASSERT_TRUE(model_->Commit(*setup));
  setup.reset();
  const std::string table = "seen_" + std::string(GetParam());
  TakeOver(1);
  const auto add = [&](const std::string& id, int64_t from, int64_t to) {
    auto transaction = *model_->Begin();
    const Status done = transaction->Execute("INSERT INTO " + table + " VALUES ($2, $1, $3)",
                                             {"7", id, std::nullopt});
    if (!done) return done;
    return model_->Commit(*transaction, kInstance, {.moves = {{1, 1, from, to, 1, 1}}});
  };
  ASSERT_TRUE(add("a", 0, 10));
  EXPECT_FALSE(add("a", 10, 20));                             // a statement fails
  EXPECT_EQ(add("b", 0, 20).error().code, Code::kLeaseLost);  // the fence does
  EXPECT_EQ((*model_->Slots(kInstance))[0].position, 10);
  auto look = *model_->Begin();
  auto rows = look->Query("SELECT id, n, t FROM " + table + " WHERE n = $1", {"7"});
  ASSERT_TRUE(rows) << rows.error().ToString();
  EXPECT_EQ(*rows, (std::vector<std::vector<SqlValue>>{{"a", "7", std::nullopt}}));
  // A transaction sees its own changes.
  ASSERT_TRUE(look->Execute("UPDATE " + table + " SET n = n + 1", {}));
  rows = look->Query("SELECT n FROM " + table, {});
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->front().front(), "8");
  EXPECT_TRUE(model_->Commit(*look, kInstance, {.moves = {{1, 1, 10, 20, 1, 1}}}));
}

TEST_P(ReadModelContract, AStatementThatEndsTheTransactionFailsOnSqlite) {
  if (GetParam() != "sqlite") return;
  for (const char* sql : {"COMMIT", "ROLLBACK"}) {
    auto transaction = *model_->Begin();
    ASSERT_TRUE(transaction->Execute("CREATE TABLE IF NOT EXISTS t (id TEXT)"));
    const Status ended = transaction->Execute(sql);
    ASSERT_FALSE(ended) << sql;
    EXPECT_EQ(ended.error().code, Code::kInvalid);
  }
}

// As after an upgrade: the role has what was granted before there was a table of versions.
TEST_P(ReadModelContract, RolesWithGrantsContinueAfterTheOwnerUpgradesTheTables) {
  if (GetParam() != "postgresql") return;
  const auto& server = testing::PostgresServer::Shared();
  const std::string role = testing::UniqueName("limited");
  const std::string limited =
      server.Url() + "?options=-c%20role%3D" + role + "&namespace=" + space_;
  server.Exec("DROP TABLE " + space_ + ".checkpoints_version; CREATE ROLE " + role +
              "; GRANT USAGE ON SCHEMA " + space_ + " TO " + role +
              "; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA " + space_ + " TO " +
              role + "; ALTER TABLE " + space_ +
              ".checkpoints DROP COLUMN mark, DROP COLUMN mark_position");
  const auto early = OpenReadModel(limited, RealEnv());
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, Code::kPermission) << early.error().ToString();
  EXPECT_NE(early.error().hint.find("owner of the tables"), std::string::npos)
      << early.error().ToString();
  ASSERT_TRUE(OpenReadModel(url_, RealEnv()));
  const auto model = OpenReadModel(limited, RealEnv());
  ASSERT_TRUE(model) << model.error().ToString();
  EXPECT_TRUE((*model)->TakeOver(kInstance, 1, kSlots));
}

// For databases with row locks.
class RowLocks : public ReadModelContract {};

TEST_P(RowLocks, RowsLockedBySleepingProcessesAreReleased) {
  const std::string table = "locked_" + RealEnv().NewId().substr(0, 12);
  const auto run = [&](const std::string& sql) {
    auto transaction = model_->Begin();
    EXPECT_TRUE((*transaction)->Execute(sql));
    return model_->Commit(**transaction);
  };
  ASSERT_TRUE(run("CREATE TABLE " + table + " (id integer PRIMARY KEY, n integer)"));
  ASSERT_TRUE(run("INSERT INTO " + table + " VALUES (1, 0)"));
  const std::string update = "UPDATE " + table + " SET n = n + 1 WHERE id = 1 RETURNING n";
  TakeOver(1);
  auto sleeping = model_->Begin();
  ASSERT_TRUE(sleeping);
  model_->LimitIdle(**sleeping, milliseconds(300));
  ASSERT_TRUE((*sleeping)->Query(update));
  // It never continues; the next owner waits only briefly, not until a statement times out.
  const Status next = run(update);
  EXPECT_TRUE(next) << next.error().ToString();
  const Status woken = model_->Commit(**sleeping, kInstance, {.moves = {{1, 1, 0, 50, 1, 1}}});
  ASSERT_FALSE(woken);
  EXPECT_TRUE(IsTransient(woken.error().code)) << woken.error().ToString();
  EXPECT_EQ((*model_->Slots(kInstance))[0].position, 0);
  ASSERT_TRUE(run("DROP TABLE " + table));
}

// Stopped between two messages, or in the middle of one: the server waits for the rest of it, and
// does not count that as idle.
TEST_P(RowLocks, ASessionStoppedInTheMiddleOfABatchDoesNotHoldUpTheNextOwner) {
  const auto& server = testing::PostgresServer::Shared();
  for (const bool sending : {false, true}) {
    SCOPED_TRACE(sending);
    TakeOver(1);
    const auto stopped = sql::PgConnection::Open({.uri = server.Url()}).value();
    const auto run = [&](const std::string& text) {
      return stopped->Execute(sql::PgStatement{.name = "", .sql = text, .writes = true}, {});
    };
    ASSERT_TRUE(run("BEGIN"));
    ASSERT_TRUE(run("UPDATE " + space_ + ".checkpoints SET position = position"));
    std::optional<sql::PgCopyIn> copy;
    if (sending) {
      auto started = sql::PgCopyIn::Start(*stopped, "COPY " + space_ + ".checkpoints FROM STDIN");
      ASSERT_TRUE(started) << started.error().ToString();
      copy.emplace(*std::move(started));
    }
    const MonoTime begun = RealEnv().MonoNow();
    const auto taken = model_->TakeOver(kInstance, 2, kSlots);
    ASSERT_TRUE(taken) << taken.error().ToString();
    EXPECT_LT(RealEnv().MonoNow() - begun, std::chrono::seconds(8));
    ASSERT_FALSE(run("COMMIT"));
    const auto transaction = model_->Begin();
    ASSERT_TRUE(model_->Forget(**transaction, kInstance, false));
    ASSERT_TRUE(model_->Commit(**transaction));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ReadModelContract,
                         ::testing::Values("memory", "sqlite", "postgresql"),
                         [](const auto& backend) { return backend.param; });
INSTANTIATE_TEST_SUITE_P(Models, RowLocks, ::testing::Values("postgresql"),
                         [](const auto& backend) { return backend.param; });

}  // namespace
}  // namespace muster::replica
