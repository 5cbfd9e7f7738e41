#include "serve/audit_log.h"

#include <gtest/gtest.h>

#include <sstream>

#include "core/virtual_env.h"
#include "support/small_disk.h"
#include "support/temporary_folder.h"

namespace muster::serve {
namespace {

class AuditLogTest : public ::testing::Test {
 protected:
  std::vector<Json> Lines(const std::string& name = "audit") {
    std::vector<Json> lines;
    std::istringstream text(folder_.Read(name));
    for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
    return lines;
  }

  const testing::TemporaryFolder folder_;
  const std::string path_ = folder_.At("audit");
  VirtualEnv env_{WallTime{}};
};

TEST_F(AuditLogTest, FloodOfRefusalsIsCounted) {
  AuditLog log(path_, env_);
  for (int i = 0; i < 1'000; ++i) log.AddRefusal("unknown@1.2.3.4", "/x", "401");
  EXPECT_EQ(Lines().size(), 10u);
  // Other roles are still logged.
  log.AddRefusal("viewer@1.2.3.4", "/x", "a viewer may only look");
  ASSERT_EQ(Lines().size(), 12u);
  EXPECT_EQ(Lines()[10]["outcome"], "refused, left out");
  EXPECT_EQ(Lines()[10]["actor"], "unknown");
  EXPECT_EQ(Lines()[10]["count"], 990);
  EXPECT_EQ(Lines()[11]["actor"], "viewer@1.2.3.4");
  // In the next minute there is room again.
  env_.Sleep(std::chrono::minutes(1), {});
  log.AddRefusal("unknown@1.2.3.4", "/x", "401");
  EXPECT_EQ(Lines().size(), 13u);
}

TEST_F(AuditLogTest, DroppedRefusalsAreCountedAtTheEnd) {
  {
    AuditLog log(path_, env_);
    for (int i = 0; i < 12; ++i) log.AddRefusal("unknown@::1", "/x", "401");
  }
  ASSERT_EQ(Lines().size(), 11u);
  EXPECT_EQ(Lines()[10]["count"], 2);
}

TEST_F(AuditLogTest, LongFieldsAreTruncated) {
  AuditLog log(path_, env_);
  const std::string path = "/api/" + std::string(100'000, 'x');
  ASSERT_TRUE(log.Add("operator@::1", path, "asked", {{"body", {{"task", path}}}, {"n", 7}}));
  ASSERT_EQ(Lines().size(), 1u);
  EXPECT_EQ(Lines()[0]["action"], path.substr(0, 1'000) + "…");
  EXPECT_LT(Lines()[0]["body"].get<std::string>().size(), 1'010u);
  EXPECT_EQ(Lines()[0]["n"], 7);
}

TEST_F(AuditLogTest, TheFileIsRotatedBySize) {
  AuditLog log(path_, env_, {.file_bytes = 1'000, .kept_files = 2});
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(log.Add("operator@::1", "/x", "asked", {{"number", i}}));
    for (const char* name : {"audit", "audit.1", "audit.2"})
      EXPECT_LT(folder_.Read(name).size(), 1'200u);
  }
  EXPECT_FALSE(folder_.Has("audit.3"));
  std::vector<Json> all = Lines("audit.2");
  for (const char* name : {"audit.1", "audit"}) {
    for (const Json& line : Lines(name)) all.push_back(line);
  }
  EXPECT_GT(all.size(), 15u);
  EXPECT_EQ(all.back()["number"], 99);
  for (size_t i = 1; i < all.size(); ++i)
    EXPECT_EQ(all[i]["number"].get<int>(), all[i - 1]["number"].get<int>() + 1);
}

TEST_F(AuditLogTest, FullDiskLosesNothingAndBlocksNoAction) {
  AuditLog log(path_, env_);
  {
    const testing::SmallDisk disk(0);
    for (int i = 0; i < 3; ++i)
      EXPECT_TRUE(log.Add("operator@::1", "/x", "asked", {{"number", i}}));
  }
  EXPECT_TRUE(Lines().empty());
  EXPECT_TRUE(log.Add("operator@::1", "/x", "asked", {{"number", 3}}));
  ASSERT_EQ(Lines().size(), 4u);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(Lines()[static_cast<size_t>(i)]["number"], i);
}

TEST_F(AuditLogTest, LineThatDoesNotFitLeavesNothing) {
  AuditLog log(path_, env_);
  ASSERT_TRUE(log.Add("operator@::1", "/x", "asked", {{"number", 0}}));
  {
    const testing::SmallDisk disk(folder_.Read("audit").size() + 20);
    EXPECT_TRUE(log.Add("operator@::1", "/x", "asked", {{"number", 1}}));
  }
  EXPECT_EQ(Lines().size(), 1u);
  EXPECT_TRUE(log.Add("operator@::1", "/x", "asked", {{"number", 2}}));
  ASSERT_EQ(Lines().size(), 3u);
  EXPECT_EQ(Lines()[1]["number"], 1);
}

// Left by a crash, or by an editor.
TEST_F(AuditLogTest, TornLineIsNotContinued) {
  folder_.Write("audit", R"({"at":)");
  AuditLog log(path_, env_);
  ASSERT_TRUE(log.Add("operator@::1", "/x", "asked", {{"number", 1}}));
  const std::string text = folder_.Read("audit");
  EXPECT_EQ(Json::parse(text.substr(text.find('\n') + 1))["number"], 1) << text;
}

TEST_F(AuditLogTest, UnwritableFileIsAnError) {
  AuditLog log(folder_.path(), env_);
  const Status added = log.Add("operator@::1", "/x", "asked", Json::object());
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, Code::kUnavailable);
}

TEST_F(AuditLogTest, ALineHasTheVersionOfItsFormat) {
  AuditLog log(path_, env_);
  ASSERT_TRUE(log.Add("operator@::1", "/x", "asked", Json::object()));
  EXPECT_EQ(Lines()[0]["v"], 1);
}

}  // namespace
}  // namespace muster::serve
