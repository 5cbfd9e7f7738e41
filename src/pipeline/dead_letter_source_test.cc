#include "pipeline/dead_letter_source.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "muster/migrate.h"

namespace muster {
namespace {

class DeadLetterSourceTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove(path_); }
  void TearDown() override { std::filesystem::remove(path_); }

  const std::string path_ = ::testing::TempDir() + "letters-" + std::to_string(getpid()) + ".jsonl";
};

TEST_F(DeadLetterSourceTest, GivesBackWhatWasWrittenEachOnce) {
  auto letters = OpenDeadLetters(path_, "run").value();
  const Document good{.id = "7",
                      .routing = "r",
                      .body = R"({"a":1.0,"t":",\"document\":"})",
                      .position = "42",
                      .defect = {}};
  const Document broken{.id = "8", .routing = {}, .body = "{oops", .position = "50", .defect = {}};
  ASSERT_TRUE(letters->Add("orders", "orders__0__0", good, "no \"room\""));
  ASSERT_TRUE(letters->Add("orders", "orders__0__0", good, "again"));
  ASSERT_TRUE(letters->Add("logs", "logs__0__0", broken, "broken"));
  auto source = OpenDeadLetterSource(path_).value();
  ASSERT_EQ(source->Collections()->size(), 2u);
  auto orders = source->Read(source->Partitions("orders")->at(0), "", {}).value();
  auto first = orders->Next().value();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->id, "7");
  EXPECT_EQ(first->routing, "r");
  EXPECT_EQ(first->body, good.body);
  EXPECT_FALSE(orders->Next().value());
  auto logs = source->Read(source->Partitions("logs")->at(0), "", {}).value();
  EXPECT_FALSE(logs->Next().value()->defect.empty());
}

TEST_F(DeadLetterSourceTest, ADeletedDocumentComesBackAsDeleted) {
  auto letters = OpenDeadLetters(path_, "run").value();
  const Document gone{.id = "7",
                      .routing = {},
                      .body = "{}",
                      .position = "42",
                      .defect = {},
                      .deleted = true,
                      .version = 12};
  ASSERT_TRUE(letters->Add("orders", "orders__0__0", gone, "no"));
  auto source = OpenDeadLetterSource(path_).value();
  EXPECT_TRUE(source->HasDeletes());
  const auto reader = source->Read(source->Partitions("orders")->at(0), "", {}).value();
  const auto found = reader->Next().value();
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->deleted);
  EXPECT_EQ(found->version, 12);
}

TEST_F(DeadLetterSourceTest, LinesThatAreNoLettersAreSkippedAndNamed) {
  const Document document{
      .id = "1", .routing = {}, .body = R"({"a":1})", .position = "1", .defect = {}};
  {
    auto letters = OpenDeadLetters(path_, "run").value();
    ASSERT_TRUE(letters->Add("orders", "orders__0__0", document, "no"));
  }
  std::string letter;
  {
    std::ifstream file(path_);
    ASSERT_TRUE(std::getline(file, letter));
  }
  const std::string half = letter.substr(0, letter.size() - 4);
  {
    std::ofstream file(path_, std::ios::trunc);
    file << letter.substr(0, 20) << '\n';                    // torn in its head
    file << half << '\n';                                    // torn in its document
    file << half << letter << '\n';                          // torn, and written on
    file << R"({"run":"r","collection":"orders"})" << '\n';  // no document at all
    file << R"({"collection":"orders","version":[],"document":{}})" << '\n';
    file << R"({"collection":7,"document":{}})" << '\n';
    file << letter << '\n';
    file << half;
  }
  const auto source = OpenDeadLetterSource(path_).value();
  EXPECT_EQ(source->bad_lines().count, 7);
  EXPECT_EQ(source->bad_lines().first, (std::vector<size_t>{1, 2, 3, 4, 5, 6, 8}));
  EXPECT_EQ(source->bad_lines().ToString(),
            "7 lines are no dead letters and were skipped: 1, 2, 3, 4, 5, 6, 8");
  ASSERT_EQ(source->Collections()->size(), 1u);
  const auto reader = source->Read(source->Partitions("orders")->at(0), "", {}).value();
  const auto found = reader->Next().value();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->body, document.body);
  EXPECT_FALSE(reader->Next().value());
}

TEST_F(DeadLetterSourceTest, FileOfSomethingElseIsRefusedWithItsLine) {
  std::ofstream(path_) << "{\"id\":1}\n";
  const auto source = OpenDeadLetterSource(path_);
  ASSERT_FALSE(source);
  EXPECT_NE(source.error().message.find(path_ + ":1"), std::string::npos);
}

}  // namespace
}  // namespace muster
