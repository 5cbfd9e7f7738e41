#include "core/file.h"

#include <gtest/gtest.h>

#include <filesystem>

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
  std::filesystem::create_directory(path + ".new");  // where it would be written
  EXPECT_FALSE(ReplaceFile(path, "after"));
  EXPECT_EQ(ReadFile(path, 10).value(), "before");
  std::filesystem::remove(path + ".new");
  EXPECT_TRUE(ReplaceFile(path, "after"));
  EXPECT_EQ(ReadFile(path, 10).value(), "after");
  EXPECT_FALSE(std::filesystem::exists(path + ".new"));
}

TEST(ReplaceFile, DevicesAreWrittenToDirectly) {
  EXPECT_TRUE(ReplaceFile("/dev/null", "gone"));
  EXPECT_EQ(ReplaceFile("/dev/full", "more").error().code, Code::kFull);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  EXPECT_EQ(ReplaceFile("/", "text").error().code, Code::kPermission);
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
