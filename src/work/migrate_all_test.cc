#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <set>

#include "core/mutex.h"
#include "muster/work.h"
#include "pipeline/flow/memory_sink.h"
#include "pipeline/flow/memory_source.h"
#include "pipeline/flow/wrappers.h"
#include "support/await.h"
#include "support/migrate.h"
#include "support/short_pauses.h"

namespace muster::work {
namespace {

using namespace std::chrono_literals;
using pipeline::Counts;
using pipeline::Partition;
using pipeline::Progress;

class Listener final : public MigrationObserver {
 public:
  void Prepared(const std::vector<pipeline::TargetChange>& changes) override {
    events.push_back("prepared " + std::to_string(changes.size()));
  }
  void CollectionStarted(const std::string& collection,
                         const std::vector<Partition>& partitions) override {
    events.push_back("start " + collection + " " + std::to_string(partitions.size()));
  }
  void Advanced(const Partition& partition, const Progress&) override {
    ++advances;
    if (shards.empty() || shards.back() != partition.shard) shards.push_back(partition.shard);
    if (on_advance) on_advance();
  }
  void CollectionEnded(const std::string& collection, const Counts& counts) override {
    events.push_back("end " + collection + " " + std::to_string(counts.written));
  }

  void Waits(const std::string& what) override {
    const MutexLock lock(mutex);
    waits.push_back(what);
  }
  std::vector<std::string> Waited() {
    const MutexLock lock(mutex);
    return waits;
  }

  Mutex mutex;
  std::vector<std::string> waits;
  void Failed(const std::vector<FailureReason>& all) override { reasons.push_back(all); }

  std::vector<std::vector<FailureReason>> reasons;
  std::vector<std::string> events;
  std::vector<int> shards;  // in the order of their batches
  int advances = 0;
  std::function<void()> on_advance = {};
};

// Targets have an identity, as a table has.
class IdentifiedSink final : public pipeline::SinkWrapper {
 public:
  using SinkWrapper::SinkWrapper;
  Result<std::string> Identity(const std::string&) override { return identity; }

  std::string identity = "1";
};

// The last partition of each collection follows the first, and comes before it in the list. Counts
// its documents again.
class LiveSource final : public pipeline::SourceWrapper {
 public:
  using SourceWrapper::SourceWrapper;
  Result<std::vector<Partition>> Partitions(const std::string& collection) override {
    MUSTER_ASSIGN(auto partitions, inner().Partitions(collection));
    partitions.back().shard = partitions.front().shard;
    partitions.back().follows = true;
    std::rotate(partitions.begin(), partitions.end() - 1, partitions.end());
    return partitions;
  }
  Result<std::optional<int64_t>> CountAgain(const std::vector<Partition>& partitions) override {
    ++times_counted;
    if (partitions.size() != 4) return Error{Code::kInternal, "not all partitions are counted"};
    return std::optional(counted);
  }

  int64_t counted = 100;
  std::atomic<int> times_counted = 0;
};

// Runs `before` ahead of each write.
class StallingSink final : public pipeline::SinkWrapper {
 public:
  using Before = std::function<void(const pipeline::Patience& patience)>;
  StallingSink(Sink& inner, Before before) : SinkWrapper(inner), before_(std::move(before)) {}

  Result<std::unique_ptr<pipeline::Writer>> Open(const std::string& collection,
                                                 const pipeline::Fence& fence) override {
    MUSTER_ASSIGN(auto writer, SinkWrapper::Open(collection, fence));
    return std::make_unique<StallingWriter>(std::move(writer), before_);
  }

 private:
  class StallingWriter final : public pipeline::WriterWrapper {
   public:
    StallingWriter(std::unique_ptr<Writer> inner, const Before& before)
        : WriterWrapper(std::move(inner)), before_(before) {}
    Result<std::vector<pipeline::Refused>> Write(const pipeline::Batch& batch,
                                                 const Progress& after,
                                                 const pipeline::Patience& patience) override {
      before_(patience);
      return WriterWrapper::Write(batch, after, patience);
    }

   private:
    const Before& before_;
  };

  const Before before_;
};

// Runs `before` ahead of each list of partitions.
class StallingSource final : public pipeline::SourceWrapper {
 public:
  StallingSource(Source& inner, std::function<void()> before)
      : SourceWrapper(inner), before_(std::move(before)) {}
  Result<std::vector<Partition>> Partitions(const std::string& collection) override {
    before_();
    return inner().Partitions(collection);
  }

 private:
  const std::function<void()> before_;
};

class MigrateAllTest : public ::testing::Test {
 protected:
  MigrateAllTest() {
    for (const char* name : {"a", "b", "c__d"}) {
      for (int i = 0; i < 100; ++i) {
        source_.Add(name, {.id = name + std::to_string(i), .body = "{}"});
      }
    }
    plan_ = *pipeline::ParseTransforms("", "");
  }

  Result<Counts> Run(const MigrateAllOptions& options, std::stop_token stop = {}) {
    return RunWith(source_, sink_, options, stop);
  }
  Result<Counts> RunWith(pipeline::Source& source, pipeline::Sink& sink,
                         const MigrateAllOptions& options, std::stop_token stop = {}) {
    pipeline::Pipeline pipeline{
        env_, source, *plan_, sink, letters_, throttle_, {.limits = {.max_docs = 7}}};
    return MigrateAll(pipeline, options, listener_, stop);
  }

  // Whether the observer was notified of a wait for `party` that ends.
  bool WaitedFor(const std::string& party) {
    const auto waits = listener_.Waited();
    return std::any_of(waits.begin(), waits.end(),
                       [&](const std::string& what) { return what.starts_with("the " + party); });
  }

  testing::ShortPauses env_;
  pipeline::MemorySource source_{30};
  pipeline::MemorySink sink_;
  testing::NoDeadLetters letters_;
  std::unique_ptr<pipeline::TransformPlan> plan_;
  pipeline::Throttle throttle_{RealEnv()};
  Listener listener_;
};

TEST_F(MigrateAllTest, StopsWhenTooManyFailInAllCollectionsTogether) {
  sink_.refuse = [](const pipeline::Document& document) {
    return document.id.ends_with('0') ? "no '" + std::string(document.id) + "'" : "";
  };
  const auto counts = Run({.shard_concurrency = 3, .max_failures = {.documents = 15}});
  ASSERT_FALSE(counts);
  EXPECT_EQ(counts.error().code, Code::kIncompatible);
  EXPECT_TRUE(counts.error().message.starts_with(
      "the migration is stopped: more than 15 of its documents have failed: "))
      << counts.error().message;
  EXPECT_EQ(counts.error().hint.find("redrive"), std::string::npos) << "nothing is resumed";
  EXPECT_TRUE(sink_.FinishedCollections().empty());
  EXPECT_EQ(listener_.events.back(), "start b 4") << "the first has 10, the second another 10";
  ASSERT_EQ(listener_.reasons.size(), 1u);
  EXPECT_EQ(listener_.reasons[0][0].reason, "no '…'");
  EXPECT_GT(listener_.reasons[0][0].count, 15);
}

TEST_F(MigrateAllTest, ReasonsOfAllCollectionsAreReportedOnce) {
  sink_.refuse = [](const pipeline::Document& document) {
    return document.id.ends_with('0') ? "no '" + std::string(document.id) + "'" : "";
  };
  ASSERT_TRUE(Run({.max_failures = {.documents = 30}}));
  ASSERT_EQ(listener_.reasons.size(), 1u);
  ASSERT_EQ(listener_.reasons[0].size(), 1u);
  EXPECT_EQ(listener_.reasons[0][0].count, 30);
  EXPECT_EQ(listener_.reasons[0][0].id, "a0");
}

TEST_F(MigrateAllTest, MigratesCollectionAfterCollection) {
  const auto counts = Run({});
  ASSERT_TRUE(counts) << counts.error().ToString();
  EXPECT_EQ(counts->written, 300);
  EXPECT_EQ(listener_.events,
            (std::vector<std::string>{"prepared 3", "start a 4", "end a 100", "start b 4",
                                      "end b 100", "start c__d 4", "end c__d 100"}));
  EXPECT_EQ(sink_.Documents("a").size(), 100U);
  EXPECT_EQ(sink_.FinishedItems().size(), 12U);
  EXPECT_TRUE(sink_.FinishedItems().contains("c__d__1__000030"));
  EXPECT_EQ(sink_.FinishedCollections(), (std::set<std::string>{"a", "b", "c__d"}));
}

TEST_F(MigrateAllTest, DocumentsOfAShardStayInOrderAndInFullBatches) {
  ASSERT_TRUE(Run({.shard_concurrency = 1}));
  EXPECT_EQ(sink_.BatchSizes("a"),
            (std::vector<size_t>{7, 7, 7, 7, 2, 7, 7, 7, 7, 2, 7, 7, 7, 7, 2, 7, 3}));
  ASSERT_EQ(listener_.shards.size(), 12U) << "a shard was interrupted by another";
}

TEST_F(MigrateAllTest, ShardsAreTakenInTheOrderOfTheSource) {
  pipeline::MemorySource source{5};
  std::vector<int> expected;
  for (int i = 0; i < 60; ++i) source.Add("a", {.id = std::to_string(i), .body = "{}"});
  for (int shard = 0; shard < 12; ++shard) expected.push_back(shard);
  ASSERT_TRUE(RunWith(source, sink_, {.shard_concurrency = 1}));
  EXPECT_EQ(listener_.shards, expected);
}

TEST_F(MigrateAllTest, ShardsAtOnceLoseNothing) {
  const auto counts = Run({.shard_concurrency = 4});
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->written, 300);
  std::set<std::string> ids;
  for (const auto& document : sink_.Documents("b")) ids.insert(document.id);
  EXPECT_EQ(ids.size(), 100U);
}

TEST_F(MigrateAllTest, OnlySelectedCollectionsAreTouched) {
  const auto counts = Run({.allowed = [](const std::string& name) { return name == "b"; }});
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->written, 100);
  EXPECT_EQ(listener_.events, (std::vector<std::string>{"prepared 1", "start b 4", "end b 100"}));
}

TEST_F(MigrateAllTest, TheFirstErrorEndsEverything) {
  source_.FailAt("a", 50, {Code::kCorrupt, "damaged"});
  for (const int concurrency : {1, 4}) {
    const auto counts = Run({.shard_concurrency = concurrency});
    ASSERT_FALSE(counts);
    EXPECT_EQ(counts.error().code, Code::kCorrupt);
    EXPECT_EQ(counts.error().message, "damaged");
    EXPECT_EQ(std::count(listener_.events.begin(), listener_.events.end(), "start b 4"), 0);
  }
  EXPECT_TRUE(sink_.FinishedCollections().empty());
}

TEST_F(MigrateAllTest, AnErrorOfTheSinkIsPassedOnAsItIs) {
  for (const Code code : {Code::kFull, Code::kConflict, Code::kLeaseLost, Code::kUnavailable}) {
    sink_.fail_collection = [&](const std::string& collection) -> Status {
      if (collection == "b") return Error{code, "no", "try elsewhere"};
      return {};
    };
    const auto counts = Run({});
    ASSERT_FALSE(counts);
    EXPECT_EQ(counts.error().code, code);
    EXPECT_EQ(counts.error().ToString(), "no (try elsewhere)");
  }
}

TEST_F(MigrateAllTest, AStopIsNotTakenForSuccess) {
  std::stop_source stop;
  listener_.on_advance = [&] { stop.request_stop(); };
  const auto counts = Run({}, stop.get_token());
  ASSERT_FALSE(counts);
  EXPECT_EQ(counts.error().code, Code::kCancelled);
  EXPECT_EQ(listener_.advances, 1);
  EXPECT_TRUE(sink_.FinishedItems().empty());
  EXPECT_TRUE(sink_.FinishedCollections().empty());
}

TEST_F(MigrateAllTest, FollowersAreReadLastWithoutDelay) {
  LiveSource live(source_);
  const MonoTime began = RealEnv().MonoNow();
  const auto counts = RunWith(live, sink_, {.shard_concurrency = 4});
  ASSERT_TRUE(counts) << counts.error().ToString();
  EXPECT_EQ(counts->written, 300);
  EXPECT_EQ(live.times_counted, 3) << "once for each collection";
  std::vector<std::string> ids;
  for (const auto& document : sink_.Documents("a")) ids.push_back(document.id);
  const auto last_before = std::find(ids.begin(), ids.end(), "a29");
  const auto first_after = std::find(ids.begin(), ids.end(), "a90");
  EXPECT_LT(last_before, first_after);
  EXPECT_LT(RealEnv().MonoNow() - began, 20s);
}

TEST_F(MigrateAllTest, DifferentCountOfTheSourceIsAnError) {
  LiveSource live(source_);
  live.counted = 101;
  const auto counts = RunWith(live, sink_, {.shard_concurrency = 4});
  ASSERT_FALSE(counts);
  EXPECT_EQ(counts.error().code, Code::kCorrupt);
  EXPECT_NE(counts.error().message.find("counts 101 documents, but 100 were read"),
            std::string::npos);
}

TEST_F(MigrateAllTest, ATargetThatIsReplacedIsNoticed) {
  IdentifiedSink sink(sink_);
  listener_.on_advance = [&] { sink.identity = "2"; };
  const auto counts = RunWith(source_, sink, {});
  ASSERT_FALSE(counts);
  EXPECT_EQ(counts.error().code, Code::kIncompatible);
  EXPECT_EQ(counts.error().hint, "what was written before is gone: run the migration again");
  EXPECT_TRUE(sink_.FinishedCollections().empty());
}

TEST_F(MigrateAllTest, ACollectionWithoutShardsIsFinished) {
  pipeline::MemorySource empty{30};
  empty.Add("none", {.id = "1", .body = "{}"});
  class Shardless final : public pipeline::SourceWrapper {
   public:
    using SourceWrapper::SourceWrapper;
    Result<std::vector<Partition>> Partitions(const std::string&) override {
      return std::vector<Partition>();
    }
  } source(empty);
  const auto counts = RunWith(source, sink_, {.shard_concurrency = 2});
  ASSERT_TRUE(counts) << counts.error().ToString();
  EXPECT_EQ(counts->read, 0);
  EXPECT_EQ(listener_.events,
            (std::vector<std::string>{"prepared 1", "start none 0", "end none 0"}));
  EXPECT_EQ(sink_.FinishedCollections(), std::set<std::string>{"none"});
}

TEST_F(MigrateAllTest, EvaluatingChangesNothing) {
  pipeline::Pipeline pipeline{RealEnv(), source_, *plan_, sink_, letters_, throttle_};
  const auto changes = pipeline::PrepareCollections(pipeline, {}, true);
  ASSERT_TRUE(changes);
  EXPECT_EQ(changes->size(), 3U);
  EXPECT_EQ(pipeline::PrepareCollections(pipeline, {}, true)->size(), 3U);
}

TEST_F(MigrateAllTest, ReportsAnUnresponsiveSink) {
  StallingSink sink(sink_, [this](const pipeline::Patience&) {
    testing::Await([this] { return WaitedFor("sink, which has not answered for "); });
  });
  ASSERT_TRUE(RunWith(source_, sink, {}));
  EXPECT_TRUE(WaitedFor("sink, which has not answered for "));
  EXPECT_EQ(listener_.Waited().back(), "");
}

TEST_F(MigrateAllTest, ReportsAnUnresponsiveSource) {
  StallingSource source(source_, [this] {
    testing::Await([this] { return WaitedFor("source, which has not answered for "); });
  });
  ASSERT_TRUE(RunWith(source, sink_, {}));
  EXPECT_TRUE(WaitedFor("source, which has not answered for "));
}

TEST_F(MigrateAllTest, ReportsWhyTheSinkRetriesUntilItRecovers) {
  const std::string busy = "the sink: it is too busy";
  const auto said = [&] {
    const auto waits = listener_.Waited();
    return std::count(waits.begin(), waits.end(), busy);
  };
  std::atomic<bool> once = false;
  StallingSink sink(sink_, [&](const pipeline::Patience& patience) {
    if (once.exchange(true)) return;
    patience.waits(Error{Code::kUnavailable, "it is too busy"});
    testing::Await([&] { return said() > 3; });
  });
  ASSERT_TRUE(RunWith(source_, sink, {}));
  EXPECT_GT(said(), 3);
  const auto waits = listener_.Waited();
  const auto last = std::find(waits.rbegin(), waits.rend(), busy);
  ASSERT_NE(last, waits.rbegin()) << "it still waits";
  EXPECT_EQ(*std::prev(last), "") << "not even for an answer";
}

}  // namespace
}  // namespace muster::work
