#include "task/call/status_executor.h"

#include <gtest/gtest.h>

#include "support/temporary_folder.h"
#include "task/test_context.h"

namespace muster::task {
namespace {

class StatusExecutorTest : public ::testing::Test {
 protected:
  states::TaskOutcome Start(Json input) {
    input["tenant_id"] = "acme";
    input["migration_id"] = "m/1";
    return executor_->Start({.resource = "muster:status",
                             .input = std::move(input),
                             .credentials = nullptr,
                             .token = "t",
                             .execution = "run",
                             .state = "Status"},
                            context_);
  }
  Json Run(const Json& input) {
    const auto outcome = Start(input);
    if (const auto* failure = std::get_if<states::TaskFailure>(&outcome)) return failure->cause;
    return std::get<states::TaskSuccess>(outcome).output;
  }

  testing::TemporaryFolder folder_;
  const std::string url_ = "sqlite:" + folder_.path() + "/store.db";
  std::unique_ptr<states::TaskExecutor> executor_ = MakeStatusExecutor(RealEnv(), url_);
  TestContext context_;
};

TEST_F(StatusExecutorTest, KeepsEarlierFieldsFromStartToEnd) {
  Run({{"status", "IN_PROGRESS"}, {"started_at", "10:00"}});
  const Json done = Run({{"status", "COMPLETED"}, {"completed_at", "11:00"}});
  EXPECT_EQ(done, (Json{{"tenant_id", "acme"},
                        {"migration_id", "m/1"},
                        {"status", "COMPLETED"},
                        {"started_at", "10:00"},
                        {"completed_at", "11:00"}}));
  const auto store = store::OpenStore(url_, RealEnv());
  EXPECT_EQ(*FindMigrationStatus(**store, "acme", "m/1"), done);
  EXPECT_EQ(*FindMigrationStatus(**store, "acme", "m/2"), std::nullopt);
}

TEST_F(StatusExecutorTest, ResumedMigrationKeepsItsStart) {
  Run({{"status", "IN_PROGRESS"}, {"started_at", "10:00"}});
  Run({{"status", "FAILED"}});
  EXPECT_EQ(Run({{"status", "IN_PROGRESS"}, {"started_at", "12:00"}})["started_at"], "10:00");
}

TEST_F(StatusExecutorTest, ARepetitionChangesNothing) {
  const Json once = Run({{"status", "FAILED"}});
  const auto store = store::OpenStore(url_, RealEnv());
  const int64_t version = (*(*store)->Get("migration_status", "acme/m%2F1"))->version;
  EXPECT_EQ(Run({{"status", "FAILED"}}), once);
  EXPECT_EQ((*(*store)->Get("migration_status", "acme/m%2F1"))->version, version);
}

TEST_F(StatusExecutorTest, MigrationInProgressHasNoCompletionTime) {
  Run({{"status", "COMPLETED"}, {"completed_at", "11:00"}});
  EXPECT_FALSE(Run({{"status", "IN_PROGRESS"}}).contains("completed_at"));
}

TEST_F(StatusExecutorTest, OtherStatusesAreRefused) {
  EXPECT_EQ(Run({{"status", "DONE"}}),
            "muster:status: status must be IN_PROGRESS, COMPLETED, FAILED or CANCELLED");
}

TEST_F(StatusExecutorTest, OlderVersionsStatusIsUpdatedAndANewerOnesRefused) {
  const auto store = store::OpenStore(url_, RealEnv());
  const auto put = [&](const std::string& body) {
    auto record = (*store)
                      ->Get("migration_status", "acme/m%2F1")
                      .value()
                      .value_or(store::Record{
                          .kind = "migration_status", .queue = "status", .key = "acme/m%2F1"});
    record.body = body;
    ASSERT_TRUE((*store)->Write({{store::Change::Put(record, store::Due::Never())}}));
  };
  put(R"({"tenant_id":"acme","migration_id":"m/1","status":"FAILED","started_at":"10:00"})");
  EXPECT_EQ(Run({{"status", "IN_PROGRESS"}, {"started_at", "12:00"}})["started_at"], "10:00");
  EXPECT_NE((*store)->Get("migration_status", "acme/m%2F1").value()->body.find("\"v\":1"),
            std::string::npos);
  put(R"({"v":2,"status":"PAUSED"})");
  const auto outcome = Start({{"status", "COMPLETED"}});
  const auto* failure = std::get_if<states::TaskFailure>(&outcome);
  ASSERT_NE(failure, nullptr);
  EXPECT_EQ(failure->error, "Status.Invalid");
  EXPECT_NE(failure->cause.find("'acme/m%2F1' was written by a newer version of muster: in format "
                                "2, and this one reads up to format 1"),
            std::string::npos)
      << failure->cause;
}

}  // namespace
}  // namespace muster::task
