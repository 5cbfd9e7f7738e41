#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/json.h"
#include "muster/migrate.h"
#include "support/small_disk.h"
#include "support/temporary_folder.h"

namespace muster::pipeline {
namespace {

class DeadLettersTest : public ::testing::Test {
 protected:
  std::string Path() const { return folder_.path() + "/dead.jsonl"; }

  static Status Add(DeadLetters& letters, const Document& document) {
    return letters.Add(
        {.collection = "c", .target = "c", .item = "i", .document = document, .reason = "why"});
  }

  std::vector<std::string> Lines() const {
    std::ifstream file(Path());
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  testing::TemporaryFolder folder_;
};

TEST_F(DeadLettersTest, NoLetterNoFile) {
  auto letters = OpenDeadLetters(Path(), "run");
  ASSERT_TRUE(letters);
  EXPECT_TRUE((*letters)->Flush());
  EXPECT_FALSE(std::filesystem::exists(Path()));
}

TEST_F(DeadLettersTest, ALetterContainsEverything) {
  auto letters = OpenDeadLetters(Path(), "nightly");
  const Document document{
      .id = "7", .routing = "eu", .body = "{\"price\":\n1.0}", .position = "0042", .defect = {}};
  ASSERT_TRUE((*letters)->Add({.collection = "orders",
                               .target = "sales",
                               .item = "orders__0__0",
                               .document = document,
                               .reason = "the sink says \"no\"",
                               .transformed = true,
                               .since_ms = 1000,
                               .follows = true}));
  ASSERT_TRUE((*letters)->Flush());
  ASSERT_EQ(Lines().size(), 1U);
  EXPECT_EQ(Lines()[0],
            R"({"v":1,"run":"nightly","collection":"orders","target":"sales","transformed":true,)"
            R"("item":"orders__0__0","id":"7","routing":"eu","position":"0042","since_ms":1000,)"
            R"("follows":true,"error":"the sink says \"no\"",)"
            R"("document":{"price": 1.0}})");
}

TEST_F(DeadLettersTest, TextThatIsNotJsonIsKeptAsBase64) {
  auto letters = OpenDeadLetters(Path(), "r");
  ASSERT_TRUE(Add(
      **letters,
      {.id = "\xff", .routing = {}, .body = "\xff\xfe", .position = "\xff", .defect = "broken"}));
  const auto letter = ParseJson(Lines().at(0), "letter");
  ASSERT_TRUE(letter) << letter.error().ToString();
  EXPECT_EQ((*letter)["document_base64"], "//4=");
  EXPECT_EQ((*letter)["position"], "%FF");
}

TEST_F(DeadLettersTest, AHalfLetterOfACrashSpoilsNoOther) {
  std::ofstream(Path()) << R"({"run":"r","coll)";
  auto letters = OpenDeadLetters(Path(), "r");
  ASSERT_TRUE(
      Add(**letters, {.id = "1", .routing = {}, .body = "{}", .position = "1", .defect = {}}));
  ASSERT_EQ(Lines().size(), 2U);
  EXPECT_TRUE(ParseJson(Lines()[1], "letter"));
}

TEST_F(DeadLettersTest, AFullDiskTearsNoLetter) {
  auto letters = OpenDeadLetters(Path(), "r");
  const std::string body = R"({"text":")" + std::string(300, 'x') + "\"}";
  const auto add = [&](std::string_view id) {
    return Add(**letters, {.id = id, .routing = {}, .body = body, .position = id, .defect = {}});
  };
  ASSERT_TRUE(add("1"));
  {
    const testing::SmallDisk disk(600);
    const Status refused = add("2");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kFull);
    EXPECT_EQ(refused.error().party, Party::kDeadLetters);
    EXPECT_NE(refused.error().message.find(Path()), std::string::npos);
  }
  ASSERT_TRUE(add("3"));
  ASSERT_TRUE((*letters)->Flush());
  ASSERT_EQ(Lines().size(), 2U);
  EXPECT_EQ(ParseJson(Lines()[0], "letter").value()["id"], "1");
  EXPECT_EQ(ParseJson(Lines()[1], "letter").value()["id"], "3");
}

TEST_F(DeadLettersTest, AreForTheirOwnerAlone) {
  auto letters = OpenDeadLetters(Path(), "r");
  ASSERT_TRUE(
      Add(**letters, {.id = "1", .routing = {}, .body = "{}", .position = {}, .defect = {}}));
  EXPECT_EQ(std::filesystem::status(Path()).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(DeadLettersTest, AFileThatCannotBeWrittenIsAnError) {
  auto letters = OpenDeadLetters(folder_.path() + "/no/such/folder", "r");
  ASSERT_TRUE(letters);
  const Status added = Add(**letters, {});
  ASSERT_FALSE(added);
  EXPECT_NE(added.error().message.find("/no/such/folder"), std::string::npos);
}

}  // namespace
}  // namespace muster::pipeline
