#include <gtest/gtest.h>

#include "muster/pipeline.h"

namespace muster::pipeline {
namespace {

TEST(Progress, SurvivesBeingWrittenWhateverThePositionsAre) {
  const std::string odd("a%\0\n\xff\xc3\xa4__\"\\", 12);
  const Progress progress{
      .position = odd,
      .end = "\xfe",
      .counts = {.read = 10, .written = 7, .skipped = 2, .failed = 1, .bytes = 99, .added = 3}};
  const std::string json = progress.ToString();
  EXPECT_EQ(json.find('\n'), std::string::npos);
  const auto again = Progress::Parse(json);
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(*again, progress);
}

TEST(Progress, PlainPositionsStayReadable) {
  EXPECT_EQ(
      (Progress{.position = "00042", .end = "ä"}).ToString(),
      R"({"position":"00042","end":"ä","read":0,"written":0,"skipped":0,"failed":0,"bytes":0})");
}

// Released versions read and write these bytes.
TEST(Progress, IsWrittenAsInReleases) {
  Progress progress{.position = "4", .end = "9", .counts = {.read = 5, .written = 2, .added = 1}};
  progress = progress.CutAt("8").CutAt("\xff");
  EXPECT_EQ(progress.ToString(),
            R"({"position":"4","end":"%FF","read":5,"written":2,"skipped":0,"failed":0,"bytes":0,)"
            R"("added":1,"former_ends":["9","8"]})");
  EXPECT_EQ(*Progress::Parse(progress.ToString()), progress);
}

TEST(Progress, InvalidProgressIsRejected) {
  for (const char* text :
       {"", "[]", "{}", R"({"position":1})", R"({"position":"%zz","end":"","read":0})",
        R"({"position":"","end":"","read":"many"})"}) {
    EXPECT_FALSE(Progress::Parse(text)) << text;
  }
}

TEST(Counts, AddUp) {
  Counts counts{.read = 1, .written = 1};
  counts += {.read = 3, .written = 2, .skipped = 1, .failed = 1, .bytes = 5, .added = 1};
  EXPECT_EQ(counts,
            (Counts{.read = 4, .written = 3, .skipped = 1, .failed = 1, .bytes = 5, .added = 1}));
}

}  // namespace
}  // namespace muster::pipeline
