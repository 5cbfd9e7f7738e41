#include "pipeline/flow/dead_letter_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "muster/migrate.h"

namespace muster::pipeline {
namespace {

class DeadLetterSourceTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove(path_); }
  void TearDown() override { std::filesystem::remove(path_); }

  struct Way {
    std::string target = "sales";
    bool transformed = true;
    std::string run = "run";
    std::string collection = "orders";
  };

  void Add(const Document& document) { Add(document, {}); }
  void Add(const Document& document, const Way& way) {
    auto letters = OpenDeadLetters(path_, way.run).value();
    ASSERT_TRUE(letters->Add({.collection = way.collection,
                              .target = way.target,
                              .item = way.collection + "__0__0",
                              .document = document,
                              .reason = "no \"room\"",
                              .transformed = way.transformed}));
  }

  static Document Of(std::string_view id, std::string_view body = "{}") {
    return {.id = id, .routing = {}, .body = body, .position = id, .defect = {}};
  }

  // The ids of a group's letters in one collection.
  static std::vector<std::string> Ids(const DeadLetterLog& log, const LetterGroup& group) {
    const auto source = log.Read(log.letters().at(group));
    const auto reader = source->Read(source->Partitions("orders")->at(0), "", {}).value();
    std::vector<std::string> ids;
    while (const auto document = reader->Next().value()) ids.emplace_back(document->id);
    return ids;
  }

  const std::string path_ = ::testing::TempDir() + "letters-" + std::to_string(getpid()) + ".jsonl";
  const LetterGroup group_{.run = "run", .target = "sales", .transformed = true};
};

TEST_F(DeadLetterSourceTest, DocumentsMadeOfOneAreLettersOfTheirOwn) {
  Document document = Of("7");
  for (const int64_t part : {0, 1, 2, 2}) {
    document.part = part;
    Add(document);
  }
  const auto log = DeadLetterLog::Open(path_).value();
  const auto source = log.Read(log.letters().at(group_));
  const auto reader = source->Read(source->Partitions("orders")->at(0), "", {}).value();
  std::vector<int64_t> parts;
  while (const auto read = reader->Next().value()) parts.push_back(read->part);
  EXPECT_EQ(parts, (std::vector<int64_t>{0, 1, 2}));
}

TEST_F(DeadLetterSourceTest, GivesBackWhatWasWrittenEachOnce) {
  const Document good{.id = "7",
                      .routing = "r",
                      .body = R"({"a":1.0,"t":",\"document\":"})",
                      .position = "42",
                      .defect = {}};
  const Document broken{.id = "8", .routing = {}, .body = "{oops", .position = "50", .defect = {}};
  Add(good);
  Add(good);
  Add(broken, {.collection = "logs"});
  const auto log = DeadLetterLog::Open(path_).value();
  ASSERT_EQ(log.letters().size(), 1u);
  const auto source = log.Read(log.letters().at(group_));
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

TEST_F(DeadLetterSourceTest, ADocumentComesBackWithAllThatIsBesideItsBody) {
  Document gone = Of("7");
  gone.deleted = true;
  gone.version = 12;
  gone.null_is_json = true;
  Add(gone);
  const auto log = DeadLetterLog::Open(path_).value();
  const auto source = log.Read(log.letters().at(group_));
  EXPECT_TRUE(source->HasDeletes());
  const auto reader = source->Read(source->Partitions("orders")->at(0), "", {}).value();
  const auto found = reader->Next().value();
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->deleted);
  EXPECT_EQ(found->version, 12);
  EXPECT_TRUE(found->null_is_json);
}

TEST_F(DeadLetterSourceTest, LettersThatAreWrittenInAnotherWayAreAGroupOfTheirOwn) {
  Add(Of("1"));
  Add(Of("2"), {.transformed = false});
  Add(Of("3"), {.target = "archive"});
  Add(Of("4"), {.run = "later"});
  Add(Of("5"));
  std::ofstream(path_, std::ios::app)
      << R"({"run":"run","collection":"orders","id":"6","position":"6","document":{}})" << '\n';
  const auto log = DeadLetterLog::Open(path_).value();
  EXPECT_EQ(log.letters().size(), 5u);
  EXPECT_EQ(Ids(log, group_), (std::vector<std::string>{"1", "5"}));
  EXPECT_EQ(Ids(log, {"run", "sales", false}), std::vector<std::string>{"2"});
  EXPECT_EQ(Ids(log, {"run", "archive", true}), std::vector<std::string>{"3"});
  EXPECT_EQ(Ids(log, {"later", "sales", true}), std::vector<std::string>{"4"});
  EXPECT_EQ(Ids(log, {"run", "", true}), std::vector<std::string>{"6"}) << "of an earlier version";
}

TEST_F(DeadLetterSourceTest, ALetterIsKnownAgainInAnotherFileAndAmongOtherLines) {
  const auto identities = [&] {
    std::map<std::string, uint64_t> found;
    const auto log = DeadLetterLog::Open(path_).value();
    for (const LetterPlace& letter : log.letters().at(group_)) {
      found[letter.position] = letter.identity;
    }
    return found;
  };
  Add(Of("1"));
  Add(Of("2"));
  const auto before = identities();
  std::filesystem::remove(path_);
  Add(Of("3"));
  Add(Of("2", R"({"corrected":true})"));
  const auto after = identities();
  EXPECT_EQ(after.at("2"), before.at("2"));
  EXPECT_NE(after.at("3"), before.at("1"));
  EXPECT_NE(before.at("1"), before.at("2"));
}

TEST_F(DeadLetterSourceTest, TheSamePositionOfAnotherShardIsAnotherLetter) {
  const Document document{.id = {}, .routing = {}, .body = "{}", .position = "7", .defect = {}};
  auto letters = OpenDeadLetters(path_, "run").value();
  for (const char* item : {"orders__0__0", "orders__1__0", "orders__1__5"}) {
    ASSERT_TRUE(letters->Add({.collection = "orders",
                              .target = "sales",
                              .item = item,
                              .document = document,
                              .reason = "no",
                              .transformed = true}));
  }
  const auto log = DeadLetterLog::Open(path_).value();
  const auto& found = log.letters().at(group_);
  ASSERT_EQ(found.size(), 2u) << "the last two are of the same document";
  EXPECT_EQ(found[0].line, 1u);
  EXPECT_EQ(found[1].line, 3u);
}

TEST_F(DeadLetterSourceTest, AFileThatIsReplacedWhileItIsReadIsAConflict) {
  Add(Of("1"));
  Add(Of("2"));
  const auto log = DeadLetterLog::Open(path_).value();
  const auto source = log.Read(log.letters().at(group_));
  Add(Of("later"));
  EXPECT_EQ(Ids(log, group_), (std::vector<std::string>{"1", "2"})) << "what comes is not read";
  std::filesystem::remove(path_);
  Add(Of("3"));
  const auto reader = source->Read(source->Partitions("orders")->at(0), "", {}).value();
  EXPECT_EQ(reader->Next().error().code, Code::kConflict);
}

TEST_F(DeadLetterSourceTest, LettersThatOtherToolsHaveWrittenAreTheSame) {
  Add(Of("1", R"({"n":1.0})"));
  std::ofstream(path_, std::ios::app)
      << R"({"run": "run", "collection": "orders", "target": "sales", "transformed": true, )"
      << R"("item": "orders__0__0", "id": "2", "position": "2", "document": {"n": 2.0}})"
      << "\n"
      << R"({"collection":"orders","document":{"n":3.0,"document":{}},"id":"3","item":)"
      << R"("orders__0__0","position":"3","run":"run","target":"sales","transformed":true})"
      << "\r\n";
  const auto log = DeadLetterLog::Open(path_);
  ASSERT_TRUE(log) << log.error().ToString();
  EXPECT_EQ(log->bad_lines().count, 0);
  const auto source = log->Read(log->letters().at(group_));
  const auto reader = source->Read(source->Partitions("orders")->at(0), "", {}).value();
  std::vector<std::string> bodies;
  while (const auto document = reader->Next().value()) bodies.emplace_back(document->body);
  EXPECT_EQ(bodies, (std::vector<std::string>{R"({"n":1.0})", R"({"n": 2.0})",
                                              R"({"n":3.0,"document":{}})"}));
}

TEST_F(DeadLetterSourceTest, LinesThatAreNoLettersAreSkippedAndNamed) {
  Add(Of("1", R"({"a":1})"));
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
  const auto log = DeadLetterLog::Open(path_).value();
  EXPECT_EQ(log.bad_lines().count, 7);
  EXPECT_EQ(log.bad_lines().first, (std::vector<size_t>{1, 2, 3, 4, 5, 6, 8}));
  EXPECT_EQ(log.bad_lines().ToString(),
            "7 lines are not dead letters and were skipped: 1, 2, 3, 4, 5, 6, 8");
  EXPECT_EQ(Ids(log, group_), std::vector<std::string>{"1"});
}

TEST_F(DeadLetterSourceTest, FileOfSomethingElseIsRefusedWithItsLine) {
  std::ofstream(path_) << "{\"id\":1}\n";
  const auto log = DeadLetterLog::Open(path_);
  ASSERT_FALSE(log);
  EXPECT_NE(log.error().message.find(path_ + ":1"), std::string::npos);
}

TEST_F(DeadLetterSourceTest, OlderVersionsLettersAreReadAndNewerOnesRefused) {
  std::ofstream(path_) << R"({"run":"run","collection":"orders","target":"sales","item":"i",)"
                       << R"("id":"old","position":"1","error":"e","document":{}})" << '\n';
  Add(Of("new"));
  EXPECT_EQ(Ids(DeadLetterLog::Open(path_).value(), group_),
            (std::vector<std::string>{"old", "new"}));
  std::ofstream(path_, std::ios::app) << R"({"v":2,"where":{"run":"run"},"document":{}})" << '\n';
  const auto newer = DeadLetterLog::Open(path_);
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().message,
            path_ +
                ":3 was written by a newer version of muster: in format 2, and this one reads "
                "up to format 1");
}

}  // namespace
}  // namespace muster::pipeline
