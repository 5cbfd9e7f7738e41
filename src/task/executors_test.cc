#include "muster/executors.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "support/await.h"
#include "support/temporary_folder.h"
#include "task/call/status_executor.h"
#include "task/test_context.h"

namespace muster::task {
namespace {

const states::TaskCall kStatus{
    .resource = "muster:status",
    .input = Json{{"tenant_id", "acme"}, {"migration_id", "m-1"}, {"status", "IN_PROGRESS"}},
    .credentials = nullptr,
    .token = "t",
    .execution = "e",
    .state = "Begin"};

TEST(Executors, TheStandardOnesRunEveryResourceThatIsDocumented) {
  const auto store = *store::OpenStore("memory:", RealEnv());
  const auto standard = NewExecutors(*store, RealEnv());
  for (const char* resource :
       {"muster:copy", "muster:transform", "muster:reconcile", "muster:status", "muster:notify",
        "muster:exec", "muster:sql", "muster:http", "arn:aws:states:::http:invoke",
        "arn:aws:states:::sns:publish", "arn:aws:states:::glue:startJobRun.sync"}) {
    EXPECT_TRUE(standard->Runs(resource)) << resource;
  }
  EXPECT_FALSE(standard->Runs("muster:nothing"));
}

TEST(Executors, TheStoreOfTheCallerIsUsed) {
  const auto store = *store::OpenStore("memory:", RealEnv());
  const auto standard = NewExecutors(*store, RealEnv());
  TestContext context;
  const auto outcome = standard->Start(kStatus, context);
  EXPECT_TRUE(std::holds_alternative<states::TaskSuccess>(outcome));
  const auto status = FindMigrationStatus(*store, "acme", "m-1");
  ASSERT_TRUE(status && *status);
  EXPECT_EQ((**status)["status"], "IN_PROGRESS");
}

TEST(Executors, AStoreOfAUrlIsOpenedWhenItIsNeeded) {
  const testing::TemporaryFolder folder;
  const std::string file = folder.path() + "/store.db";
  const auto standard = NewExecutors("sqlite:" + file, RealEnv());
  EXPECT_FALSE(std::filesystem::exists(file));
  TestContext context;
  standard->Start(kStatus, context);
  EXPECT_TRUE(std::filesystem::exists(file));
}

TEST(Executors, AStoreThatCannotBeOpenedIsTriedAgain) {
  const testing::TemporaryFolder folder;
  const auto standard = NewExecutors("sqlite:" + folder.path() + "/later/store.db", RealEnv());
  TestContext context;
  EXPECT_TRUE(std::holds_alternative<states::TaskFailure>(standard->Start(kStatus, context)));
  std::filesystem::create_directory(folder.path() + "/later");
  EXPECT_TRUE(std::holds_alternative<states::TaskSuccess>(standard->Start(kStatus, context)));
}

TEST(Executors, NotificationsAreDeliveredWhileTheirRunIsDriven) {
  const testing::TemporaryFolder folder;
  const auto store = *store::OpenStore("memory:", RealEnv());
  const auto standard = NewExecutors(*store, RealEnv());
  TestContext context;
  for (const char* migration : {"m-1", "m-2"}) {
    ASSERT_TRUE(standard->BeginRun(migration));
    const std::string target = "file:" + folder.path() + "/" + migration;
    const auto outcome = standard->Start({.resource = "muster:notify",
                                          .input = Json{{"targets", {target}},
                                                        {"subject", "it failed"},
                                                        {"message", "why"},
                                                        {"dedupe", "once"},
                                                        {"migration", migration}},
                                          .credentials = nullptr,
                                          .token = "t",
                                          .execution = "e",
                                          .state = "Tell"},
                                         context);
    ASSERT_TRUE(std::holds_alternative<states::TaskSuccess>(outcome));
    ASSERT_TRUE(standard->EndRun(migration));
    const auto sent = ReadNotifications(*store, migration, RealEnv());
    ASSERT_TRUE(sent && sent->size() == 1U);
    EXPECT_EQ(sent->front().target, target);
    EXPECT_EQ(sent->front().subject, "it failed");
    EXPECT_EQ(sent->front().dedupe, "once");
    EXPECT_TRUE(sent->front().delivered) << sent->front().error;
  }
  EXPECT_TRUE(ReadNotifications(*store, "m-3", RealEnv())->empty());
}

TEST(Executors, NextDriveDeliversLeftoverNotifications) {
  const testing::TemporaryFolder folder;
  const auto store = *store::OpenStore("memory:", RealEnv());
  const auto standard = NewExecutors(*store, RealEnv());
  const std::string target = folder.path() + "/later/news.jsonl";
  TestContext context;
  ASSERT_TRUE(standard->BeginRun("m-1"));
  standard->Start({.resource = "muster:notify",
                   .input = Json{{"targets", {"file:" + target}},
                                 {"subject", "it failed"},
                                 {"message", "why"},
                                 {"migration", "m-1"}},
                   .credentials = nullptr,
                   .token = "t",
                   .execution = "e",
                   .state = "Tell"},
                  context);
  ASSERT_TRUE(standard->EndRun("m-1"));
  EXPECT_FALSE(ReadNotifications(*store, "m-1", RealEnv())->front().delivered);
  EXPECT_FALSE(ReadNotifications(*store, "m-1", RealEnv())->front().error.empty());
  std::filesystem::create_directory(folder.path() + "/later");
  ASSERT_TRUE(standard->BeginRun("m-1"));
  EXPECT_TRUE(testing::Await(
      [&] { return ReadNotifications(*store, "m-1", RealEnv())->front().delivered; }));
  ASSERT_TRUE(standard->EndRun("m-1"));
}

}  // namespace
}  // namespace muster::task
