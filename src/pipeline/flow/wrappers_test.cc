// Goal: a wrapper forwards every call, including those added later to the interface with a default
// of their own. Method: the wrapped objects return nothing that is a default.

#include "pipeline/flow/wrappers.h"

#include <gtest/gtest.h>

namespace muster::pipeline {
namespace {

Document DocumentOf(std::string_view id) {
  Document document{};
  document.id = id;
  return document;
}

class LoudReader final : public Reader {
 public:
  Result<std::optional<Document>> Next() override { return DocumentOf("one"); }
  Result<std::optional<std::string>> Split() override { return "middle"; }
};

class LoudSource final : public Source {
 public:
  Result<std::vector<Collection>> Collections() override {
    return std::vector{Collection{.name = "one"}};
  }
  Result<std::optional<Collection>> Describe(const std::string& name) override {
    return Collection{.name = name, .metadata = "described"};
  }
  Result<std::optional<std::string>> TargetOf(const std::string& name) override {
    return "target of " + name;
  }
  Result<std::string> TableId(const std::string& name) override { return "id of " + name; }
  Result<std::string> GlobalMetadata() override { return "global"; }
  bool KeepsTypes() const override { return true; }
  bool KeepsRouting() const override { return true; }
  bool KeepsJsonNulls() const override { return true; }
  bool HasDeletes() const override { return true; }
  Result<std::vector<Partition>> Partitions(const std::string& name) override {
    return std::vector{Partition{.collection = name}};
  }
  Result<std::unique_ptr<Reader>> Read(const Partition& /*partition*/, const std::string& position,
                                       std::stop_token stop) override {
    if (position == "nowhere" && stop.stop_requested()) return Error{Code::kCancelled, "stopped"};
    return std::make_unique<LoudReader>();
  }
  Result<std::optional<int64_t>> CountAgain(const std::vector<Partition>& partitions) override {
    return static_cast<int64_t>(100 + partitions.size());
  }
  std::optional<double> FractionBefore(const Partition& /*partition*/,
                                       const std::string& /*position*/) override {
    return 0.25;
  }
};

class LoudPlan final : public TransformPlan {
 public:
  Result<std::vector<std::unique_ptr<Transform>>> Make(
      const std::string& /*collection*/) const override {
    return std::vector<std::unique_ptr<Transform>>(2);
  }
  std::string TargetName(const std::string& name) const override { return "target of " + name; }
  bool EditsDocuments() const override { return false; }
  bool ChoosesTargets() const override { return true; }
  std::string Scripts() const override { return "scripts"; }
  Result<Collection> Target(const Collection& collection) const override {
    return Collection{.name = collection.name, .metadata = "edited"};
  }
};

class LoudWriter final : public Writer {
 public:
  explicit LoudWriter(std::string& calls) : calls_(calls) {}

  const std::optional<Progress>& Known() const override { return known_; }
  bool Sealed() const override { return true; }
  Result<std::vector<Refused>> Write(const Batch& /*batch*/, const Progress& after,
                                     const Patience& /*patience*/) override {
    return std::vector{Refused{.index = 3, .reason = after.position}};
  }
  bool RecordsRefusals(RefusalRecorder record) override {
    return static_cast<bool>(record(DocumentOf("refused"), "why"));
  }
  Status Flush() override {
    calls_ += "flush ";
    return {};
  }
  Result<std::optional<Progress>> Seal() override { return Progress{.position = "sealed"}; }
  Status Finish() override {
    calls_ += "finish";
    return {};
  }

 private:
  std::string& calls_;
  const std::optional<Progress> known_ = Progress{.position = "known"};
};

class LoudSink final : public Sink {
 public:
  Result<std::vector<TargetChange>> Prepare(const Collection& collection, bool evaluate) override {
    return std::vector{TargetChange{collection.name, evaluate ? "evaluated" : "prepared"}};
  }
  Result<std::vector<TargetChange>> PrepareGlobal(const std::string& metadata,
                                                  bool evaluate) override {
    return std::vector{TargetChange{metadata, evaluate ? "evaluated" : "prepared"}};
  }
  bool CanDelete() const override { return true; }
  bool ReplacesById(const Collection& /*collection*/) const override { return true; }
  std::string Place(const std::string& name) const override { return "place of " + name; }
  Result<std::string> Identity(const std::string& name) override { return "identity of " + name; }
  Result<std::string> TableId(const std::string& name) override { return "id of " + name; }
  Result<std::optional<int64_t>> CountDocuments(const std::string& /*name*/) override { return 7; }
  Status CheckChosen(const std::string& /*target*/) const override { return {}; }
  BatchLimits PreferredLimits() const override { return {.max_docs = 3, .max_bytes = 5}; }
  Result<std::unique_ptr<Writer>> Open(const std::string& /*name*/, const Fence& fence) override {
    calls += "open " + std::to_string(fence.epoch) + " ";
    return std::make_unique<LoudWriter>(calls);
  }
  Status Finish(const std::string& name) override {
    calls += "finish " + name;
    return {};
  }

  std::string calls;
};

TEST(ReaderWrapper, ForwardsEveryCall) {
  ReaderWrapper reader(std::make_unique<LoudReader>());
  EXPECT_EQ((*reader.Next())->id, "one");
  EXPECT_EQ(*reader.Split(), "middle");
}

TEST(SourceWrapper, ForwardsEveryCall) {
  LoudSource loud;
  SourceWrapper wrapper(loud);
  Source& source = wrapper;
  EXPECT_EQ(source.Collections()->size(), 1U);
  EXPECT_EQ((*source.Describe("a"))->metadata, "described");
  EXPECT_EQ(*source.TargetOf("a"), "target of a");
  EXPECT_EQ(*source.TableId("a"), "id of a");
  EXPECT_EQ(*source.GlobalMetadata(), "global");
  EXPECT_TRUE(source.KeepsTypes());
  EXPECT_TRUE(source.KeepsRouting());
  EXPECT_TRUE(source.KeepsJsonNulls());
  EXPECT_TRUE(source.HasDeletes());
  EXPECT_EQ(source.Partitions("a")->at(0).collection, "a");
  EXPECT_EQ(*source.CountAgain({{}, {}}), 102);
  EXPECT_EQ(source.FractionBefore({}, ""), 0.25);
  EXPECT_TRUE(source.Read({}, "", {}));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(source.Read({}, "nowhere", stop.get_token()));
}

TEST(TransformPlanWrapper, ForwardsEveryCall) {
  const LoudPlan loud;
  const TransformPlanWrapper wrapper(loud);
  const TransformPlan& plan = wrapper;
  EXPECT_EQ(plan.Make("a")->size(), 2U);
  EXPECT_EQ(plan.TargetName("a"), "target of a");
  EXPECT_FALSE(plan.EditsDocuments());
  EXPECT_TRUE(plan.ChoosesTargets());
  EXPECT_EQ(plan.Scripts(), "scripts");
  EXPECT_EQ(plan.Target({"a"})->metadata, "edited");
}

TEST(WriterWrapper, ForwardsEveryCall) {
  std::string calls;
  WriterWrapper wrapper(std::make_unique<LoudWriter>(calls));
  Writer& writer = wrapper;
  EXPECT_EQ(writer.Known()->position, "known");
  EXPECT_TRUE(writer.Sealed());
  EXPECT_EQ(writer.Write({}, {.position = "after"}, {})->at(0).reason, "after");
  std::string refused;
  EXPECT_TRUE(writer.RecordsRefusals([&](const Document& document, std::string_view reason) {
    refused = std::string(document.id) + ": " + std::string(reason);
    return Status();
  }));
  EXPECT_EQ(refused, "refused: why");
  EXPECT_EQ((*writer.Seal())->position, "sealed");
  EXPECT_TRUE(writer.Flush());
  EXPECT_TRUE(writer.Finish());
  EXPECT_EQ(calls, "flush finish");
}

TEST(SinkWrapper, ForwardsEveryCall) {
  LoudSink loud;
  SinkWrapper wrapper(loud);
  Sink& sink = wrapper;
  EXPECT_EQ(sink.Prepare({"a"}, true)->at(0).change, "evaluated");
  EXPECT_EQ(sink.PrepareGlobal("m", false)->at(0).change, "prepared");
  EXPECT_TRUE(sink.CanDelete());
  EXPECT_TRUE(sink.ReplacesById({"a"}));
  EXPECT_EQ(sink.Place("a"), "place of a");
  EXPECT_EQ(*sink.Identity("a"), "identity of a");
  EXPECT_EQ(*sink.TableId("a"), "id of a");
  EXPECT_EQ(*sink.CountDocuments("a"), 7);
  EXPECT_EQ(sink.PreferredLimits().max_docs, 3U);
  EXPECT_TRUE(sink.CheckChosen("a"));
  Fence fence{};
  fence.epoch = 4;
  EXPECT_TRUE(sink.Open("a", fence));
  EXPECT_TRUE(sink.Finish("a"));
  EXPECT_EQ(loud.calls, "open 4 finish a");
}

}  // namespace
}  // namespace muster::pipeline
