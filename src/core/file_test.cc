#include "core/file.h"

#include <gtest/gtest.h>

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

TEST(SafeFileName, AnyTextBecomesOneName) {
  EXPECT_EQ(SafeFileName("orders__0__0"), "orders__0__0");
  EXPECT_EQ(SafeFileName("../etc"), "%2E.%2Fetc");
  EXPECT_EQ(SafeFileName(""), "%");
  EXPECT_LE(SafeFileName(std::string(1000, '/')).size(), 255U);
  EXPECT_NE(SafeFileName(std::string(1000, 'a')), SafeFileName(std::string(1001, 'a')));
}

}  // namespace
}  // namespace muster
