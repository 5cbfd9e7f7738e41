#include <gtest/gtest.h>

#include "core/utf8.h"
#include "pipeline/flow/shards.h"

namespace muster::pipeline {
namespace {

TEST(WorkItemName, LooksLikeIndexShardAndFirstDocument) {
  EXPECT_EQ((WorkItemName{"orders", 3}).ToString(), "orders__3__0");
  EXPECT_EQ((WorkItemName{"orders", 3, "00042"}).ToString(), "orders__3__00042");
}

TEST(WorkItemName, EveryNameAndPositionRoundTrips) {
  const std::vector<std::string> texts = {"",
                                          "0",
                                          "a",
                                          "_",
                                          "__",
                                          "___",
                                          "____",
                                          "a__b",
                                          "a__1__2",
                                          "__0__",
                                          "_a_",
                                          "a_",
                                          "%",
                                          "%5F",
                                          "%30",
                                          "\xff\xfe",
                                          std::string(1, '\0'),
                                          "ä/ö\n",
                                          "1__",
                                          "00",
                                          "{\"k\":1}",
                                          "x__0__0"};
  for (const std::string& collection : texts) {
    for (const std::string& position : texts) {
      for (const int shard : {0, 7, 123456}) {
        const WorkItemName name{collection, shard, position};
        const std::string text = name.ToString();
        EXPECT_EQ(ValidUtf8Prefix(text), text.size());
        EXPECT_EQ(text.find_first_of(std::string("\0\n", 2)), std::string::npos);
        const auto again = WorkItemName::Parse(text);
        ASSERT_TRUE(again) << text;
        EXPECT_EQ(*again, name) << text;
      }
    }
  }
}

TEST(WorkItemName, DifferentItemsHaveDifferentNames) {
  EXPECT_NE((WorkItemName{"a", 0, ""}).ToString(), (WorkItemName{"a", 0, "0"}).ToString());
  EXPECT_NE((WorkItemName{"a__1", 0, ""}).ToString(), (WorkItemName{"a", 1, "0__0"}).ToString());
}

TEST(WorkItemName, OtherTextsAreRefused) {
  for (const char* text : {"", "orders", "orders__0", "orders__x__0", "orders__-1__0",
                           "orders__0__", "orders__99999999999__0", "orders__0__%", "%zz__0__0"}) {
    const auto name = WorkItemName::Parse(text);
    ASSERT_FALSE(name) << text;
    EXPECT_EQ(name.error().code, Code::kInvalid);
  }
}

}  // namespace
}  // namespace muster::pipeline
