#include "work/records.h"

#include <gtest/gtest.h>

namespace muster::work {
namespace {

TEST(WorkRecords, AnEndIsReadAsEveryVersionWroteIt) {
  EXPECT_EQ(EndBody().ToJson(), R"({"v":1})");
  EXPECT_EQ(EndBody{.confirmed = true}.ToJson(), R"({"v":1,"confirmed":true})");
  for (const char* announced : {"{}", R"({"v":1})"})
    EXPECT_FALSE(EndBody::FromJson(announced)->confirmed) << announced;
  for (const char* confirmed : {R"({"confirmed":true})", R"({"v":1,"confirmed":true})"})
    EXPECT_TRUE(EndBody::FromJson(confirmed)->confirmed) << confirmed;
}

TEST(WorkRecords, ARequestToSplitIsReadAsEveryVersionWroteIt) {
  EXPECT_EQ(SplitRequestBody{.by = "w"}.ToJson(), R"({"v":1,"by":"w"})");
  for (const char* body : {R"({"by":"w"})", R"({"v":1,"by":"w"})"})
    EXPECT_EQ(SplitRequestBody::FromJson(body)->by, "w") << body;
}

TEST(WorkRecords, NewerOnesAreRefused) {
  for (const char* body : {R"({"v":2})", R"({"v":2,"confirmed":true})"}) {
    const auto end = EndBody::FromJson(body);
    ASSERT_FALSE(end);
    EXPECT_TRUE(IsNewer(end.error()));
    EXPECT_NE(end.error().message.find("the end of a run was written by a newer version of muster: "
                                       "in format 2"),
              std::string::npos)
        << end.error().message;
  }
  const auto request = SplitRequestBody::FromJson(R"({"v":2,"by":"w"})");
  ASSERT_FALSE(request);
  EXPECT_TRUE(IsNewer(request.error()));
}

}  // namespace
}  // namespace muster::work
