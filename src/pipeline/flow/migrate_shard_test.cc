#include <gtest/gtest.h>

#include "pipeline/flow/memory_sink.h"
#include "pipeline/flow/memory_source.h"
#include "pipeline/flow/shards.h"

namespace muster::pipeline {
namespace {

struct Letter {
  std::string id;
  std::string reason;
  std::string target = "sales";
  bool transformed = false;
  int64_t part = 0;

  bool operator==(const Letter&) const = default;
};

class LetterList final : public DeadLetters {
 public:
  Status Add(const DeadLetter& letter) override {
    letters.push_back({std::string(letter.document.id), std::string(letter.reason),
                       std::string(letter.target), letter.transformed, letter.document.part});
    return {};
  }
  Status Flush() override { return {}; }

  std::vector<Letter> letters;
};

// Treats a document as its id says: skips, fails, grows, or leaves it.
class ById final : public Transform {
 public:
  Result<bool> Apply(Document& document, Arena& arena, std::vector<Document>& more) override {
    if (document.id.starts_with("skip")) return false;
    if (document.id.starts_with("three")) {
      const std::string id(document.id);
      for (const char* part : {"b", "c"}) {
        more.push_back(document);
        more.back().id = arena.Copy(id + part);
      }
      document.id = arena.Copy(id + "a");
    }
    if (document.id.starts_with("fail")) return Error{Code::kInvalid, "cannot be done"};
    if (document.id.starts_with("grow")) {
      document.body = arena.Copy("{\"grown\":\"" + std::string(100, 'x') + "\"}");
    }
    return true;
  }
};

class ByIdPlan final : public TransformPlan {
 public:
  Result<std::vector<std::unique_ptr<Transform>>> Make(const std::string&) const override {
    std::vector<std::unique_ptr<Transform>> all;
    all.push_back(std::make_unique<ById>());
    return all;
  }
  std::string TargetName(const std::string&) const override { return "sales"; }
};

class TestCursor final : public WorkItemCursor {
 public:
  Status Advance(Progress& progress, Writer& writer, Rest& rest) override {
    seen.push_back(progress);
    return on_advance ? on_advance(progress, writer, rest) : Status();
  }
  Patience NextPatience() override { return {}; }

  std::function<Status(Progress&, Writer&, Rest&)> on_advance = {};
  std::vector<Progress> seen;
};

// Every test runs with and without read-ahead: the results must be identical.
class MigrateShardTest : public testing::TestWithParam<bool> {
 protected:
  void AddDocuments(int count, const std::string& prefix = "") {
    for (int i = 0; i < count; ++i) Add(prefix + std::to_string(i));
  }
  void Add(const std::string& id, const std::string& body = R"({"a":1})") {
    source_.Add("orders", {.id = id, .body = body});
  }

  Result<Progress> Run(BatchLimits limits, const Progress& start = {}, std::stop_token stop = {}) {
    Pipeline pipeline{RealEnv(),
                      source_,
                      plan_,
                      sink_,
                      letters_,
                      throttle_,
                      {.limits = limits, .read_ahead = GetParam()}};
    const auto partitions = source_.Partitions("orders");
    auto writer = sink_.Open("orders", {.run = "r", .incarnation = "i", .item = "it"});
    return MigrateShard(pipeline, partitions->at(0), "it", start, **writer, cursor_, stop);
  }

  std::vector<std::string> WrittenIds() const {
    std::vector<std::string> ids;
    for (const auto& document : sink_.Documents("orders")) ids.push_back(document.id);
    return ids;
  }

  MemorySource source_{1'000'000};
  MemorySink sink_;
  LetterList letters_;
  ByIdPlan plan_;
  Throttle throttle_{RealEnv()};
  TestCursor cursor_;
};

INSTANTIATE_TEST_SUITE_P(, MigrateShardTest, testing::Bool(), [](const auto& param_info) {
  return param_info.param ? "ReadingAhead" : "InOneThread";
});

TEST_P(MigrateShardTest, WritesAllInOrderInBatchesOfTheLimit) {
  AddDocuments(25);
  const auto end = Run({.max_docs = 10});
  ASSERT_TRUE(end) << end.error().ToString();
  EXPECT_EQ(end->counts, (Counts{.read = 25, .written = 25, .bytes = 25 * 7}));
  EXPECT_EQ(end->position, MemorySource::PositionOf(25));
  EXPECT_EQ(sink_.BatchSizes("orders"), (std::vector<size_t>{10, 10, 5}));
  std::vector<std::string> expected;
  for (int i = 0; i < 25; ++i) expected.push_back(std::to_string(i));
  EXPECT_EQ(WrittenIds(), expected);
}

TEST_P(MigrateShardTest, AnEmptyShardEndsAtOnce) {
  source_.Add("orders", {});
  const auto end = Run({}, {.position = MemorySource::PositionOf(1)});
  ASSERT_TRUE(end);
  EXPECT_EQ(end->counts, Counts{});
  EXPECT_TRUE(cursor_.seen.empty());
}

TEST_P(MigrateShardTest, ABatchClosesBeforeTheDocumentThatCrossesTheBytes) {
  for (int i = 0; i < 5; ++i) Add(std::to_string(i), "{\"a\":12}");  // 9 bytes with the id
  const auto end = Run({.max_docs = 100, .max_bytes = 20});
  ASSERT_TRUE(end);
  EXPECT_EQ(sink_.BatchSizes("orders"), (std::vector<size_t>{2, 2, 1}));
  EXPECT_EQ(end->counts.bytes, 5 * 8);
  ASSERT_EQ(cursor_.seen.size(), 3U);
  EXPECT_EQ(cursor_.seen[0].position, MemorySource::PositionOf(2));
  EXPECT_EQ(cursor_.seen[1].position, MemorySource::PositionOf(4));
}

TEST_P(MigrateShardTest, ABatchMayBeExactlyAsLargeAsTheLimit) {
  for (int i = 0; i < 4; ++i) Add(std::to_string(i), "{\"a\":12}");
  ASSERT_TRUE(Run({.max_docs = 100, .max_bytes = 18}));
  EXPECT_EQ(sink_.BatchSizes("orders"), (std::vector<size_t>{2, 2}));
}

TEST_P(MigrateShardTest, ALargerDocumentGoesAlone) {
  Add("a");
  Add("b", "{\"b\":\"" + std::string(5000, 'x') + "\"}");
  Add("c");
  Add("d", "{\"d\":\"" + std::string(5000, 'x') + "\"}");
  ASSERT_TRUE(Run({.max_docs = 100, .max_bytes = 1000}));
  EXPECT_EQ(sink_.BatchSizes("orders"), (std::vector<size_t>{1, 1, 1, 1}));
  EXPECT_EQ(WrittenIds(), (std::vector<std::string>{"a", "b", "c", "d"}));
}

TEST_P(MigrateShardTest, TheSizeThatCountsIsTheOneAfterTransforms) {
  for (int i = 0; i < 4; ++i) Add("grow" + std::to_string(i));
  ASSERT_TRUE(Run({.max_docs = 100, .max_bytes = 250}));
  EXPECT_EQ(sink_.BatchSizes("orders"), (std::vector<size_t>{2, 2}));
  for (const auto& document : sink_.Documents("orders")) {
    EXPECT_EQ(document.body, "{\"grown\":\"" + std::string(100, 'x') + "\"}");
  }
}

TEST_P(MigrateShardTest, EveryDocumentIsAccountedFor) {
  Add("1");
  Add("skip2");
  Add("fail3");
  source_.Add("orders", {.id = "4", .body = "{broken", .defect = "line 4: broken"});
  Add("5");
  Add("refuse6");
  Add("7");
  sink_.refuse = [](const Document& document) {
    return document.id.starts_with("refuse") ? "too large" : "";
  };
  const auto end = Run({.max_docs = 3});
  ASSERT_TRUE(end);
  EXPECT_EQ(end->counts.read, 7);
  EXPECT_EQ(end->counts.written, 3);
  EXPECT_EQ(end->counts.skipped, 1);
  EXPECT_EQ(end->counts.failed, 3);
  EXPECT_EQ(WrittenIds(), (std::vector<std::string>{"1", "5", "7"}));
  EXPECT_EQ(letters_.letters, (std::vector<Letter>{{"fail3", "cannot be done"},
                                                   {"4", "line 4: broken"},
                                                   {"refuse6", "too large", "sales", true}}));
  EXPECT_EQ(*(*sink_.Open("orders", {.run = "r", .incarnation = "i", .item = "it"}))->Known(), *end)
      << "what the sink keeps counts the refused ones as failed, too";
}

TEST_P(MigrateShardTest, AllThatIsMadeOfADocumentIsInOneBatch) {
  Add("1");
  Add("2");
  Add("three3");
  Add("4");
  Add("three5");
  const auto end = Run({.max_docs = 4});
  ASSERT_TRUE(end) << end.error().ToString();
  EXPECT_EQ(end->counts, (Counts{.read = 5, .written = 9, .bytes = 5 * 7, .added = 4}));
  EXPECT_EQ(sink_.BatchSizes("orders"), (std::vector<size_t>{2, 4, 3}));
  EXPECT_EQ(WrittenIds(), (std::vector<std::string>{"1", "2", "three3a", "three3b", "three3c", "4",
                                                    "three5a", "three5b", "three5c"}));
  ASSERT_EQ(cursor_.seen.size(), 3U);
  EXPECT_EQ(cursor_.seen[0].position, MemorySource::PositionOf(2));
  EXPECT_EQ(cursor_.seen[0].counts.added, 0);
  EXPECT_EQ(cursor_.seen[1].position, MemorySource::PositionOf(4));
}

TEST_P(MigrateShardTest, MoreThanABatchMayHoldGoesAlone) {
  Add("1");
  Add("three2");
  Add("3");
  ASSERT_TRUE(Run({.max_docs = 2}));
  EXPECT_EQ(sink_.BatchSizes("orders"), (std::vector<size_t>{1, 3, 1}));
}

TEST_P(MigrateShardTest, RefusedPartOfADocumentIsASeparateLetter) {
  Add("1");
  Add("three2");
  Add("3");
  sink_.refuse = [](const Document& document) {
    return document.id.ends_with("a") || document.id.ends_with("c") ? "too large" : "";
  };
  const auto end = Run({});
  ASSERT_TRUE(end) << end.error().ToString();
  EXPECT_EQ(end->counts,
            (Counts{.read = 3, .written = 3, .failed = 2, .bytes = 3 * 7, .added = 2}));
  EXPECT_EQ(letters_.letters, (std::vector<Letter>{{"three2a", "too large", "sales", true, 1},
                                                   {"three2c", "too large", "sales", true, 3}}));
}

TEST_P(MigrateShardTest, NothingIsLostOrRepeatedAfterAFailureBetweenBatches) {
  for (int i = 0; i < 7; ++i) Add("three" + std::to_string(i));
  int writes = 0;
  sink_.fail = [&](size_t) {
    return ++writes % 2 == 0 ? Status(Error{Code::kUnavailable, "gone"}) : Status();
  };
  Progress reached;
  for (int runs = 0; runs < 20; ++runs) {
    const auto end = Run({.max_docs = 5}, reached);
    reached = *(*sink_.Open("orders", {.run = "r", .incarnation = "i", .item = "it"}))->Known();
    if (end) break;
  }
  EXPECT_EQ(reached.counts, (Counts{.read = 7, .written = 21, .bytes = 7 * 7, .added = 14}));
  std::vector<std::string> expected;
  for (int i = 0; i < 7; ++i) {
    for (const char* part : {"a", "b", "c"}) expected.push_back("three" + std::to_string(i) + part);
  }
  EXPECT_EQ(WrittenIds(), expected);
}

TEST_P(MigrateShardTest, SkippedDocumentsAdvanceTheProgressNowAndThen) {
  AddDocuments(1000, "skip");
  const auto end = Run({.max_docs = 10});
  ASSERT_TRUE(end);
  EXPECT_EQ(end->counts.skipped, 1000);
  EXPECT_GE(cursor_.seen.size(), 5U);
  EXPECT_EQ(end->position, MemorySource::PositionOf(1000));
}

TEST_P(MigrateShardTest, ResumesFromTheGivenPosition) {
  AddDocuments(10);
  const Progress start{.position = MemorySource::PositionOf(4),
                       .end = MemorySource::PositionOf(8),
                       .counts = {.read = 4, .written = 4}};
  const auto end = Run({}, start);
  ASSERT_TRUE(end);
  EXPECT_EQ(WrittenIds(), (std::vector<std::string>{"4", "5", "6", "7"}));
  EXPECT_EQ(end->counts.read, 8);
}

TEST_P(MigrateShardTest, WhatWasReadBeforeAFailureIsWritten) {
  AddDocuments(10);
  source_.FailAt("orders", 7, {Code::kCorrupt, "the file is damaged"});
  const auto end = Run({.max_docs = 5});
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, Code::kCorrupt);
  EXPECT_EQ(WrittenIds().size(), 7U);
  EXPECT_EQ(cursor_.seen.back().position, MemorySource::PositionOf(7));
}

TEST_P(MigrateShardTest, AFailureOfTheSinkEndsIt) {
  AddDocuments(10);
  sink_.fail = [](size_t) { return Status(Error{Code::kFull, "no room"}); };
  const auto end = Run({});
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, Code::kFull);
  EXPECT_TRUE(cursor_.seen.empty());
}

TEST_P(MigrateShardTest, TheCursorCanEndItBetweenBatches) {
  AddDocuments(30);
  cursor_.on_advance = [this](Progress&, Writer&, Rest&) {
    return cursor_.seen.size() < 2 ? Status() : Status(Error{Code::kCancelled, "enough"});
  };
  const auto end = Run({.max_docs = 10});
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, Code::kCancelled);
  EXPECT_EQ(WrittenIds().size(), 20U);
}

TEST_P(MigrateShardTest, AStopEndsItBetweenBatches) {
  AddDocuments(30);
  std::stop_source stop;
  cursor_.on_advance = [&](Progress&, Writer&, Rest&) {
    stop.request_stop();
    return Status();
  };
  const auto end = Run({.max_docs = 10}, {}, stop.get_token());
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, Code::kCancelled);
  EXPECT_EQ(WrittenIds().size(), 10U);
}

TEST_P(MigrateShardTest, ASplitGivesTheRestAwayAndNothingTwice) {
  AddDocuments(100);
  std::string split;
  cursor_.on_advance = [&](Progress& progress, Writer&, Rest& rest) {
    if (cursor_.seen.size() == 1) {
      const auto at = rest.Split();
      EXPECT_TRUE(at);
      EXPECT_TRUE(*at);
      split = **at;
      progress.end = split;
    }
    return Status();
  };
  const auto first = Run({.max_docs = 10});
  ASSERT_TRUE(first);
  EXPECT_EQ(first->position, split);
  EXPECT_EQ(first->end, split);
  EXPECT_GT(split, MemorySource::PositionOf(20));
  cursor_.on_advance = nullptr;
  ASSERT_TRUE(Run({.max_docs = 10}, {.position = split}));
  std::vector<std::string> expected;
  for (int i = 0; i < 100; ++i) expected.push_back(std::to_string(i));
  EXPECT_EQ(WrittenIds(), expected);
}

TEST_P(MigrateShardTest, AThrottleMakesBatchesSmaller) {
  AddDocuments(20);
  throttle_.Set(0, 0.5e9);
  ASSERT_TRUE(Run({.max_docs = 10}));
  EXPECT_EQ(sink_.BatchSizes("orders"), (std::vector<size_t>{10, 10}));
  throttle_.Set(1e-3, 0);
  std::stop_source stop;
  cursor_.on_advance = [&](Progress&, Writer&, Rest&) {
    stop.request_stop();
    return Status();
  };
  EXPECT_FALSE(Run({.max_docs = 10}, {}, stop.get_token()));
  EXPECT_EQ(sink_.BatchSizes("orders").back(), 1U);
}

}  // namespace
}  // namespace muster::pipeline
