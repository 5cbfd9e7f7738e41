#include "task/data/staging.h"

#include <gtest/gtest.h>

#include "core/json.h"
#include "support/temporary_folder.h"

namespace muster::task {
namespace {

class StagingTest : public ::testing::Test {
 protected:
  testing::TemporaryFolder folder_;
  const Staging staging_ = Staging::At(folder_.path()).value();
};

TEST_F(StagingTest, AManifestIsReadAsItWasWritten) {
  const Manifest manifest{.object = "Order",
                          .file = "Order.jsonl",
                          .format = "jsonl",
                          .rows = 7,
                          .failed = 1,
                          .bytes = 90,
                          .sha256 = "ab",
                          .source = "csv:x",
                          .tenant = "t",
                          .migration = "m",
                          .run = "r",
                          .token = "k",
                          .columns = {{"z", "VARCHAR"}, {"a", "BIGINT"}}};
  ASSERT_TRUE(staging_.Begin("Order"));
  ASSERT_TRUE(staging_.Publish(manifest));
  const auto found = staging_.FindAny("Order");
  ASSERT_TRUE(found) << found.error().ToString();
  EXPECT_EQ((*found)->rows, 7);
  EXPECT_EQ((*found)->run, "r");
  EXPECT_EQ((*found)->columns, manifest.columns);
  EXPECT_TRUE(folder_.Read("Order.manifest.json").starts_with("{\"v\":1,"));
}

TEST_F(StagingTest, AnOlderVersionsManifestIsRead) {
  folder_.Write("Order.manifest.json",
                R"({"object":"Order","file":"Order.jsonl","format":"jsonl","rows":7,"failed":0,)"
                R"("bytes":90,"sha256":"ab","source":"csv:x","tenant":"t","migration":"m",)"
                R"("token":"k","columns":{"id":"VARCHAR"}})");
  const auto found = staging_.FindAny("Order");
  ASSERT_TRUE(found) << found.error().ToString();
  EXPECT_EQ((*found)->rows, 7);
  EXPECT_EQ((*found)->run, "");
}

TEST_F(StagingTest, ANewerVersionsManifestIsRefusedAndADamagedOneNamed) {
  folder_.Write("Order.manifest.json", R"({"v":2,"object":"Order"})");
  const auto newer = staging_.FindAny("Order");
  ASSERT_FALSE(newer);
  EXPECT_NE(newer.error().message.find("Order.manifest.json was written by a newer version of "
                                       "muster: in format 2"),
            std::string::npos)
      << newer.error().message;
  for (const char* damaged : {R"({"object":"Order"})", "[]", R"({"columns":5})"}) {
    folder_.Write("Order.manifest.json", damaged);
    const auto found = staging_.FindAny("Order");
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().code, Code::kCorrupt);
    EXPECT_EQ(found.error().hint, "delete it; the object is then staged again");
  }
}

}  // namespace
}  // namespace muster::task
