#include <gtest/gtest.h>

#include <algorithm>

#include "muster/migrate.h"
#include "pipeline/flow/memory_sink.h"
#include "pipeline/flow/memory_source.h"

namespace muster::pipeline {
namespace {

class NoLetters final : public DeadLetters {
 public:
  Status Add(const DeadLetter&) override { return {}; }
  Status Flush() override { return {}; }
};

class Listener final : public MigrationObserver {
 public:
  void Prepared(const std::vector<TargetChange>& changes) override {
    events.push_back("prepared " + std::to_string(changes.size()));
  }
  void CollectionStarted(const std::string& collection,
                         const std::vector<Partition>& partitions) override {
    events.push_back("start " + collection + " " + std::to_string(partitions.size()));
  }
  void Advanced(const Partition&, const Progress&) override {
    ++advances;
    if (on_advance) on_advance();
  }
  void CollectionEnded(const std::string& collection, const Counts& counts) override {
    events.push_back("end " + collection + " " + std::to_string(counts.written));
  }

  std::vector<std::string> events;
  int advances = 0;
  std::function<void()> on_advance = {};
};

class MigrateAllTest : public testing::Test {
 protected:
  MigrateAllTest() {
    for (const char* name : {"a", "b", "c__d"}) {
      for (int i = 0; i < 100; ++i) {
        source_.Add(name, {.id = name + std::to_string(i), .body = "{}"});
      }
    }
    plan_ = *ParseTransforms("", "");
  }

  Result<Counts> Run(const MigrateAllOptions& options, std::stop_token stop = {}) {
    Pipeline pipeline{
        RealEnv(), source_, *plan_, sink_, letters_, throttle_, {.limits = {.max_docs = 7}}};
    return MigrateAll(pipeline, options, listener_, stop);
  }

  MemorySource source_{30};
  MemorySink sink_;
  NoLetters letters_;
  std::unique_ptr<TransformPlan> plan_;
  Throttle throttle_{RealEnv()};
  Listener listener_;
};

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

TEST_F(MigrateAllTest, ShardsAtOnceLoseNothing) {
  const auto counts = Run({.shard_concurrency = 4});
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->written, 300);
  std::set<std::string> ids;
  for (const auto& document : sink_.Documents("b")) ids.insert(document.id);
  EXPECT_EQ(ids.size(), 100U);
}

TEST_F(MigrateAllTest, OnlyWhatIsAllowedIsTouched) {
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
    EXPECT_EQ(std::count(listener_.events.begin(), listener_.events.end(), "start b 4"), 0);
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
}

TEST_F(MigrateAllTest, EvaluatingChangesNothing) {
  Pipeline pipeline{RealEnv(), source_, *plan_, sink_, letters_, throttle_};
  const auto changes = PrepareCollections(pipeline, {}, true);
  ASSERT_TRUE(changes);
  EXPECT_EQ(changes->size(), 3U);
  EXPECT_EQ(PrepareCollections(pipeline, {}, true)->size(), 3U);
}

}  // namespace
}  // namespace muster::pipeline
