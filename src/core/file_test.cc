#include "core/file.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace muster
