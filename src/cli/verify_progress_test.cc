#include "cli/verify_progress.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "core/virtual_env.h"
#include "support/temporary_folder.h"

namespace muster::cli {
namespace {

TEST(VerifyProgress, IsThatOfTheSameSidesOnly) {
  const std::filesystem::path before = std::filesystem::current_path();
  const testing::TemporaryFolder here;
  const testing::TemporaryFolder there;
  const ComparedSides sides{.source = "sqlite:shop.db", .sink = "jsonl:out/", .target = "orders"};
  std::filesystem::current_path(here.path());
  const std::string absolute = std::filesystem::current_path();
  const std::string file = VerifyStateFile("/state", sides);
  EXPECT_TRUE(file.starts_with("/state/")) << file;
  ComparedSides named = sides;
  named.source = "sqlite:" + absolute + "/shop.db";
  EXPECT_EQ(VerifyStateFile("/state", named), file);
  named.checksums = true;
  EXPECT_NE(VerifyStateFile("/state", named), file);
  std::filesystem::current_path(there.path());
  EXPECT_NE(VerifyStateFile("/state", sides), file) << "the same command elsewhere";
  std::filesystem::current_path(before);
}

TEST(VerifyProgress, IsKeptUntilItIsRemoved) {
  const testing::TemporaryFolder folder;
  const std::string file = folder.path() + "/state.json";
  VirtualEnv env;
  std::ostringstream out;
  Progress progress(ProgressMode::kNone, out, env, "documents", 0, [] { return 80; });
  const auto kept = [&] { return KeptProgress(file, progress, 0, env).Load().value(); };
  EXPECT_EQ(kept(), "");
  KeptProgress first(file, progress, 0, env);
  env.Pass(std::chrono::seconds(1));
  ASSERT_TRUE(first.Save([] { return "half"; }));
  EXPECT_EQ(kept(), "half");
  ASSERT_TRUE(first.Save([] { return "too soon"; }));
  EXPECT_EQ(kept(), "half");
  ASSERT_TRUE(RemoveVerifyState(file));
  EXPECT_EQ(kept(), "");
  EXPECT_TRUE(RemoveVerifyState(file));
  EXPECT_TRUE(RemoveVerifyState(""));
}

}  // namespace
}  // namespace muster::cli
