// PostgreSQL event logs beyond the common contract: tables written by other libraries, late
// commits, servers that are not primaries.

#include <gtest/gtest.h>

#include <map>

#include "muster/events.h"
#include "sql/postgres.h"
#include "support/postgres_server.h"

namespace muster::events {
namespace {

testing::PostgresServer& Server() { return testing::PostgresServer::Shared(); }

std::unique_ptr<sql::PgConnection> Session() {
  auto connection = sql::PgConnection::Open({.uri = Server().Url()});
  if (!connection) throw std::runtime_error(connection.error().ToString());
  return *std::move(connection);
}

sql::PgResult Sql(sql::PgConnection& connection, const std::string& sql) {
  auto result = connection.Execute(sql::PgStatement{"", sql}, sql::PgParams());
  if (!result) throw std::runtime_error(sql + ": " + result.error().ToString());
  return *std::move(result);
}

class PostgresTable : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = testing::PostgresServer::Unavailable();
    if (!reason.empty()) GTEST_SKIP() << "no PostgreSQL: " << reason;
    table_ = "t" + RealEnv().NewId().substr(0, 12);
    session_ = Session();
    Sql(*session_, "CREATE TABLE " + table_ +
                       " (global_position BIGSERIAL PRIMARY KEY, aggregate_type TEXT NOT NULL,"
                       " aggregate_id UUID NOT NULL, aggregate_version BIGINT NOT NULL,"
                       " event_id UUID NOT NULL DEFAULT gen_random_uuid(), event_type TEXT,"
                       " payload BYTEA NOT NULL DEFAULT '', metadata JSONB,"
                       " created_at TIMESTAMPTZ DEFAULT now())");
  }

  EventTable Names() const { return {.table = table_}; }
  std::unique_ptr<EventLog> Open(const EventTable& names) {
    auto log = OpenEventLog(Server().Url(), {.slots = 8, .table = names}, RealEnv());
    if (!log) throw std::runtime_error(log.error().ToString());
    return *std::move(log);
  }
  void Insert(sql::PgConnection& session, int aggregate, int version) {
    Sql(session, "INSERT INTO " + table_ +
                     " (aggregate_type, aggregate_id, aggregate_version, event_type) VALUES "
                     "('order', lpad('" +
                     std::to_string(aggregate) + "', 32, '0')::uuid, " + std::to_string(version) +
                     ", 'T')");
  }

  std::string table_;
  std::unique_ptr<sql::PgConnection> session_;
};

TEST_F(PostgresTable, TableOfAnotherLibraryIsReadUnchanged) {
  for (int i = 0; i < 40; ++i) Insert(*session_, i % 5, i / 5 + 1);
  const auto log = Open(Names());
  auto all = log->ReadAll(0, 100);
  ASSERT_TRUE(all) << all.error().ToString();
  ASSERT_EQ(all->events.size(), 40u);
  EXPECT_EQ(all->events[7].stream, "order/00000000-0000-0000-0000-000000000002");
  EXPECT_EQ(all->events[7].version, 2);
  EXPECT_EQ(all->events[7].metadata, "{}");
  EXPECT_EQ(all->events[7].id.size(), 36u);
  size_t shared = 0;
  for (int slot = 0; slot < 8; ++slot) {
    const SlotPosition from{slot, 10};
    auto page = log->Read({&from, 1}, 100);
    ASSERT_TRUE(page) << page.error().ToString();
    for (const Event& event : page->events) {
      EXPECT_EQ(event.slot, slot);
      EXPECT_GT(event.position, 10);
    }
    auto lag = log->Lag({&from, 1});
    ASSERT_TRUE(lag) << lag.error().ToString();
    EXPECT_EQ(lag->front().events, static_cast<int64_t>(page->events.size()));
    shared += page->events.size();
  }
  EXPECT_EQ(shared, 30u);
  auto stream = log->ReadStream("order/00000000-0000-0000-0000-000000000002", 3, 2);
  ASSERT_TRUE(stream) << stream.error().ToString();
  ASSERT_EQ(stream->size(), 2u);
  EXPECT_EQ(stream->front().version, 4);
  const StreamAppend append{"s", 0, {{"T"}}};
  EXPECT_EQ(log->Append({&append, 1}).error().code, Code::kPermission);
}

TEST_F(PostgresTable, AReadThatTimesOutNamesTheMissingIndex) {
  for (const bool has_index : {true, false}) {
    if (!has_index) {
      Sql(*session_, "ALTER TABLE " + table_ + " DROP CONSTRAINT " + table_ + "_pkey");
      // Neither order by position.
      Sql(*session_, "CREATE INDEX ON " + table_ + " (event_id, global_position)");
      Sql(*session_, "CREATE INDEX ON " + table_ + " (global_position) WHERE event_type = 'T'");
    }
    const auto log = OpenEventLog(
        Server().Url(), {.slots = 8, .call_timeout = std::chrono::seconds(1), .table = Names()},
        RealEnv());
    ASSERT_TRUE(log) << log.error().ToString();
    // Instead of a table that is large enough.
    Sql(*session_, "BEGIN");
    Sql(*session_, "LOCK TABLE " + table_);
    const auto read = (*log)->Last();
    Sql(*session_, "ROLLBACK");
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, Code::kUnavailable) << read.error().ToString();
    EXPECT_EQ(read.error().hint.find("CREATE INDEX ON \"" + table_ + "\" (\"global_position\")") !=
                  std::string::npos,
              !has_index)
        << read.error().ToString();
  }
}

// Any column names: keywords, our own names, quotes, other alphabets.
TEST_F(PostgresTable, MayHaveOddNames) {
  const std::string name = R"(odd '"é)" + table_;
  const std::string quoted = sql::PgIdentifier(name);
  Sql(*session_, "CREATE TABLE " + quoted +
                     R"( ("order" BIGSERIAL PRIMARY KEY, "e" TEXT, "s""ströм'" TEXT, "position" INT,
                     "slot" TEXT, "stream" TEXT, "after" JSON, "payload" TEXT, "at" TIMESTAMPTZ))");
  Sql(*session_, "INSERT INTO " + quoted +
                     R"( ("e", "s""ströм'", "position", "slot", "stream", "after", "payload", "at")
                     SELECT 'a', 'b' || n % 10, n / 10, 'id' || n, 'T', ('{"n": ' || n || '}')::json, '{}',
                     to_timestamp(n) FROM generate_series(1, 100) n)");
  const EventTable names{.table = name,
                         .position = "order",
                         .stream = {"e", "s\"ströм'"},
                         .version = "position",
                         .id = "slot",
                         .type = "stream",
                         .payload = "after",
                         .metadata = "payload",
                         .time = "at"};
  const auto log = Open(names);
  const std::vector<SlotPosition> from{{0, 20}, {1, 10}, {2, 0}, {3, 50}, {4, 0}, {5, 0}, {6, 0}};
  auto page = log->Read(from, 100);
  ASSERT_TRUE(page) << page.error().ToString();
  ASSERT_FALSE(page->events.empty());
  std::map<int, int64_t> counts;
  for (const Event& event : page->events) {
    ++counts[event.slot];
    const std::string n = std::to_string(event.position);
    EXPECT_GT(event.position, from.at(static_cast<size_t>(event.slot)).position);
    EXPECT_EQ(event.stream, "a/b" + std::to_string(event.position % 10));
    EXPECT_EQ(event.version, event.position / 10);
    EXPECT_EQ(event.id, "id" + n);
    EXPECT_EQ(event.payload, "{\"n\": " + n + "}");
    EXPECT_EQ(event.time, WallTime(std::chrono::seconds(event.position)));
  }
  auto lags = log->Lag(from);
  ASSERT_TRUE(lags) << lags.error().ToString();
  for (const SlotLag& lag : *lags) EXPECT_EQ(lag.events, counts[lag.slot]) << lag.slot;
  auto stream = log->ReadStream("a/b7", 8, 10);
  ASSERT_TRUE(stream) << stream.error().ToString();
  ASSERT_EQ(stream->size(), 1u);
  EXPECT_EQ(stream->front().position, 97);
}

// A worker's share of many events: enough to hit the server's timeout if each is compared with each
// slot.
TEST_F(PostgresTable, LargeTableIsReadAndCountedInTime) {
  Sql(*session_, "INSERT INTO " + table_ +
                     " (aggregate_type, aggregate_id, aggregate_version, event_type) SELECT 'o',"
                     " lpad((n % 1000)::text, 32, '0')::uuid, n / 1000, 'T'"
                     " FROM generate_series(0, 79999) n");
  auto opened = OpenEventLog(Server().Url(), {.slots = 128, .table = Names()}, RealEnv());
  ASSERT_TRUE(opened) << opened.error().ToString();
  std::vector<SlotPosition> from;
  for (int slot = 0; slot < 128; slot += 2) from.push_back({slot, 0});
  auto lags = (*opened)->Lag(from);
  ASSERT_TRUE(lags) << lags.error().ToString();
  int64_t behind = 0;
  for (const SlotLag& lag : *lags) behind += lag.events;
  int64_t read = 0;
  for (int64_t at = -1; from.front().position > at;) {
    at = from.front().position;
    auto page = (*opened)->Read(from, kMaxEventBatch);
    ASSERT_TRUE(page) << page.error().ToString();
    read += static_cast<int64_t>(page->events.size());
    for (SlotPosition& slot : from) slot.position = page->read_to;
  }
  EXPECT_GT(read, 30'000);
  EXPECT_EQ(read, behind);
}

// Other libraries' tables, as they create them, without what readers ignore.
struct Layout {
  std::string name;
  std::string columns;
  std::string insert;  // three events: with metadata, without, and of another stream
  EventTable names;
  std::string stream;    // of the first two
  int64_t version;       // of the first
  std::string metadata;  // of the first
};

std::ostream& operator<<(std::ostream& out, const Layout& layout) { return out << layout.name; }

class PostgresLayout : public ::testing::TestWithParam<Layout> {};

TEST_P(PostgresLayout, PayloadsAreRead) {
  const std::string reason = testing::PostgresServer::Unavailable();
  if (!reason.empty()) GTEST_SKIP() << "no PostgreSQL: " << reason;
  const Layout& layout = GetParam();
  const auto session = Session();
  EventTable names = layout.names;
  names.table = "l" + RealEnv().NewId().substr(0, 12);
  Sql(*session, "SET timezone = 'Asia/Tokyo'");
  Sql(*session, "CREATE TABLE " + names.table + " (" + layout.columns);
  if (layout.columns.find("PARTITION BY") != std::string::npos) {
    Sql(*session, "CREATE TABLE " + names.table + "_p PARTITION OF " + names.table + " DEFAULT");
  }
  Sql(*session, "INSERT INTO " + names.table + " " + layout.insert);
  auto log = OpenEventLog(Server().Url(), {.slots = 8, .table = names}, RealEnv());
  ASSERT_TRUE(log) << log.error().ToString();
  auto page = (*log)->ReadAll(0, 10);
  ASSERT_TRUE(page) << page.error().ToString();
  ASSERT_EQ(page->events.size(), 3u);
  const Event& first = page->events[0];
  EXPECT_EQ(first.stream, layout.stream);
  EXPECT_EQ(first.version, layout.version);
  EXPECT_EQ(first.type, "Placed");
  EXPECT_EQ(first.id, "00000000-0000-0000-0000-000000000001");
  EXPECT_EQ(first.payload, R"({"who": "ö", "total": 5})");
  EXPECT_EQ(first.metadata, layout.metadata);
  EXPECT_EQ(first.time, WallTime(std::chrono::seconds(86400)));
  EXPECT_EQ(page->events[1].metadata, "{}");
  auto stream = (*log)->ReadStream(layout.stream, layout.version - 1, 10);
  ASSERT_TRUE(stream) << stream.error().ToString();
  EXPECT_EQ(stream->size(), 2u);
  // An unfinished insert holds readers back, also into a partition.
  Sql(*session, "BEGIN");
  Sql(*session, "LOCK TABLE " + names.table + " IN ROW EXCLUSIVE MODE");
  const auto other = Session();
  Sql(*other, "INSERT INTO " + names.table + " " + layout.insert);
  page = (*log)->ReadAll(0, 10);
  ASSERT_TRUE(page) << page.error().ToString();
  EXPECT_EQ(page->events.size(), 3u);
}

const Layout kPupsourcing{
    "pupsourcing",
    "global_position BIGSERIAL PRIMARY KEY, aggregate_type TEXT NOT NULL, aggregate_id UUID NOT "
    "NULL, aggregate_version BIGINT NOT NULL, event_id UUID NOT NULL, event_type TEXT NOT NULL, "
    "payload BYTEA NOT NULL, metadata JSONB, created_at TIMESTAMPTZ NOT NULL DEFAULT now())",
    "(aggregate_type, aggregate_id, aggregate_version, event_id, event_type, payload, metadata, "
    "created_at) VALUES ('order', lpad('7', 32, '0')::uuid, 1, lpad('1', 32, '0')::uuid, 'Placed', "
    "convert_to('{\"who\": \"ö\", \"total\": 5}', 'UTF8'), '{\"by\": 1}', '1970-01-02Z'), "
    "('order', lpad('7', 32, '0')::uuid, 2, lpad('2', 32, '0')::uuid, 'Paid', '{}', NULL, now()), "
    "('order', lpad('8', 32, '0')::uuid, 1, lpad('3', 32, '0')::uuid, 'Placed', '\\x0aff00', NULL, "
    "now())",
    {},
    "order/00000000-0000-0000-0000-000000000007",
    1,
    R"({"by": 1})"};

const Layout kMarten{
    "marten",
    "seq_id BIGSERIAL PRIMARY KEY, id UUID NOT NULL, stream_id UUID, version BIGINT NOT NULL, data "
    "JSONB NOT NULL, type VARCHAR(500) NOT NULL, timestamp TIMESTAMPTZ NOT NULL DEFAULT now(), "
    "tenant_id VARCHAR DEFAULT '*DEFAULT*', headers JSONB)",
    "(id, stream_id, version, data, type, timestamp, headers) VALUES (lpad('1', 32, '0')::uuid, "
    "lpad('7', 32, '0')::uuid, 1, '{\"who\": \"ö\", \"total\": 5}', 'Placed', '1970-01-02Z', "
    "'{\"by\": 1}'), (lpad('2', 32, '0')::uuid, lpad('7', 32, '0')::uuid, 2, '{}', 'Paid', now(), "
    "NULL), (lpad('3', 32, '0')::uuid, NULL, 1, '{}', 'Placed', now(), NULL)",
    {.table = "",
     .position = "seq_id",
     .stream = {"tenant_id", "stream_id"},
     .version = "version",
     .id = "id",
     .type = "type",
     .payload = "data",
     .metadata = "headers",
     .time = "timestamp"},
    "*DEFAULT*/00000000-0000-0000-0000-000000000007",
    1,
    R"({"by": 1})"};

const Layout kEmmett{
    "emmett",
    "stream_position BIGINT NOT NULL, global_position BIGSERIAL, created TIMESTAMPTZ NOT NULL "
    "DEFAULT now(), is_archived BOOLEAN NOT NULL DEFAULT FALSE, stream_id TEXT NOT NULL, partition "
    "TEXT NOT NULL DEFAULT 'emt:default', message_id TEXT NOT NULL, message_type TEXT NOT NULL, "
    "message_data JSONB NOT NULL, message_metadata JSONB NOT NULL, PRIMARY KEY (stream_id, "
    "stream_position, partition, is_archived)) PARTITION BY LIST (partition)",
    "(stream_id, stream_position, message_id, message_type, message_data, message_metadata, "
    "created) VALUES ('order-7', 1, "
    "lpad('1', 32, '0')::uuid, 'Placed', '{\"who\": \"ö\", \"total\": 5}', '{\"by\": 1}', "
    "'1970-01-02Z'), ('order-7', 2, lpad('2', 32, '0')::uuid, 'Paid', '{}', '{}', now()), "
    "('order-8', 1, lpad('3', 32, '0')::uuid, 'Placed', '{}', '{}', now()) ON CONFLICT DO NOTHING",
    {.table = "",
     .position = "global_position",
     .stream = {"stream_id"},
     .version = "stream_position",
     .id = "message_id",
     .type = "message_type",
     .payload = "message_data",
     .metadata = "message_metadata",
     .time = "created"},
    "order-7",
    1,
    R"({"by": 1})"};

const Layout kMessageDb{
    "message_db",
    "global_position BIGSERIAL NOT NULL PRIMARY KEY, position BIGINT NOT NULL, id UUID NOT NULL, "
    "time TIMESTAMP WITHOUT TIME ZONE DEFAULT (now() AT TIME ZONE 'utc') NOT NULL, stream_name "
    "TEXT NOT NULL, type TEXT NOT NULL, data JSONB, metadata JSONB)",
    "(position, id, time, stream_name, type, data, metadata) VALUES (0, lpad('1', 32, '0')::uuid, "
    "'1970-01-02', 'order-7', 'Placed', '{\"who\": \"ö\", \"total\": 5}', '{\"by\": 1}'), (1, "
    "lpad('2', 32, '0')::uuid, '2020-01-01', 'order-7', 'Paid', NULL, NULL), (0, lpad('3', 32, "
    "'0')::uuid, '2020-01-01', 'order-8', 'Placed', '{}', NULL)",
    {.table = "",
     .position = "global_position",
     .stream = {"stream_name"},
     .version = "position",
     .id = "id",
     .type = "type",
     .payload = "data",
     .metadata = "metadata",
     .time = "time"},
    "order-7",
    0,
    R"({"by": 1})"};

INSTANTIATE_TEST_SUITE_P(Libraries, PostgresLayout,
                         ::testing::Values(kPupsourcing, kMarten, kEmmett, kMessageDb),
                         [](const auto& layout) { return layout.param.name; });

TEST_F(PostgresTable, BinaryPayloadsAreHexAndMissingOnesNull) {
  Sql(*session_, "ALTER TABLE " + table_ + " ALTER payload DROP NOT NULL");
  Sql(*session_, "INSERT INTO " + table_ +
                     " (aggregate_type, aggregate_id, aggregate_version, event_type, payload,"
                     " created_at) VALUES ('o', gen_random_uuid(), 1, 'T', '\\x0aff', NULL),"
                     " ('o', gen_random_uuid(), 1, NULL, '\\x610062', now()),"
                     " ('o', gen_random_uuid(), 1, 'T', NULL, now())");
  const auto log = Open(Names());
  auto all = log->ReadAll(0, 10);
  ASSERT_TRUE(all) << all.error().ToString();
  ASSERT_EQ(all->events.size(), 3u);
  EXPECT_EQ(all->events[0].payload, "\\x0aff");
  EXPECT_EQ(all->events[0].time, WallTime());
  EXPECT_EQ(all->events[1].payload, "\\x610062");
  EXPECT_EQ(all->events[2].payload, "null");
}

TEST_F(PostgresTable, ViewsAndNonPositivePositionsAreRefused) {
  Sql(*session_, "CREATE VIEW " + table_ + "_view AS SELECT * FROM " + table_);
  EventTable names = Names();
  names.table += "_view";
  auto view = OpenEventLog(Server().Url(), {.table = names}, RealEnv());
  ASSERT_FALSE(view);
  EXPECT_NE(view.error().message.find("is not a table"), std::string::npos) << view.error().message;
  Sql(*session_, "ALTER SEQUENCE " + table_ + "_global_position_seq MINVALUE 0 RESTART 0");
  Insert(*session_, 1, 1);
  auto zero = OpenEventLog(Server().Url(), {.table = Names()}, RealEnv());
  ASSERT_FALSE(zero);
  EXPECT_NE(zero.error().message.find("at position 0"), std::string::npos) << zero.error().message;
}

TEST_F(PostgresTable, DuplicatePositionStopsReading) {
  for (int i = 1; i <= 3; ++i) Insert(*session_, i, 1);
  Sql(*session_, "ALTER TABLE " + table_ + " DROP CONSTRAINT " + table_ + "_pkey");
  Sql(*session_, "UPDATE " + table_ + " SET global_position = 2 WHERE global_position = 3");
  const auto log = Open(Names());
  auto page = log->ReadAll(0, 10);
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code, Code::kCorrupt);
  EXPECT_NE(page.error().message.find("at position 2"), std::string::npos) << page.error().message;
}

TEST_F(PostgresTable, LagWithoutTimesHasUnknownAge) {
  Insert(*session_, 1, 1);
  EventTable names = Names();
  names.time = "";
  const auto log = Open(names);
  auto page = log->ReadAll(0, 10);
  ASSERT_TRUE(page && page->events.size() == 1);
  const SlotPosition from{page->events[0].slot, 0};
  auto lag = log->Lag({&from, 1});
  ASSERT_TRUE(lag) << lag.error().ToString();
  EXPECT_EQ(lag->front().events, 1);
  EXPECT_FALSE(lag->front().oldest);
}

TEST_F(PostgresTable, WrongColumnIsRefusedByName) {
  EventTable names = Names();
  names.version = "revision";
  auto log = OpenEventLog(Server().Url(), {.table = names}, RealEnv());
  ASSERT_FALSE(log);
  EXPECT_NE(log.error().message.find("revision"), std::string::npos) << log.error().message;
}

TEST_F(PostgresTable, LateCommitIsAwaitedAndRollbackIsNot) {
  const auto log = Open(Names());
  Insert(*session_, 1, 1);
  const auto slow = Session();
  const auto doomed = Session();
  Sql(*slow, "BEGIN");
  Insert(*slow, 2, 1);
  Sql(*doomed, "BEGIN");
  Insert(*doomed, 3, 1);
  Insert(*session_, 1, 2);
  auto page = log->ReadAll(0, 100);
  ASSERT_TRUE(page);
  EXPECT_LT(page->read_to, 2) << "the position of an open transaction was passed";
  Sql(*slow, "COMMIT");
  Sql(*doomed, "ROLLBACK");
  page = log->ReadAll(0, 100);
  ASSERT_TRUE(page);
  EXPECT_EQ(page->events.size(), 3u);
  EXPECT_EQ(page->read_to, 4);
}

TEST_F(PostgresTable, OwnLogAwaitsLateCommitsButNotRollbacks) {
  const std::string space = "l" + table_;
  auto opened = OpenEventLog(Server().Url() + "?namespace=" + space, {}, RealEnv());
  ASSERT_TRUE(opened) << opened.error().ToString();
  EventLog& log = **opened;
  const auto append = [&](const std::string& stream) {
    const StreamAppend one{stream, kAnyVersion, {{"T"}}};
    ASSERT_TRUE(log.Append({&one, 1}));
  };
  // An append in slow motion, step by step.
  const auto begin_append = [&](sql::PgConnection& session, const std::string& stream) {
    Sql(session, "BEGIN");
    Sql(session, "SELECT pg_advisory_xact_lock_shared((('" + space +
                     ".events'::regclass::oid::bigint & 524287) << 44) + last_value) FROM " +
                     space + ".events_position");
    Sql(session, "INSERT INTO " + space +
                     ".events (position, stream, version, slot, id, type, payload, metadata)"
                     " SELECT nextval('" +
                     space + ".events_position'), '" + stream + "', 1, 0, '', 'T', '', ''");
  };
  append("first");
  const auto slow = Session();
  const auto doomed = Session();
  begin_append(*doomed, "doomed");
  begin_append(*slow, "slow");
  append("second");
  const auto streams = [&] {
    std::string names;
    auto page = log.ReadAll(0, 100);
    if (!page) return page.error().ToString();
    for (const Event& event : page->events) names += event.stream + " ";
    return names + std::to_string(page->read_to);
  };
  EXPECT_EQ(streams(), "first 1");
  Sql(*doomed, "ROLLBACK");
  EXPECT_EQ(streams(), "first 2");
  Sql(*slow, "COMMIT");
  EXPECT_EQ(streams(), "first slow second 4");
}

// A reader there would skip events whose transactions are still open on the primary.
TEST(PostgresStandby, IsRefusedUntilItIsPromoted) {
  const std::string reason = testing::PostgresServer::Unavailable();
  if (!reason.empty()) GTEST_SKIP() << "no PostgreSQL: " << reason;
  testing::PostgresServer server;
  auto log = OpenEventLog(server.Url(), {}, RealEnv());
  ASSERT_TRUE(log) << log.error().ToString();
  const StreamAppend append{"s", kAnyVersion, {{"T"}}};
  ASSERT_TRUE((*log)->Append({&append, 1}));
  const EventTable names{.table = "muster.events",
                         .position = "position",
                         .stream = {"stream"},
                         .version = "version",
                         .id = "id",
                         .type = "type",
                         .time = "time"};
  auto table = OpenEventLog(server.Url(), {.table = names}, RealEnv());
  ASSERT_TRUE(table) << table.error().ToString();
  const SlotPosition from{SlotOf("s", kDefaultSlots), 0};

  server.BecomeStandby();
  for (const auto& options : {EventLogOptions{}, EventLogOptions{.table = names}}) {
    auto refused = OpenEventLog(server.Url(), options, RealEnv());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kReadOnly);
    EXPECT_NE(refused.error().message.find("standby"), std::string::npos);
    EXPECT_NE(refused.error().hint.find("primary"), std::string::npos);
  }
  for (EventLog* opened : {log->get(), table->get()}) {
    EXPECT_EQ(opened->ReadAll(0, 10).error().code, Code::kReadOnly);
    EXPECT_EQ(opened->Read({&from, 1}, 10).error().code, Code::kReadOnly);
    EXPECT_EQ(opened->ReadStream("s", 0, 10).error().code, Code::kReadOnly);
    EXPECT_EQ(opened->Lag({&from, 1}).error().code, Code::kReadOnly);
  }
  EXPECT_EQ((*log)->Append({&append, 1}).error().code, Code::kReadOnly);

  server.Exec("SELECT pg_promote()");
  ASSERT_TRUE((*log)->Append({&append, 1}));
  for (EventLog* opened : {log->get(), table->get()}) {
    auto page = opened->ReadAll(0, 10);
    ASSERT_TRUE(page) << page.error().ToString();
    EXPECT_EQ(page->events.size(), 2u);
  }
}

}  // namespace
}  // namespace muster::events
