// Goal: what the documents of a run choose is created once, checked as other targets are, and never
// shared by collections unawares. Method: a sink without progress, and scripts that name indices.

#include "work/chosen_records.h"

#include <gtest/gtest.h>

#include "muster/work.h"
#include "pipeline/flow/memory_source.h"
#include "pipeline/flow/wrappers.h"
#include "store/backends.h"
#include "support/divided_sink.h"
#include "support/migrate.h"
#include "work/records.h"
#include "work/redrive_targets.h"

namespace muster::work {
namespace {

// Collections have metadata, and tables if they are told to.
class IndexSource final : public pipeline::SourceWrapper {
 public:
  using SourceWrapper::SourceWrapper;
  Result<std::optional<pipeline::Collection>> Describe(const std::string& name) override {
    return std::optional(pipeline::Collection{
        name, R"({"mappings":{"properties":{"n":{"type":"long"}}},"aliases":{"all":{}}})"});
  }
  Result<std::string> TableId(const std::string& name) override {
    return name == "a" ? table : std::string();
  }

  std::string table;
};

class ChosenRecordsTest : public ::testing::Test {
 protected:
  ChosenRecordsTest() {
    for (const char* name : {"a", "b"}) {
      for (int i = 0; i < 60; ++i) {
        memory_.Add(name,
                    {.id = name + std::to_string(i), .body = R"({"n":)" + std::to_string(i) + "}"});
      }
    }
  }

  // `index`: an expression of n and collection.
  void Choose(const std::string& index, const std::string& id = "id") {
    plan_ = pipeline::ParseTransforms("- javascript: \"({n}, {id, collection}) => [{id: " + id +
                                          ", index: " + index + ", source: {n}}]\"",
                                      "t")
                .value();
  }
  Result<pipeline::Counts> Standalone(bool merge = false) {
    pipeline::Pipeline pipeline = Pipeline(merge);
    MigrationObserver nothing;
    return MigrateAll(pipeline, {.shard_concurrency = 2}, nothing, {});
  }
  Result<WorkerReport> Shared(const std::string& run, bool merge = false) {
    pipeline::Pipeline pipeline = Pipeline(merge);
    WorkObserver nothing;
    return RunWorker(*store_, pipeline, {.run = {.name = run}, .worker = "w", .slots = 2}, nothing,
                     {});
  }
  pipeline::Pipeline Pipeline(bool merge) {
    return {RealEnv(),
            source_,
            *plan_,
            sink_,
            letters_,
            throttle_,
            {.limits = {.max_docs = 7}, .merge = merge}};
  }
  static void ExpectError(const Error& error, Code code, const std::string& part) {
    EXPECT_EQ(error.code, code);
    EXPECT_NE(error.message.find(part), std::string::npos) << error.message;
  }

  pipeline::MemorySource memory_{20};
  IndexSource source_{memory_};
  testing::DividedSink sink_;
  testing::NoDeadLetters letters_;
  pipeline::Throttle throttle_{RealEnv()};
  std::unique_ptr<store::Store> store_ = store::NewMemoryStore(RealEnv());
  std::unique_ptr<pipeline::TransformPlan> plan_;
};

TEST_F(ChosenRecordsTest, AChosenTargetIsCreatedOnceInTheShapeOfItsCollection) {
  Choose("collection + n % 3");
  ASSERT_TRUE(Shared("r"));
  // With those of the two collections.
  EXPECT_EQ(sink_.created(), 8);
  for (const char* name : {"a0", "a1", "a2", "b0", "b1", "b2"}) {
    EXPECT_EQ(sink_.Ids(name).size(), 20U) << name;
    EXPECT_EQ(sink_.Metadata(name), R"({"mappings":{"properties":{"n":{"type":"long"}}}})");
  }
  const auto again = Standalone();
  ASSERT_TRUE(again) << again.error().ToString();
  EXPECT_EQ(again->written, 120);
  EXPECT_EQ(sink_.created(), 8);
}

TEST_F(ChosenRecordsTest, CollectionsShareAChosenTargetOnlyIfTheyAreMerged) {
  Choose("'all'");
  ExpectError(Standalone().error(), Code::kIncompatible, "both go to all");
  ExpectError(Shared("r").error(), Code::kIncompatible, "both go to all");
  EXPECT_TRUE(Standalone(/*merge=*/true));
  EXPECT_TRUE(Shared("merged", /*merge=*/true));
  EXPECT_EQ(sink_.Ids("all").size(), 120U);
}

TEST_F(ChosenRecordsTest, AChosenTargetMayNotBeThatOfAnotherCollection) {
  Choose("collection === 'a' ? 'b' : null");
  ExpectError(Standalone().error(), Code::kIncompatible, "both go to b");
  ExpectError(Shared("r").error(), Code::kIncompatible, "both go to b");
}

TEST_F(ChosenRecordsTest, MergedDocumentsThatReplaceEachOtherAreAnError) {
  Choose("'all' + n % 2", "String(n)");
  ExpectError(Standalone(/*merge=*/true).error(), Code::kCorrupt, "60 documents, but 120");
  ExpectError(Shared("r", /*merge=*/true).error(), Code::kCorrupt, "60 documents, but 120");
}

TEST_F(ChosenRecordsTest, ARefusedTargetEndsTheRun) {
  Choose("n === 42 ? 'closed' : null");
  ExpectError(Standalone().error(), Code::kIncompatible, "it is closed");
  ExpectError(Shared("r").error(), Code::kIncompatible, "it is closed");
}

TEST_F(ChosenRecordsTest, NothingIsWrittenToWhatIsRead) {
  Choose("'x'");
  ASSERT_TRUE(sink_.Prepare({.name = "x"}, false));
  source_.table = *sink_.TableId("x");
  ExpectError(Standalone().error(), Code::kIncompatible, "that a is read from");
  ExpectError(Shared("r").error(), Code::kIncompatible, "that a is read from");
  EXPECT_TRUE(sink_.Ids("x").empty());
}

TEST_F(ChosenRecordsTest, ATargetThatIsGoneIsNotCreatedAgain) {
  Choose("collection + n % 3");
  ASSERT_TRUE(Shared("r"));
  sink_.Remove("a1");
  const auto again = Shared("r");
  ASSERT_FALSE(again);
  ExpectError(again.error(), Code::kIncompatible, "'a1' is not the target");
  EXPECT_FALSE(sink_.Has("a1"));
}

TEST_F(ChosenRecordsTest, ARedriveWritesOnlyToTargetsThatExistAndAreOfItsCollection) {
  Choose("collection + n % 3");
  ASSERT_TRUE(Shared("r"));
  RedriveStep step;
  step.name = "r";
  step.store = store_.get();
  step.in_run = true;
  step.run = RunBody::FromJson(store_->Get(kRunKind, "r").value()->body).value();
  const auto admit = [&](bool merge, const std::string& collection, const std::string& target) {
    RedriveTargets targets(merge);
    targets.SetStep(step);
    return targets.Admit(Pipeline(merge), collection, target, {});
  };
  EXPECT_TRUE(admit(false, "a", "a1"));
  EXPECT_TRUE(admit(false, "b", "b")) << "its own";
  EXPECT_TRUE(admit(true, "b", "a1"));
  ExpectError(admit(false, "b", "a1").error(), Code::kIncompatible, "a and b both go to a1");
  ExpectError(admit(false, "a", "a7").error(), Code::kNotFound, "a7 does not exist");
  EXPECT_FALSE(sink_.Has("a7"));
  // Letters of a standalone migration, of which nothing is in the store.
  step.in_run = false;
  RedriveTargets targets(false);
  targets.SetStep(step);
  EXPECT_TRUE(targets.Admit(Pipeline(false), "a", "a1", {}));
  EXPECT_FALSE(targets.Admit(Pipeline(false), "b", "a1", {}));
}

TEST_F(ChosenRecordsTest, TooManyTargetsAreAnError) {
  for (int i = 60; i < 1'100; ++i) {
    memory_.Add("a", {.id = "a" + std::to_string(i), .body = R"({"n":)" + std::to_string(i) + "}"});
  }
  Choose("collection + n");
  const auto done = Shared("r");
  ASSERT_FALSE(done);
  ExpectError(done.error(), Code::kIncompatible, "choose more than 1000 indices");
  EXPECT_NE(done.error().hint.find("fewer"), std::string::npos);
  // Those of the two collections, and two slots may each be at the last one.
  EXPECT_GE(sink_.created(), 1'002);
  EXPECT_LE(sink_.created(), 1'003);
}

}  // namespace
}  // namespace muster::work
