// Collections that share a target in which documents with the same id replace each other.

#include <gtest/gtest.h>

#include "muster/work.h"
#include "pipeline/flow/memory_sink.h"
#include "pipeline/flow/memory_source.h"
#include "pipeline/flow/wrappers.h"
#include "store/backends.h"
#include "support/migrate.h"

namespace muster::work {
namespace {

// One target for all collections.
class OneTarget final : public pipeline::SinkWrapper {
 public:
  using SinkWrapper::SinkWrapper;
  bool ReplacesById(const pipeline::Collection&) const override { return true; }
  std::string Place(const std::string& name) const override { return id.empty() ? "all" : name; }
  Result<std::string> TableId(const std::string&) override { return id; }
  Result<std::optional<int64_t>> CountDocuments(const std::string&) override { return count; }

  std::optional<int64_t> count;
  std::string id;  // not empty: the target's names differ, as those of an alias and its index
};

// The second partition of a collection writes documents of the first again.
class LiveSource final : public pipeline::SourceWrapper {
 public:
  using SourceWrapper::SourceWrapper;
  Result<std::vector<pipeline::Partition>> Partitions(const std::string& collection) override {
    MUSTER_ASSIGN(auto partitions, inner().Partitions(collection));
    partitions.back().shard = partitions.front().shard;
    partitions.back().follows = true;
    return partitions;
  }
};

class MergedTargetsTest : public ::testing::Test {
 protected:
  MergedTargetsTest() {
    for (const char* name : {"a", "b"}) {
      for (int i = 0; i < 50; ++i) memory_.Add(name, {.id = std::to_string(i), .body = "{}"});
    }
  }

  Result<pipeline::Counts> Standalone() {
    MigrationObserver nothing;
    return MigrateAll(pipeline_, {}, nothing, {});
  }
  Result<WorkerReport> Shared() {
    const auto store = store::NewMemoryStore(RealEnv());
    WorkObserver nothing;
    return RunWorker(*store, pipeline_, {.run = {.name = "run"}, .worker = "w"}, nothing, {});
  }

  pipeline::MemorySource memory_{30};
  LiveSource source_{memory_};
  pipeline::MemorySink memory_sink_;
  OneTarget sink_{memory_sink_};
  testing::NoDeadLetters letters_;
  pipeline::Throttle throttle_{RealEnv()};
  std::unique_ptr<pipeline::TransformPlan> transforms_ = pipeline::ParseTransforms("", "").value();
  pipeline::Pipeline pipeline_{RealEnv(), source_,   *transforms_,   sink_,
                               letters_,  throttle_, {.merge = true}};
};

TEST_F(MergedTargetsTest, FewerDocumentsThanWereWrittenAreAnError) {
  sink_.count = 59;
  for (const auto& error : {Standalone().error(), Shared().error()}) {
    EXPECT_EQ(error.code, Code::kCorrupt);
    EXPECT_NE(error.message.find("all has 59 documents, but 60 were written to it from a, b"),
              std::string::npos)
        << error.message;
  }
}

TEST_F(MergedTargetsTest, DocumentsThatAreWrittenAgainAreOneDocument) {
  // 30 each, and 20 that follow.
  sink_.count = 60;
  EXPECT_TRUE(Standalone());
  EXPECT_TRUE(Shared());
  // A sink that cannot count.
  sink_.count.reset();
  EXPECT_TRUE(Standalone());
}

TEST_F(MergedTargetsTest, AnAliasAndItsIndexAreOneTarget) {
  sink_.id = "cluster/uuid";
  sink_.count = 59;
  for (const auto& error : {Standalone().error(), Shared().error()}) {
    EXPECT_EQ(error.code, Code::kCorrupt);
    EXPECT_NE(error.message.find("has 59 documents, but 60 were written to it from a, b"),
              std::string::npos)
        << error.message;
  }
  pipeline_.options.merge = false;
  for (const auto& error : {Standalone().error(), Shared().error()}) {
    EXPECT_EQ(error.code, Code::kConflict);
    EXPECT_NE(error.message.find("a and b both go to b: in the target, a is another name"),
              std::string::npos)
        << error.message;
  }
}

TEST_F(MergedTargetsTest, ATargetOfOneCollectionIsNotCounted) {
  sink_.count = 0;
  MigrationObserver nothing;
  EXPECT_TRUE(MigrateAll(
      pipeline_, {.allowed = [](const std::string& name) { return name == "a"; }}, nothing, {}));
}

}  // namespace
}  // namespace muster::work
