// What an earlier release wrote is read, upgraded and continued.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "core/log.h"
#include "muster/replica.h"
#include "replica/operations.h"
#include "replica/sql_projection.h"
#include "sql/sqlite.h"
#include "support/await.h"
#include "support/temporary_folder.h"

namespace muster::replica {
namespace {

using namespace std::chrono_literals;

const bool kQuiet = (SetLogging(Level::kOff, LogFormat::kText), true);

template <class T>
T Must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().ToString());
  return *std::move(result);
}

class Upgrade : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ostringstream sql;
    sql << std::ifstream(MUSTER_REPLICA_DATA "/set_0_2.sql").rdbuf();
    auto db = Must(sql::SqliteDb::Open(path(), sql::SqliteDb::Mode::kCreate, 1s));
    const Status restored = db->Execute(sql.str());
    ASSERT_TRUE(restored) << restored.error().ToString();
  }

  std::string path() const { return folder_.At("set.db"); }
  std::string url() const { return "sqlite:" + path(); }

  testing::TemporaryFolder folder_;
};

TEST_F(Upgrade, SetOfRelease02ContinuesWhereItStopped) {
  const auto store = Must(store::OpenStore(url(), RealEnv()));
  const auto log = Must(events::OpenEventLog(url(), {}, RealEnv()));
  const auto model = Must(OpenReadModel(url(), RealEnv()));
  const Instance instance{"set", "seen", 1};
  const SetView before = Must(ReadSet(*store, "set"));
  EXPECT_EQ(before.generation.number, 1);
  EXPECT_EQ(before.scale, 3);
  ASSERT_EQ(Must(model->Slots(instance)).size(), 4U);
  EXPECT_EQ(Must(model->Slots(instance))[1].position, 12);
  EXPECT_EQ(Must(model->Slots(instance))[1].mark, events::EventMark{});

  std::vector<events::StreamAppend> appends;
  for (int i = 0; i < 10; ++i) {
    appends.push_back({"s" + std::to_string(i % 5), events::kAnyVersion, {{"T"}}});
  }
  Must(log->Append(appends));
  const auto projection = Must(NewSqlProjection(
      {.name = "seen",
       .tables = {"seen"},
       .setup = {"CREATE TABLE IF NOT EXISTS {seen} (stream TEXT, version INTEGER, PRIMARY KEY "
                 "(stream, version))"},
       .on = {{"T", {"INSERT INTO {seen} VALUES (:stream, :version)"}},
              {"Bad", {"INSERT INTO {seen} VALUES (NULL, (SELECT abs(-9223372036854775808)))"}}}},
      SqlDialect::kSqlite));
  ReplicaOptions options;
  options.set = "set";
  options.worker = "new";
  ReplicaObserver observer;
  const auto worker =
      Must(NewOrchestrator(*store, *log, url(), {projection}, options, observer, RealEnv()));
  Status ended;
  std::jthread thread([&](std::stop_token stop) { ended = worker->Run(std::move(stop)); });
  const auto handled = [&] {
    return Must(StatusOf(*store, *log, *model, "set", {"seen"})).instances.front().handled;
  };
  // Eleven before, one is parked; of the ten since, two are of its stream.
  static_cast<void>(testing::Await([&] { return handled() >= 19; }));
  thread.request_stop();
  thread.join();
  EXPECT_TRUE(ended) << ended.error().ToString();

  EXPECT_EQ(handled(), 19);
  const AuditResult audit = Must(Audit(*log, *model, instance));
  EXPECT_TRUE(audit.wrong_slots.empty());
  EXPECT_EQ(audit.parked, 3);
  for (const SlotState& slot : Must(model->Slots(instance))) {
    EXPECT_EQ(slot.mark.position, 22) << "slot " << slot.slot;
  }
  const SetView after = Must(ReadSet(*store, "set"));
  EXPECT_EQ(after.generation.number, 2);
  EXPECT_NE(after.set_record.body.find("\"v\":1"), std::string::npos) << after.set_record.body;
}

}  // namespace
}  // namespace muster::replica
