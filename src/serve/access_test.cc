#include "serve/access.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "support/temporary_folder.h"

namespace muster::serve {
namespace {

TEST(Tokens, AreCreatedOnceForTheOwnerOnly) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.At("serve/tokens");
  const auto created = LoadTokens(path);
  ASSERT_TRUE(created) << created.error().ToString();
  EXPECT_TRUE(created->created);
  EXPECT_EQ(std::filesystem::status(path).permissions(), std::filesystem::perms(0600));
  const auto loaded = LoadTokens(path);
  ASSERT_TRUE(loaded) << loaded.error().ToString();
  EXPECT_FALSE(loaded->created);
  EXPECT_EQ(loaded->for_operator, created->for_operator);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path() + "/serve"), {}), 1);
}

TEST(Tokens, AreNotWrittenThroughALinkThatWasPrepared) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.At("tokens");
  const std::string other = folder.Write("other", "");
  std::filesystem::create_symlink(other, path + "." + std::to_string(getpid()));
  ASSERT_TRUE(LoadTokens(path));
  EXPECT_EQ(folder.Read("other"), "");
}

}  // namespace
}  // namespace muster::serve
