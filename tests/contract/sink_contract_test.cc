// The promises of Sink and Writer in muster/pipeline.h, checked on every sink: one test per
// promise.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "contract/sinks.h"
#include "muster/pipeline.h"

namespace muster::testing {
namespace {

using Names = std::vector<std::string>;

class SinkContract : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::string reason;
    target_ = NewSink(GetParam(), &reason);
    if (target_ == nullptr) GTEST_SKIP() << GetParam() << " is not available: " << reason;
    sink_ = target_->Open();
    ASSERT_TRUE(sink_->Prepare(SuiteCollection(), false));
  }

  static pipeline::Fence FenceOf(int64_t epoch, const std::string& item = "documents__0__0") {
    pipeline::Fence fence;
    fence.run = "run";
    fence.incarnation = "first";
    fence.item = item;
    fence.epoch = epoch;
    fence.since_ms = 1'000;
    fence.rank = epoch;
    fence.origin = item;
    fence.holder = "holder of epoch " + std::to_string(epoch);
    return fence;
  }

  std::unique_ptr<pipeline::Writer> Open(const pipeline::Fence& fence) {
    auto writer = sink_->Open(SuiteCollection().name, fence);
    EXPECT_TRUE(writer) << writer.error().ToString();
    return writer ? *std::move(writer) : nullptr;
  }

  static pipeline::Batch BatchOf(const Names& names) {
    pipeline::Batch batch;
    for (const std::string& name : names) {
      const std::string body =
          R"({"name":")" + name + R"(","number":)" + std::to_string(name.size()) + "}";
      batch.Add({.id = name, .routing = {}, .body = body, .position = name, .defect = {}});
    }
    return batch;
  }

  // The progress after this many documents, at the position of that number.
  static pipeline::Progress After(int64_t read) {
    return {.position = std::to_string(read),
            .end = "99",
            .counts = {.read = read, .written = read, .bytes = 10 * read}};
  }

  // Writes and flushes: some sinks check the fence only then.
  static Result<std::vector<pipeline::Refused>> Write(pipeline::Writer& writer, const Names& names,
                                                      const pipeline::Progress& after) {
    MUSTER_ASSIGN(const std::vector<pipeline::Refused> refused,
                  writer.Write(BatchOf(names), after, {}));
    MUSTER_TRY(writer.Flush());
    return refused;
  }

  static Code ErrorOf(const Result<std::vector<pipeline::Refused>>& written) {
    EXPECT_FALSE(written);
    return written ? Code::kInternal : written.error().code;
  }

  std::unique_ptr<SinkUnderTest> target_;
  std::unique_ptr<pipeline::Sink> sink_;
};

INSTANTIATE_TEST_SUITE_P(All, SinkContract, ::testing::ValuesIn(SinkNames()),
                         [](const auto& sink) { return sink.param; });

TEST_P(SinkContract, WrittenDocumentsAreThereOnceAfterFinish) {
  auto writer = Open(FenceOf(1));
  ASSERT_TRUE(Write(*writer, {"a", "b"}, After(2)).value().empty());
  ASSERT_TRUE(Write(*writer, {"c"}, After(3)).value().empty());
  ASSERT_TRUE(writer->Flush());
  ASSERT_TRUE(writer->Finish());
  ASSERT_TRUE(writer->Finish());
  ASSERT_TRUE(sink_->Finish(SuiteCollection().name));
  EXPECT_EQ(target_->Names(), (Names{"a", "b", "c"}));
}

TEST_P(SinkContract, ReplacedTargetHasAnotherIdentity) {
  const auto identity = [&] { return target_->Open()->Identity(SuiteCollection().name); };
  const std::string before = sink_->Identity(SuiteCollection().name).value();
  EXPECT_NE(before, "");
  auto writer = Open(FenceOf(1));
  ASSERT_TRUE(Write(*writer, {"a", "b"}, After(2)));
  ASSERT_TRUE(target_->Open()->Prepare(SuiteCollection(), false));
  EXPECT_EQ(identity().value(), before);
  target_->Replace();
  const auto after = identity();
  if (after) {
    EXPECT_NE(*after, before);
  } else {
    EXPECT_EQ(after.error().code, Code::kNotFound) << after.error().ToString();
  }
  // A fresh start finds an ordinary target.
  ASSERT_TRUE(target_->Open()->Prepare(SuiteCollection(), false));
  EXPECT_NE(identity().value(), before);
}

TEST_P(SinkContract, DeletesAndWritesOfABatchHappenInItsOrder) {
  if (!sink_->CanDelete()) {
    // Callers must check CanDelete first.
    EXPECT_EQ(GetParam(), "files") << "only file sinks cannot delete";
    return;
  }
  auto writer = Open(FenceOf(1));
  ASSERT_TRUE(Write(*writer, {"a", "b", "d"}, After(3)));
  pipeline::Batch batch = BatchOf({"a", "c", "c", "b", "a", "never there"});
  for (const size_t deleted : {0, 2, 3, 5}) batch.documents[deleted].deleted = true;
  const auto refused = writer->Write(batch, After(9), {});
  ASSERT_TRUE(refused) << refused.error().ToString();
  EXPECT_TRUE(refused->empty());
  ASSERT_TRUE(writer->Finish());
  EXPECT_EQ(target_->Names(), (Names{"a", "d"}));
}

// Even if the sink cannot know beforehand that there is a newer one.
TEST_P(SinkContract, LateWriteOfAnEarlierHolderChangesNothing) {
  const auto version = [](const std::string& name) {
    pipeline::Batch batch = BatchOf({name});
    batch.documents[0].id = "same";
    return batch;
  };
  auto old_writer = Open(FenceOf(1));
  auto new_writer = Open(FenceOf(2));
  ASSERT_TRUE(new_writer->Write(version("new"), After(1), {}));
  ASSERT_TRUE(new_writer->Flush());
  Result<std::vector<pipeline::Refused>> late = old_writer->Write(version("old"), After(1), {});
  if (const Status flushed = old_writer->Flush(); late && !flushed) late = flushed.error();
  EXPECT_EQ(ErrorOf(late), Code::kLeaseLost);
  ASSERT_TRUE(new_writer->Finish());
  EXPECT_EQ(target_->Names(), Names{"new"});
}

TEST_P(SinkContract, PreparingAgainKeepsTheTarget) {
  auto writer = Open(FenceOf(1));
  ASSERT_TRUE(Write(*writer, {"a"}, After(1)));
  ASSERT_TRUE(writer->Finish());
  auto changes = target_->Open()->Prepare(SuiteCollection(), false);
  ASSERT_TRUE(changes) << changes.error().ToString();
  EXPECT_EQ(target_->Names(), Names{"a"});
}

TEST_P(SinkContract, UnwrittenItemHasNoProgress) {
  auto writer = Open(FenceOf(1));
  EXPECT_EQ(writer->Known().value_or(pipeline::Progress{}), pipeline::Progress{});
  EXPECT_FALSE(writer->Sealed());
}

TEST_P(SinkContract, ItemsDoNotDisturbOneAnother) {
  auto one = Open(FenceOf(7, "documents__0__0"));
  auto two = Open(FenceOf(1, "documents__1__0"));
  ASSERT_TRUE(Write(*one, {"a"}, After(1)));
  ASSERT_TRUE(Write(*two, {"b"}, After(1)));
  ASSERT_TRUE(Write(*one, {"c"}, After(2)));
  ASSERT_TRUE(one->Finish());
  ASSERT_TRUE(two->Finish());
  EXPECT_EQ(target_->Names(), (Names{"a", "b", "c"}));
}

TEST_P(SinkContract, ManyWritersAtOnceLoseNothing) {
  constexpr int kWriters = 4;
  constexpr int kBatches = 25;
  std::atomic<int> failures = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kWriters; ++i) {
      threads.emplace_back([&, i] {
        auto writer = Open(FenceOf(1, "documents__" + std::to_string(i) + "__0"));
        for (int j = 0; j < kBatches; ++j) {
          const std::string name = std::to_string(i) + "." + std::to_string(j);
          if (!Write(*writer, {name, name + "x"}, After(2 * (j + 1)))) ++failures;
        }
        if (!writer->Finish()) ++failures;
      });
    }
  }
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(target_->Names().size(), 2 * kWriters * kBatches);
}

// Promises of sinks that store progress beside the documents.
class FencedSinkContract : public SinkContract {};

INSTANTIATE_TEST_SUITE_P(All, FencedSinkContract, ::testing::ValuesIn(FencedSinkNames()),
                         [](const auto& sink) { return sink.param; });

TEST_P(FencedSinkContract, NextHolderGetsTheLastProgress) {
  {
    auto writer = Open(FenceOf(1));
    ASSERT_TRUE(Write(*writer, {"a", "b"}, After(2)));
  }
  sink_ = target_->Open();
  auto next = Open(FenceOf(2));
  EXPECT_EQ(next->Known(), After(2));
  ASSERT_TRUE(Write(*next, {"c"}, After(3)));
  EXPECT_EQ(target_->Names(), (Names{"a", "b", "c"}));
}

TEST_P(FencedSinkContract, EmptyBatchStoresOnlyProgress) {
  auto writer = Open(FenceOf(1));
  pipeline::Progress lowered = After(0);
  lowered.end = "50";
  ASSERT_TRUE(Write(*writer, {}, lowered).value().empty());
  EXPECT_EQ(Open(FenceOf(2))->Known(), lowered);
}

TEST_P(FencedSinkContract, OlderEpochIsRefusedOnceANewerOneHasOpenedTheItem) {
  auto old = Open(FenceOf(1));
  ASSERT_TRUE(Write(*old, {"a"}, After(1)));
  auto other_process = target_->Open();
  auto young = other_process->Open(SuiteCollection().name, FenceOf(2)).value();
  EXPECT_EQ(ErrorOf(Write(*old, {"b"}, After(2))), Code::kLeaseLost);
  EXPECT_EQ(ErrorOf(Write(*old, {}, After(2))), Code::kLeaseLost);
  const auto sealed = old->Seal();
  ASSERT_FALSE(sealed);
  EXPECT_EQ(sealed.error().code, Code::kLeaseLost);
  ASSERT_TRUE(Write(*young, {"c"}, After(2)));
  EXPECT_EQ(target_->Names(), (Names{"a", "c"}));

  const auto late = sink_->Open(SuiteCollection().name, FenceOf(1));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kLeaseLost) << late.error().ToString();
}

TEST_P(FencedSinkContract, TheSameHolderMayOpenAgain) {
  ASSERT_TRUE(Write(*Open(FenceOf(3)), {"a"}, After(1)));
  auto again = Open(FenceOf(3));
  EXPECT_EQ(again->Known(), After(1));
  ASSERT_TRUE(Write(*again, {"b"}, After(2)));
}

// Only a store that lost commits, as in a failover, grants an epoch twice.
TEST_P(FencedSinkContract, ASecondHolderOfTheSameEpochIsRefused) {
  auto first = Open(FenceOf(3));
  ASSERT_TRUE(Write(*first, {"a"}, After(1)));
  pipeline::Fence twice = FenceOf(3);
  twice.holder = "another";
  auto other_process = target_->Open();
  const auto second = other_process->Open(SuiteCollection().name, twice);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kLeaseLost) << second.error().ToString();
  EXPECT_NE(second.error().message.find("twice"), std::string::npos) << second.error().message;
  ASSERT_TRUE(Write(*first, {"b"}, After(2)));
  EXPECT_EQ(target_->Names(), (Names{"a", "b"}));

  // In another incarnation that epoch is a different one.
  twice.incarnation = "second";
  twice.adopts = true;
  ASSERT_TRUE(Write(*other_process->Open(SuiteCollection().name, twice).value(), {}, After(2)));
  EXPECT_EQ(ErrorOf(Write(*first, {"c"}, After(3))), Code::kLeaseLost);
}

TEST_P(FencedSinkContract, SealedItemRefusesWrites) {
  auto old = Open(FenceOf(1));
  ASSERT_TRUE(Write(*old, {"a"}, After(1)));
  auto young = target_->Open()->Open(SuiteCollection().name, FenceOf(2)).value();
  EXPECT_EQ(young->Seal().value(), After(1));
  EXPECT_EQ(young->Seal().value(), After(1));
  EXPECT_EQ(ErrorOf(Write(*old, {"b"}, After(2))), Code::kLeaseLost);
  EXPECT_EQ(ErrorOf(Write(*young, {"b"}, After(2))), Code::kLeaseLost);
  auto next = Open(FenceOf(3));
  EXPECT_TRUE(next->Sealed());
  EXPECT_EQ(next->Known(), After(1));
  EXPECT_EQ(ErrorOf(Write(*next, {"b"}, After(2))), Code::kLeaseLost);
  EXPECT_EQ(target_->Names(), Names{"a"});
}

TEST_P(FencedSinkContract, ItemCanBeSealedBeforeItsFirstDocument) {
  auto writer = Open(FenceOf(1));
  EXPECT_EQ(writer->Seal().value().value_or(pipeline::Progress{}), pipeline::Progress{});
  EXPECT_EQ(ErrorOf(Write(*writer, {"a"}, After(1))), Code::kLeaseLost);
  EXPECT_TRUE(Open(FenceOf(2))->Sealed());
  EXPECT_TRUE(target_->Names().empty());
}

TEST_P(FencedSinkContract, AnotherIncarnationIsAConflictUnlessItAdopts) {
  auto old = Open(FenceOf(9));
  ASSERT_TRUE(Write(*old, {"a"}, After(1)));
  pipeline::Fence fence = FenceOf(1);
  fence.incarnation = "second";
  const auto stranger = sink_->Open(SuiteCollection().name, fence);
  ASSERT_FALSE(stranger);
  EXPECT_EQ(stranger.error().code, Code::kConflict) << stranger.error().ToString();

  // Epochs of the older incarnation neither block nor count.
  fence.adopts = true;
  auto heir = Open(fence);
  EXPECT_EQ(heir->Known(), After(1));
  EXPECT_EQ(ErrorOf(Write(*old, {"b"}, After(2))), Code::kLeaseLost);
  ASSERT_TRUE(Write(*heir, {"c"}, After(2)));
  EXPECT_EQ(target_->Names(), (Names{"a", "c"}));
}

TEST_P(FencedSinkContract, RunsAreIndependent) {
  ASSERT_TRUE(Write(*Open(FenceOf(9)), {"a"}, After(1)));
  pipeline::Fence other = FenceOf(1);
  other.run = "other";
  other.incarnation = "other";
  if (!target_->SharedByRuns()) {
    const auto refused = target_->Open()->Open(SuiteCollection().name, other);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::kConflict) << refused.error().ToString();
    return;
  }
  auto writer = Open(other);
  EXPECT_EQ(writer->Known().value_or(pipeline::Progress{}), pipeline::Progress{});
  ASSERT_TRUE(Write(*writer, {"b"}, After(1)));
  EXPECT_EQ(target_->Names(), (Names{"a", "b"}));
}

TEST_P(FencedSinkContract, OnlyTheNewestHolderWrites) {
  constexpr int kHolders = 8;
  std::atomic<int> written = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 1; i <= kHolders; ++i) {
      threads.emplace_back([&, i] {
        auto opened = sink_->Open(SuiteCollection().name, FenceOf(i));
        if (!opened) {
          EXPECT_EQ(opened.error().code, Code::kLeaseLost) << opened.error().ToString();
          return;
        }
        const pipeline::Progress before = (*opened)->Known().value_or(pipeline::Progress{});
        pipeline::Progress after = After(before.counts.read + 1);
        const auto done = Write(**opened, {"w" + std::to_string(before.counts.read)}, after);
        if (done) {
          ++written;
        } else {
          EXPECT_EQ(done.error().code, Code::kLeaseLost) << done.error().ToString();
        }
      });
    }
  }
  // Each writer continued from the previous one: no position was written twice.
  const Names names = target_->Names();
  EXPECT_EQ(std::ssize(names), written);
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

}  // namespace
}  // namespace muster::testing
