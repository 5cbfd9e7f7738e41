#include "core/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <thread>
#include <vector>

#include "core/file_output.h"
#include "support/temporary_folder.h"

namespace muster {
namespace {

TEST(ReadFile, ReadsUpToTheLimit) {
  const testing::TemporaryFolder folder;
  std::string content(200'000, 'x');
  content[70'000] = '\0';
  const std::string path = folder.Write("file", content);
  EXPECT_EQ(ReadFile(path, content.size()).value(), content);
  auto too_large = ReadFile(path, content.size() - 1);
  ASSERT_FALSE(too_large);
  EXPECT_NE(too_large.error().message.find(path), std::string::npos);
}

TEST(ReadFile, ErrorsHavePathAndReason) {
  auto missing = ReadFile("/nonexistent/muster", 10);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kInvalid);
  EXPECT_EQ(missing.error().message, "cannot read /nonexistent/muster: No such file or directory");
  EXPECT_EQ(ReadFile("/", 10).error().message, "cannot read /: Is a directory");
}

TEST(ReplaceFile, FailureLeavesTheFileAsItWas) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.Write("file", "before");
  std::filesystem::create_directory(path + ".muster-new");  // where it would be written
  EXPECT_FALSE(ReplaceFile(path, "after"));
  EXPECT_EQ(ReadFile(path, 10).value(), "before");
  std::filesystem::remove(path + ".muster-new");
  EXPECT_TRUE(ReplaceFile(path, "after"));
  EXPECT_EQ(ReadFile(path, 10).value(), "after");
  EXPECT_FALSE(std::filesystem::exists(path + ".muster-new"));
}

TEST(ReplaceFile, DevicesAreWrittenToDirectly) {
  EXPECT_TRUE(ReplaceFile("/dev/null", "gone"));
  EXPECT_EQ(ReplaceFile("/dev/full", "more").error().code, Code::kFull);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  EXPECT_EQ(ReplaceFile("/", "text").error().code, Code::kPermission);
}

TEST(ReplaceFile, OpenFilesAreWrittenToDirectly) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.Write("out", "before ");
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  EXPECT_TRUE(ReplaceFile("/dev/fd/" + std::to_string(fd), "after"));
  close(fd);
  EXPECT_EQ(ReadFile(path, 20).value(), "before after");
  EXPECT_FALSE(folder.Has("out.muster-new"));
}

TEST(ReplaceFile, ALinkStaysAndItsTargetIsReplaced) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.Write("far/file", "before");
  std::filesystem::create_symlink("far/file", folder.path() + "/near");
  std::filesystem::create_symlink(folder.path() + "/near", folder.path() + "/link");
  ASSERT_TRUE(ReplaceFile(folder.path() + "/link", "after"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path() + "/link"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder.path() + "/near"));
  EXPECT_FALSE(std::filesystem::is_symlink(path));
  EXPECT_EQ(ReadFile(path, 10).value(), "after");
  std::filesystem::remove(path);
  ASSERT_TRUE(ReplaceFile(folder.path() + "/link", "new"));
  EXPECT_EQ(ReadFile(path, 10).value(), "new");
  std::filesystem::create_symlink("loop", folder.path() + "/loop");
  EXPECT_FALSE(ReplaceFile(folder.path() + "/loop", "text"));
}

TEST(ReplaceFile, WhatIsLeftOfACrashIsNeitherWrittenToNorFollowed) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.Write("file", "before");
  const std::string other = folder.Write("other", "another's");
  std::filesystem::create_symlink(other, path + ".muster-new");
  ASSERT_TRUE(ReplaceFile(path, "after"));
  EXPECT_EQ(ReadFile(other, 10).value(), "another's");
  EXPECT_EQ(ReadFile(path, 10).value(), "after");
  folder.Write("file.muster-new", "half of a longer text");
  ASSERT_TRUE(ReplaceFile(path, "again"));
  EXPECT_EQ(ReadFile(path, 10).value(), "again");
}

TEST(ReplaceFile, KeepsTheModeUnlessTheOwnerAloneMayReadIt) {
  using std::filesystem::perms;
  const testing::TemporaryFolder folder;
  const std::string path = folder.Write("file", "before");
  const auto mode = [&] { return std::filesystem::status(path).permissions(); };
  std::filesystem::permissions(path, perms(0660));
  ASSERT_TRUE(ReplaceFile(path, "after"));
  EXPECT_EQ(mode(), perms(0660));
  ASSERT_TRUE(ReplaceFile(path, "secret", FileAccess::kOwner));
  EXPECT_EQ(mode(), perms(0600));
}

TEST(ReplaceFile, ThreadsThatReplaceOneFileLeaveOneWholeContent) {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/file";
  {
    std::vector<std::jthread> threads;
    for (const char text : {'a', 'b', 'c'}) {
      threads.emplace_back([&path, content = std::string(50'000, text)] {
        // One of them may lose every race, and then it says so.
        const Status replaced = ReplaceFile(path, content);
        EXPECT_TRUE(replaced || replaced.error().code == Code::kConflict);
      });
    }
  }
  const std::string content = ReadFile(path, 100'000).value();
  EXPECT_EQ(content, std::string(50'000, content[0]));
  EXPECT_FALSE(folder.Has("file.muster-new"));
}

TEST(SafeFileName, AnyTextBecomesOneName) {
  EXPECT_EQ(SafeFileName("orders__0__0"), "orders__0__0");
  EXPECT_EQ(SafeFileName("../etc"), "%2E.%2Fetc");
  EXPECT_EQ(SafeFileName(""), "%");
  EXPECT_LE(SafeFileName(std::string(1000, '/')).size(), 255U);
  EXPECT_NE(SafeFileName(std::string(1000, 'a')), SafeFileName(std::string(1001, 'a')));
}

}  // namespace
}  // namespace muster
