#include "replica/replica_file.h"

#include <gtest/gtest.h>

namespace muster::replica {
namespace {

constexpr std::string_view kGood = R"(
set: orders
events: {url: "postgresql://db/app", table: public.events, columns: {stream: [kind, id]}}
read_model: sqlite:read.db
strategy: incremental
batch: 50
heartbeat: 1s
heartbeat_timeout: 4500ms
projections:
  totals:
    tables: [totals]
    setup: CREATE TABLE IF NOT EXISTS {totals} (id TEXT)
    on:
      Placed:
        - INSERT INTO {totals} VALUES (:stream)
  mails:
    exec: [python3, mails.py]
    timeout: 5s
)";

TEST(ReplicaFile, DescribesAWholeSet) {
  auto file = ParseReplicaFile(kGood, "set.yaml", RealEnv());
  ASSERT_TRUE(file) << file.error().ToString();
  EXPECT_EQ(file->options.set, "orders");
  EXPECT_EQ(file->options.strategy, Strategy::kIncremental);
  EXPECT_EQ(file->options.batch, 50);
  EXPECT_EQ(file->options.heartbeat_timeout, milliseconds(4'500));
  EXPECT_EQ(file->events, "postgresql://db/app");
  ASSERT_TRUE(file->event_options.table);
  EXPECT_EQ(file->event_options.table->table, "public.events");
  EXPECT_EQ(file->event_options.table->stream, (std::vector<std::string>{"kind", "id"}));
  EXPECT_EQ(file->projections.size(), 2u);
  EXPECT_TRUE(file->Find("mails"));
  EXPECT_FALSE(file->Find("other"));
}

TEST(ReplicaFile, ATableOfAnotherLibraryMayLackMetadataAndTime) {
  std::string text(kGood);
  const std::string_view columns = "stream: [kind, id]";
  text.replace(text.find(columns), columns.size(), "metadata: \"\", time: ''");
  auto file = ParseReplicaFile(text, "set.yaml", RealEnv());
  ASSERT_TRUE(file) << file.error().ToString();
  EXPECT_EQ(file->event_options.table->metadata, "");
  EXPECT_EQ(file->event_options.table->time, "");
  EXPECT_EQ(file->event_options.table->payload, "payload");
}

// Each replaces one line of the valid file.
TEST(ReplicaFile, ReportsThePositionOfEveryMistake) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"set: orders", "set: or/ders"},
      {"set: orders", "sett: orders"},
      {"strategy: incremental", "strategy: rolling"},
      {"batch: 50", "batch: 0"},
      {"batch: 50", "batch: many"},
      {"heartbeat: 1s", "heartbeat: 1 second"},
      {"heartbeat: 1s", "heartbeat: 5s"},
      {"heartbeat: 1s", "handle_timeout: 0s"},
      {"    timeout: 5s", "    timeout: 0s"},
      {"    tables: [totals]", "    tables: [totals, totals]"},
      {"  mails:", "  other:\n    tables: [totals]\n    on: {Paid: SELECT 1}\n  mails:"},
      {"    exec: [python3, mails.py]", "    exec: []"},
      {"    exec: [python3, mails.py]", "    command: [python3, mails.py]"},
      {"        - INSERT INTO {totals} VALUES (:stream)", "        - INSERT :nonsense"},
      {"        - INSERT INTO {totals} VALUES (:stream)",
       "        - INSERT INTO {other} VALUES (1)"},
      {"    setup: CREATE TABLE IF NOT EXISTS {totals} (id TEXT)", "    setup: SELECT :stream"},
      {"read_model: sqlite:read.db", ""},
      {"  mails:", "  'my mails':"},
      {"projections:", "projection:"},
      {"projections:", "projections: ["},
  };
  for (const auto& [good, bad] : cases) {
    std::string text(kGood);
    const size_t at = text.find(good);
    ASSERT_NE(at, std::string::npos) << good;
    text.replace(at, good.size(), bad);
    auto file = ParseReplicaFile(text, "set.yaml", RealEnv());
    ASSERT_FALSE(file) << bad;
    EXPECT_EQ(file.error().code, Code::kInvalid);
    EXPECT_TRUE(file.error().message.starts_with("set.yaml:")) << file.error().message;
  }
}

}  // namespace
}  // namespace muster::replica
