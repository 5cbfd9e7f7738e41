// Goal: a distributed Map over more items than a record holds gives each of them to one child, and
// its results are where AWS would write them. Method: the real engine on the memory store, with a
// bucket in memory, beside the same machine run in memory.

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "core/json.h"
#include "core/virtual_env.h"
#include "muster/states.h"
#include "states/run/runner.h"

namespace muster::states {
namespace {

// A bucket: what is read from it, and what was written into it by key.
class Bucket final : public TaskExecutor {
 public:
  bool Runs(std::string_view) const override { return true; }
  TaskOutcome Start(const TaskCall& call, TaskContext&) override {
    const std::lock_guard lock(mutex_);
    if (call.resource == "test:list") return TaskSuccess{{{"Body", ToJsonText(items)}}};
    if (call.resource == "test:call") {
      seen[call.input["id"].get<int>()]++;
      if (fails.contains(call.input["id"].get<int>())) return TaskFailure{"Broken", "for good"};
      return TaskSuccess{call.input};
    }
    const std::string key = call.input["Key"];
    if (refuse) return TaskFailure{"S3.NoSuchBucketException", "no such bucket"};
    bodies[key] = call.input["Body"];
    return TaskSuccess{Json::object()};
  }
  TaskOutcome Poll(const TaskCall& call, const Json&, TaskContext& context) override {
    return Start(call, context);
  }
  void Cancel(const TaskCall&, const Json&, TaskContext&) override {}

  Json items = Json::array();
  std::set<int> fails;
  bool refuse = false;
  std::map<int, int> seen;
  std::map<std::string, std::string> bodies;

 private:
  std::mutex mutex_;
};

std::string Machine(const std::string& map_fields) {
  return R"({"StartAt":"All","States":{"All":{"Type":"Map","End":true,"Label":"Each",
    "ItemReader":{"Resource":"test:list","ReaderConfig":{"InputType":"JSON"}},
    "ItemProcessor":{"ProcessorConfig":{"Mode":"DISTRIBUTED","ExecutionType":"STANDARD"},
      "StartAt":"One","States":{"One":{"Type":"Task","Resource":"test:call","End":true}}})" +
         map_fields + "}}}";
}

constexpr char kWriter[] =
    R"(,"ResultWriter":{"Resource":"arn:aws:states:::s3:putObject",
        "Parameters":{"Bucket":"b","Prefix":"out"}})";

class DistributedMapTest : public ::testing::Test {
 protected:
  void SetUpItems(int count, size_t padding = 10) {
    for (int i = 0; i < count; ++i)
      bucket_.items.push_back({{"id", i}, {"text", std::string(padding, 'x')}});
  }

  Execution Run(const std::string& definition, int threads = 2) {
    States states(*store_, {&bucket_}, {.owner = "test", .idle_wait = milliseconds(5)}, RealEnv());
    const Status started = states.Start({.name = "run", .definition = definition, .input = "{}"});
    EXPECT_TRUE(started) << started.error().message;
    {
      std::vector<std::jthread> workers;
      for (int i = 0; i < threads; ++i)
        workers.emplace_back([&] { EXPECT_TRUE(states.Work("run", {})); });
    }
    return states.Find("run").value().value();
  }

  states::RunResult RunHere(const std::string& definition) {
    VirtualEnv env{WallTime{}};
    return states::RunInMemory(states::ReadDefinition(definition, "test", nullptr).value(),
                               {.name = "run", .input = states::MakeValue(Json::object())}, env,
                               nullptr, bucket_);
  }

  std::unique_ptr<store::Store> store_ = store::OpenStore("memory:", RealEnv()).value();
  Bucket bucket_;
};

TEST_F(DistributedMapTest, EveryItemOfManyPiecesHasOneChild) {
  SetUpItems(3'000, 200);
  const Execution execution = Run(
      Machine(R"(,"MaxConcurrency":500,"ResultWriter":{"WriterConfig":{"Transformation":"FLATTEN"}},
                     "ResultSelector":{"first.$":"$[0].id"})"),
      4);
  // The outputs together are larger than what may be passed on.
  EXPECT_EQ(execution.status, ExecutionStatus::kFailed);
  EXPECT_EQ(execution.error, "States.DataLimitExceeded");
  EXPECT_EQ(bucket_.seen.size(), 3'000u);
  for (const auto& [id, calls] : bucket_.seen) EXPECT_EQ(calls, 1) << id;
}

TEST_F(DistributedMapTest, ResultsAreWrittenAsAwsDoes) {
  SetUpItems(5);
  bucket_.fails = {3};
  const Execution execution = Run(Machine(std::string(kWriter) + R"(,"ToleratedFailureCount":1)"));
  ASSERT_EQ(execution.status, ExecutionStatus::kSucceeded) << execution.cause;
  EXPECT_EQ(
      Json::parse(execution.output),
      Json::parse(R"({"MapRunArn":"arn:aws:states:us-east-1:111111111111:mapRun:machine/Each:run",
              "ResultWriterDetails":{"Bucket":"b","Key":"out/run-1/manifest.json"}})"));
  ASSERT_EQ(bucket_.bodies.size(), 3u);
  const std::string succeeded = bucket_.bodies["out/run-1/SUCCEEDED_0.json"];
  const std::string failed = bucket_.bodies["out/run-1/FAILED_0.json"];
  const Json manifest = Json::parse(bucket_.bodies["out/run-1/manifest.json"]);
  EXPECT_EQ(manifest["DestinationBucket"], "b");
  EXPECT_EQ(manifest["MapRunArn"], Json::parse(execution.output)["MapRunArn"]);
  EXPECT_EQ(manifest["ResultFiles"]["SUCCEEDED"][0]["Key"], "out/run-1/SUCCEEDED_0.json");
  EXPECT_EQ(manifest["ResultFiles"]["SUCCEEDED"][0]["Size"], succeeded.size());
  EXPECT_EQ(manifest["ResultFiles"]["FAILED"][0]["Size"], failed.size());
  EXPECT_EQ(manifest["ResultFiles"]["PENDING"], Json::array());
  const Json all = Json::parse(succeeded);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0]["Status"], "SUCCEEDED");
  EXPECT_EQ(Json::parse(all[0]["Input"].get<std::string>())["id"], 0);
  EXPECT_EQ(all[0]["Output"], all[0]["Input"]);
  EXPECT_EQ(all[0]["StateMachineArn"],
            "arn:aws:states:us-east-1:111111111111:stateMachine:machine/Each");
  EXPECT_TRUE(all[0].contains("StartDate") && all[0].contains("StopDate"));
  const Json lost = Json::parse(failed);
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0]["Status"], "FAILED");
  EXPECT_EQ(lost[0]["Error"], "Broken");
  EXPECT_EQ(lost[0]["Cause"], "for good");
  EXPECT_FALSE(lost[0].contains("Output"));
}

TEST_F(DistributedMapTest, FailedMapHasWrittenTheExistingResults) {
  SetUpItems(5);
  bucket_.fails = {0};
  const Execution execution = Run(Machine(std::string(kWriter) + R"(,"MaxConcurrency":1)"), 1);
  EXPECT_EQ(execution.status, ExecutionStatus::kFailed);
  EXPECT_EQ(execution.error, "States.ExceedToleratedFailureThreshold");
  EXPECT_EQ(Json::parse(bucket_.bodies["out/run-1/FAILED_0.json"]).size(), 1u);
  EXPECT_EQ(Json::parse(bucket_.bodies["out/run-1/PENDING_0.json"]).size(), 4u);
  EXPECT_TRUE(bucket_.bodies.contains("out/run-1/manifest.json"));
}

TEST_F(DistributedMapTest, ManyResultsAreInSeveralFiles) {
  SetUpItems(1'500, 4'000);
  const Execution execution =
      Run(Machine(R"(,"ResultWriter":{"Resource":"arn:aws:states:::s3:putObject",
        "Parameters":{"Bucket":"b"},
        "WriterConfig":{"OutputType":"JSONL","Transformation":"COMPACT"}})"));
  ASSERT_EQ(execution.status, ExecutionStatus::kSucceeded) << execution.cause;
  const Json manifest = Json::parse(bucket_.bodies["run-1/manifest.json"]);
  const Json& files = manifest["ResultFiles"]["SUCCEEDED"];
  ASSERT_GT(files.size(), 1u);
  int lines = 0;
  for (const Json& file : files) {
    const std::string& body = bucket_.bodies[file["Key"].get<std::string>()];
    EXPECT_EQ(body.size(), file["Size"].get<size_t>());
    lines += static_cast<int>(std::count(body.begin(), body.end(), '\n'));
  }
  EXPECT_EQ(lines, 1'500);
}

TEST_F(DistributedMapTest, AWriterThatFailsFailsTheMap) {
  SetUpItems(2);
  bucket_.refuse = true;
  const Execution execution = Run(Machine(kWriter));
  EXPECT_EQ(execution.status, ExecutionStatus::kFailed);
  EXPECT_EQ(execution.error, "States.ResultWriterFailed");
}

TEST_F(DistributedMapTest, ItIsTheSameInMemory) {
  SetUpItems(4);
  bucket_.fails = {1};
  const std::string machine = Machine(std::string(kWriter) + R"(,"ToleratedFailureCount":2)");
  const Execution durable = Run(machine);
  const auto durable_bodies = bucket_.bodies;
  bucket_.bodies.clear();
  const states::RunResult here = RunHere(machine);
  ASSERT_EQ(here.status, states::FlowStatus::kSucceeded) << here.failure.cause;
  EXPECT_EQ(*here.output, Json::parse(durable.output));
  ASSERT_EQ(bucket_.bodies.size(), durable_bodies.size());
  for (const auto& [key, body] : bucket_.bodies) EXPECT_TRUE(durable_bodies.contains(key)) << key;
}

TEST_F(DistributedMapTest, ChildIsASeparateExecution) {
  SetUpItems(2);
  const std::string machine = R"({"StartAt":"All","States":{"All":{"Type":"Map","End":true,
    "ItemReader":{"Resource":"test:list","ReaderConfig":{"InputType":"JSON"}},
    "ItemSelector":{"item.$":"$$.Map.Item.Value.id"},
    "ItemProcessor":{"ProcessorConfig":{"Mode":"DISTRIBUTED","ExecutionType":"STANDARD"},
      "StartAt":"Both","States":{"Both":{"Type":"Parallel","End":true,"Branches":[
        {"StartAt":"One","States":{"One":{"Type":"Pass","End":true,
          "Parameters":{"input.$":"$$.Execution.Input","name.$":"$$.Execution.Name"}}}}]}}}}}})";
  const Execution durable = Run(machine);
  ASSERT_EQ(durable.status, ExecutionStatus::kSucceeded) << durable.cause;
  const states::RunResult here = RunHere(machine);
  EXPECT_EQ(Json::parse(durable.output), *here.output);
  EXPECT_EQ((*here.output)[1][0]["input"], (Json{{"item", 1}}));
}

}  // namespace
}  // namespace muster::states
