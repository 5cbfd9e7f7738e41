// Goal: documents reach the targets they choose, and what is refused is recorded with its target.
// Method: a sink without progress, as search clusters are, that keeps what it gets.

#include "pipeline/flow/shards.h"

#include <gtest/gtest.h>

#include "pipeline/flow/memory_sink.h"
#include "pipeline/flow/memory_source.h"
#include "support/divided_sink.h"

namespace muster::pipeline {
namespace {

struct Letter {
  std::string id;
  std::string target;
  bool transformed = false;
  bool operator==(const Letter&) const = default;
};

class LetterList final : public DeadLetters {
 public:
  Status Add(const DeadLetter& letter) override {
    letters.push_back(
        {std::string(letter.document.id), std::string(letter.target), letter.transformed});
    reasons += std::string(letter.reason) + "\n";
    return {};
  }
  Status Flush() override { return {}; }

  std::vector<Letter> letters;
  std::string reasons;
};

class AllTargets final : public ChosenTargets {
 public:
  Status Admit(const Pipeline& /*pipeline*/, const std::string& /*collection*/,
               const std::string& target, const Fence& /*fence*/) override {
    admitted.push_back(target);
    return target == "closed" ? Status(Error{Code::kIncompatible, "it is closed"}) : Status();
  }
  std::vector<std::string> admitted;
};

class NoCursor final : public WorkItemCursor {
 public:
  Status Advance(Progress&, Writer&, Rest&) override { return {}; }
  Patience NextPatience() override { return {}; }
};

class DividedWriterTest : public ::testing::Test {
 protected:
  // Each document goes where its field `to` says.
  void Add(const std::string& id, const std::string& to) {
    source_.Add("orders", {.id = id, .body = to.empty() ? "{}" : R"({"to":")" + to + "\"}"});
  }
  Result<Progress> Run(Sink& sink, ChosenTargets* chosen) {
    const auto plan =
        ParseTransforms(
            "- rename_index: {orders: sales}\n"
            "- javascript: \"(doc, {id}) => [{id, index: doc.to ?? null, source: {}}]\"",
            "t")
            .value();
    Pipeline pipeline{RealEnv(), source_, *plan, sink, letters_, throttle_, {}, chosen};
    const Fence fence{.run = "r", .incarnation = "i", .item = "it"};
    MUSTER_ASSIGN(auto own, sink.Open("sales", fence));
    MUSTER_ASSIGN(auto writer, DividedWriter(pipeline, "orders", fence, std::move(own)));
    NoCursor cursor;
    return MigrateShard(pipeline, source_.Partitions("orders")->at(0), "it", {}, *writer, cursor,
                        {});
  }

  MemorySource source_{1'000};
  testing::DividedSink sink_;
  LetterList letters_;
  AllTargets chosen_;
  Throttle throttle_{RealEnv()};
};

using Ids = std::vector<std::string>;

TEST_F(DividedWriterTest, DocumentsGoWhereTheyChoose) {
  Add("1", "x");
  Add("2", "");
  Add("3", "y");
  Add("4", "x");
  Add("5", "sales");
  const auto end = Run(sink_, &chosen_);
  ASSERT_TRUE(end) << end.error().ToString();
  EXPECT_EQ(end->counts.written, 5);
  EXPECT_EQ(sink_.Ids("x"), (Ids{"1", "4"}));
  EXPECT_EQ(sink_.Ids("y"), (Ids{"3"}));
  EXPECT_EQ(sink_.Ids("sales"), (Ids{"2", "5"})) << "the collection's own, also by its name";
  EXPECT_EQ(chosen_.admitted, (Ids{"sales", "x", "y"})) << "each once";
}

TEST_F(DividedWriterTest, LettersNameTheTargetThatRefused) {
  Add("1", "x");
  Add("bad2", "y");
  Add("3", "y");
  Add("bad4", "x");
  Add("bad5", "");
  const auto end = Run(sink_, &chosen_);
  ASSERT_TRUE(end) << end.error().ToString();
  EXPECT_EQ(end->counts.written, 2);
  EXPECT_EQ(end->counts.failed, 3);
  EXPECT_EQ(
      letters_.letters,
      (std::vector<Letter>{{"bad2", "y", true}, {"bad4", "x", true}, {"bad5", "sales", true}}));
}

TEST_F(DividedWriterTest, AnInvalidNameIsALetterBeforeTheTransforms) {
  Add("1", "Invalid");
  Add("2", "x");
  const auto end = Run(sink_, &chosen_);
  ASSERT_TRUE(end) << end.error().ToString();
  EXPECT_EQ(end->counts.failed, 1);
  EXPECT_EQ(letters_.letters, (std::vector<Letter>{{"1", "sales", false}}));
  EXPECT_NE(letters_.reasons.find("'Invalid' is no valid name"), std::string::npos);
  EXPECT_EQ(sink_.Ids("x"), (Ids{"2"}));
}

TEST_F(DividedWriterTest, ATargetThatIsRefusedEndsTheItemWithoutLetters) {
  Add("1", "x");
  Add("2", "closed");
  const auto end = Run(sink_, &chosen_);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, Code::kIncompatible);
  EXPECT_TRUE(letters_.letters.empty());
}

TEST_F(DividedWriterTest, ASinkWithOneTargetPerCollectionWritesNoneToAnother) {
  Add("1", "x");
  Add("2", "");
  Add("3", "sales");
  MemorySink sink;
  const auto end = Run(sink, &chosen_);
  ASSERT_TRUE(end) << end.error().ToString();
  EXPECT_EQ(end->counts.written, 2);
  EXPECT_EQ(letters_.letters, (std::vector<Letter>{{"1", "sales", false}}));
  EXPECT_NE(letters_.reasons.find("all documents of a collection to the same target"),
            std::string::npos);
  EXPECT_TRUE(chosen_.admitted.empty());
}

TEST_F(DividedWriterTest, WithoutARunOnlyTargetsThatExistAreChosen) {
  Add("1", "x");
  const auto missing = Run(sink_, nullptr);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_FALSE(sink_.Has("x"));
  ASSERT_TRUE(sink_.Prepare({.name = "x"}, false));
  ASSERT_TRUE(Run(sink_, nullptr));
  EXPECT_EQ(sink_.Ids("x"), (Ids{"1"}));
}

}  // namespace
}  // namespace muster::pipeline
