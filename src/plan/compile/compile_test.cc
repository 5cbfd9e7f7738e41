// Goal: a compiled plan does what the plan defines, and reports every failure. Method: compiled
// machines run in memory and virtual time, children included, against services that fail on demand.

#include "plan/compile/compile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "muster/env.h"
#include "plan/compile/deployment.h"
#include "plan/explain/explain.h"
#include "plan/run/fake_world.h"

namespace muster::plan {
namespace {

using Told = std::optional<states::TaskOutcome>;

// Two ranks, and one that does not depend on the second; `extra` has further lines.
Plan Small(const std::string& extra = "") {
  const std::string text = R"(plan: small
variables: {customer: acme, app-name: app, region: us-east-1, account: "42"}
profiles:
  aws: {kind: aws}
objects: {A: {}, B: {}, C: {}, D: {}}
scripts:
  load-a: {schema: s, table: a}
  load-b: {schema: s, table: b}
  load-c: {schema: s, table: c}
ranks:
  - {rank: 100, external: true}
  - {rank: 200, extract: [A, B], transform: [load-a, load-b]}
  - {rank: 300, extract: [C], transform: [load-c]}
  - {rank: 400, needs: [200], extract: [D]}
)" + extra;
  CheckedPlan checked = ParsePlan(text, "small.yaml", {});
  if (!checked.plan) throw std::runtime_error(checked.problems.front());
  return *std::move(checked.plan);
}

CompiledPlan CompileSmall(const std::string& extra = "") {
  const Plan plan = Small(extra);
  return Compile(plan, plan.profiles.front(), Arrange(plan, Order(plan)));
}

const Json kInput{{"tenantId", "customer-001"}, {"migrationId", "m-1"}, {"environment", "dev"}};

// The statuses that were written, in order.
std::vector<std::string> Statuses(const FakeWorld& world) {
  std::vector<std::string> statuses;
  for (const auto& call : world.CallsTo("dynamodb")) {
    statuses.push_back(call.input.contains("Item")
                           ? call.input["Item"]["status"]["S"]
                           : call.input["ExpressionAttributeValues"][":status"]["S"]);
  }
  return statuses;
}

// Fails every call of a state.
FakeWorld::Answer Failing(const std::string& state, const std::string& error) {
  return [=](const states::TaskCall& call, int64_t) {
    return call.state == state ? Told(states::TaskFailure{error, "on purpose"}) : Told();
  };
}

TEST(Compile, EveryMachineOfTheExamplePassesTheCheck) {
  Env& env = RealEnv();
  for (const char* profile : {"local", "aws"}) {
    const auto outlook = LoadOutlook(MUSTER_PLAN_EXAMPLE, {.profile = profile});
    ASSERT_TRUE(outlook) << outlook.error().ToString();
    EXPECT_EQ(states::CheckStates(outlook->compiled.main.definition.dump(), "main", env),
              std::vector<std::string>());
    EXPECT_EQ(outlook->compiled.ranks.size(), std::string(profile) == "aws" ? 15U : 0U);
    for (const RankMachine& rank : outlook->compiled.ranks) {
      EXPECT_EQ(states::CheckStates(rank.machine.definition.dump(), std::to_string(rank.rank), env),
                std::vector<std::string>());
    }
  }
}

// A resume would otherwise wait two minutes without an explanation.
TEST(Compile, ADamagedStatusFailsAtOnceLocally) {
  const auto outlook = LoadOutlook(MUSTER_PLAN_EXAMPLE, {.profile = "local"});
  ASSERT_TRUE(outlook) << outlook.error().ToString();
  FakeWorld world(outlook->compiled,
                  [](const states::TaskCall& call, int64_t) -> std::optional<states::TaskOutcome> {
                    if (call.resource != "muster:status") return std::nullopt;
                    return states::TaskFailure{"Status.Corrupt", "it is damaged"};
                  });
  const auto run = world.Run({{"tenantId", "t"}, {"migrationId", "m"}, {"environment", "e"}});
  EXPECT_EQ(run.failure.error, "Status.Corrupt");
  EXPECT_EQ(run.failure.cause, "it is damaged");
  EXPECT_EQ(world.NowSeconds(), 0);
  FakeWorld away(
      outlook->compiled,
      [](const states::TaskCall& call, int64_t number) -> std::optional<states::TaskOutcome> {
        if (call.resource != "muster:status" || number > 1) return std::nullopt;
        return states::TaskFailure{"Status.Unavailable", "the store is away"};
      });
  EXPECT_EQ(away.Run({{"tenantId", "t"}, {"migrationId", "m"}, {"environment", "e"}}).status,
            states::FlowStatus::kSucceeded);
}

TEST(Compile, PermanentFailuresAreNotRetriedLocally) {
  const auto outlook = LoadOutlook(MUSTER_PLAN_EXAMPLE, {.profile = "local"});
  ASSERT_TRUE(outlook) << outlook.error().ToString();
  std::map<std::string, int> tasks;
  const std::function<void(const Json&)> look = [&](const Json& json) {
    if (json.is_array()) {
      for (const Json& element : json) look(element);
    }
    if (!json.is_object()) return;
    for (const auto& [name, value] : json.items()) {
      look(value);
      const std::string resource = name == "Resource" ? value.get<std::string>() : "";
      if (resource != "muster:copy" && resource != "muster:transform") continue;
      ++tasks[resource];
      const std::string family = resource == "muster:copy" ? "Copy" : "Transform";
      const Json& first = json["Retry"][0];
      EXPECT_EQ(first["MaxAttempts"], 0);
      const auto errors = first["ErrorEquals"].get<std::vector<std::string>>();
      for (const char* error : {".NotFound", ".Invalid", ".ForeignKey"}) {
        EXPECT_NE(std::find(errors.begin(), errors.end(), family + error), errors.end()) << error;
      }
      EXPECT_GT(json["Retry"][1]["MaxAttempts"], 0) << "an outage is";
    }
  };
  look(outlook->compiled.main.definition);
  EXPECT_GT(tasks["muster:copy"], 10);
  EXPECT_GT(tasks["muster:transform"], 10);
}

TEST(Compile, TheOutputHasTheKnownFormat) {
  const CompiledPlan compiled = CompileSmall();
  FakeWorld world(compiled);
  const auto run = world.Run(kInput);
  ASSERT_EQ(run.status, states::FlowStatus::kSucceeded) << run.failure.error << run.failure.cause;
  const Json flow{
      {"ExecutionId", "x-0"}, {"ExecutionStatus", "Successful"}, {"RecordsProcessed", 7}};
  EXPECT_EQ((*run.output)["tenantId"], "customer-001");
  EXPECT_EQ((*run.output)["migrationId"], "m-1");
  EXPECT_TRUE(run.output->contains("initResult"));
  EXPECT_TRUE(run.output->contains("completeResult"));
  EXPECT_EQ((*run.output)["appflow"], (Json{{"A", flow}, {"B", flow}, {"C", flow}, {"D", flow}}));
  EXPECT_EQ((*run.output)["glue"].size(), 3U);
  EXPECT_EQ((*run.output)["glue"]["load-c"]["JobName"], "migration-load-c-dev");
  EXPECT_EQ(Statuses(world), (std::vector<std::string>{"IN_PROGRESS", "COMPLETED"}));
}

TEST(Compile, CallsMatchTheApisOfTheServices) {
  const CompiledPlan compiled = CompileSmall();
  FakeWorld world(compiled);
  world.Run(kInput);
  EXPECT_EQ(world.CallsTo("startFlow").front().input, (Json{{"FlowName", "migration-acme-A"}}));
  EXPECT_EQ(world.CallsTo("startJobRun").front().input, (Json{{"JobName", "migration-load-a-dev"},
                                                              {"Arguments",
                                                               {{"--TENANT_ID", "customer-001"},
                                                                {"--ENTITY_NAME", "load-a"},
                                                                {"--TARGET_SCHEMA", "s"},
                                                                {"--TARGET_TABLE", "a"}}},
                                                              {"WorkerType", "G.1X"},
                                                              {"NumberOfWorkers", 2}}));
  const Json init = world.calls().front().input;
  EXPECT_EQ(init["TableName"], "migration-status-dev");
  EXPECT_EQ(init["Item"]["tenant_id"], (Json{{"S", "customer-001"}}));
  EXPECT_TRUE(init["Item"]["started_at"].contains("S"));
}

TEST(Compile, FailedTaskIsRetriedThenReportedAndItsSiblingsContinue) {
  const CompiledPlan compiled = CompileSmall();
  FakeWorld world(compiled,
                  Failing("StartGlue-200-load-a", "Glue.ConcurrentRunsExceededException"));
  const auto run = world.Run(kInput);
  EXPECT_EQ(run.status, states::FlowStatus::kFailed);
  EXPECT_NE(run.failure.cause.find("RankFailed: rank 200: failed to transform [\"load-a\"]"),
            std::string::npos)
      << run.failure.cause;
  std::vector<int64_t> times;
  for (const auto& call : world.calls()) {
    if (call.state == "StartGlue-200-load-a") times.push_back(call.at_s);
  }
  ASSERT_EQ(times.size(), 3U);
  EXPECT_EQ(times[1] - times[0], 120);
  EXPECT_EQ(times[2] - times[1], 240);
  EXPECT_EQ(world.CallsOf("StartGlue-200-load-b"), 1);
  const auto told = world.CallsTo("sns:publish");
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].input["TopicArn"],
            "arn:aws:sns:us-east-1:42:app-migration-stepfunctions-dev-failures");
  EXPECT_EQ(
      told[0].input["Message"],
      (Json{{"rank", 200},
            {"entity", "load-a"},
            {"error", {{"Error", "Glue.ConcurrentRunsExceededException"}, {"Cause", "on purpose"}}},
            {"message", "Glue transformation failed for load-a in rank 200"}}));
  EXPECT_EQ(told[0].input["MessageAttributes"]["dedupe"]["StringValue"], "m-1/200/load-a");
  EXPECT_TRUE(world.CallsTo("rank-300").empty());
  EXPECT_EQ(world.CallsOf("StartFlow-300-C"), 0);
  EXPECT_EQ(Statuses(world), (std::vector<std::string>{"IN_PROGRESS", "FAILED"}));
}

TEST(Compile, AFailedExtractionStopsTheRankBeforeItsTransforms) {
  const CompiledPlan compiled = CompileSmall();
  FakeWorld world(compiled, Failing("StartFlow-200-B", "AppFlow.ResourceNotFoundException"));
  EXPECT_EQ(world.Run(kInput).status, states::FlowStatus::kFailed);
  EXPECT_EQ(world.CallsOf("StartFlow-200-B"), 3);
  EXPECT_EQ(world.CallsOf("DescribeFlow-200-A"), 1);
  EXPECT_TRUE(world.CallsTo("startJobRun").empty());
  EXPECT_EQ(world.CallsTo("sns:publish").at(0).input["Message"]["sourceObject"], "B");
  EXPECT_EQ(world.CallsTo("sns:publish").at(0).input["Message"]["message"],
            "AppFlow extraction failed for B in rank 200");
  EXPECT_EQ(Statuses(world), (std::vector<std::string>{"IN_PROGRESS", "FAILED"}));
}

Told Described(const std::string& status) {
  return states::TaskSuccess{
      {{"FlowExecutions",
        Json::array({{{"ExecutionId", "another"}, {"ExecutionStatus", "Successful"}},
                     {{"ExecutionId", "x-0"}, {"ExecutionStatus", status}},
                     {{"ExecutionId", "x-1"}, {"ExecutionStatus", status}},
                     {{"ExecutionId", "x-2"}, {"ExecutionStatus", status}}})}}};
}

TEST(Compile, FlowIsPolledUntilItHasEnded) {
  const CompiledPlan compiled = CompileSmall();
  FakeWorld world(compiled, [](const states::TaskCall& call, int64_t number) {
    if (call.state != "DescribeFlow-200-A" || number >= 4) return Told();
    return number == 0 ? Told(states::TaskSuccess{{{"FlowExecutions", Json::array()}}})
                       : Described("InProgress");
  });
  EXPECT_EQ(world.Run(kInput).status, states::FlowStatus::kSucceeded);
  EXPECT_EQ(world.CallsOf("DescribeFlow-200-A"), 5);
  EXPECT_EQ(world.CallsTo("startJobRun").front().at_s, 5 * 60);
}

TEST(Compile, FlowThatEndsInAnErrorIsRestartedThenReported) {
  const CompiledPlan compiled = CompileSmall();
  FakeWorld world(compiled, [](const states::TaskCall& call, int64_t) {
    return call.state == "DescribeFlow-200-A" ? Described("Error") : Told();
  });
  EXPECT_EQ(world.Run(kInput).status, states::FlowStatus::kFailed);
  std::vector<int64_t> times;
  for (const auto& call : world.calls()) {
    if (call.state == "StartFlow-200-A") times.push_back(call.at_s);
  }
  EXPECT_EQ(times, (std::vector<int64_t>{0, 60 + 30, 60 + 30 + 60 + 60}));
  EXPECT_EQ(world.CallsTo("sns:publish").at(0).input["Message"]["error"]["Error"],
            "AppFlowException");
}

TEST(Compile, AFlowThatNeverEndsTimesOut) {
  const CompiledPlan compiled = CompileSmall("timeout: {extract: 10m}\n");
  FakeWorld world(compiled, [](const states::TaskCall& call, int64_t) {
    return call.state == "DescribeFlow-200-A" ? Described("InProgress") : Told();
  });
  EXPECT_EQ(world.Run(kInput).status, states::FlowStatus::kFailed);
  EXPECT_EQ(world.CallsOf("DescribeFlow-200-A"), 10);
  EXPECT_EQ(world.CallsTo("sns:publish").at(0).input["Message"]["error"]["Error"],
            "States.Timeout");
  EXPECT_EQ(Statuses(world), (std::vector<std::string>{"IN_PROGRESS", "FAILED"}));
}

TEST(Compile, RankParallelToAFailedOneFinishesItsWork) {
  const CompiledPlan compiled = CompileSmall();
  FakeWorld world(compiled, Failing("StartFlow-300-C", "AppFlowException"));
  EXPECT_EQ(world.Run(kInput).status, states::FlowStatus::kFailed);
  EXPECT_EQ(world.CallsOf("DescribeFlow-400-D"), 1);
  EXPECT_EQ(Statuses(world), (std::vector<std::string>{"IN_PROGRESS", "FAILED"}));
}

TEST(Compile, EveryFailingPathMakesTheStatusFailed) {
  for (const char* state :
       {"StartFlow-200-A", "DescribeFlow-200-A", "StartGlue-200-load-b", "StartFlow-400-D",
        "Rank200", "Rank300", "CompleteMigration", "InitializeMigration"}) {
    for (const char* policy : {"finish-rank", "fail-fast", "continue"}) {
      SCOPED_TRACE(std::string(state) + " " + policy);
      const CompiledPlan compiled = CompileSmall(std::string("on_failure: ") + policy + "\n");
      FakeWorld world(compiled, Failing(state, "States.TaskFailed"));
      EXPECT_EQ(world.Run(kInput).status, states::FlowStatus::kFailed);
      EXPECT_EQ(Statuses(world).back(), "FAILED");
    }
  }
}

TEST(Compile, AMissingNotificationTargetDoesNotLoseTheStatus) {
  for (const char* policy : {"finish-rank", "fail-fast", "continue"}) {
    const CompiledPlan compiled = CompileSmall(std::string("on_failure: ") + policy + "\n");
    FakeWorld world(compiled, [](const states::TaskCall& call, int64_t) {
      const bool fails = call.state == "StartGlue-200-load-a" || call.resource.ends_with("publish");
      return fails ? Told(states::TaskFailure{"States.TaskFailed", "down"}) : Told();
    });
    EXPECT_EQ(world.Run(kInput).status, states::FlowStatus::kFailed) << policy;
    EXPECT_EQ(Statuses(world).back(), "FAILED") << policy;
    if (std::string(policy) != "fail-fast") {
      EXPECT_EQ(world.CallsOf("StartGlue-200-load-b"), 1);
    }
  }
}

TEST(Compile, ThePolicyDecidesWhatFollowsAFailure) {
  const auto later_ranks = [](const std::string& policy) {
    const CompiledPlan compiled = CompileSmall("on_failure: " + policy + "\n");
    FakeWorld world(compiled, Failing("StartFlow-200-A", "AppFlowException"));
    world.Run(kInput);
    return world.CallsOf("StartGlue-300-load-c");
  };
  EXPECT_EQ(later_ranks("finish-rank"), 0);
  EXPECT_EQ(later_ranks("fail-fast"), 0);
  EXPECT_EQ(later_ranks("continue"), 1);
}

TEST(Compile, EventCountsMatchARun) {
  const Plan plan = Small();
  const CompiledPlan compiled = Compile(plan, plan.profiles.front(), Arrange(plan, Order(plan)));
  FakeWorld world(compiled);
  EXPECT_EQ(static_cast<int64_t>(world.Run(kInput).events.size()), compiled.main.count.slow.events);
  // Flows without rows are expected to take a minute: one poll each.
  for (const RankMachine& rank : compiled.ranks) {
    EXPECT_EQ(static_cast<int64_t>(world.Run(rank.machine, kInput).events.size()),
              rank.machine.count.slow.events)
        << rank.rank;
  }
}

TEST(Compile, NamesKnownBeforeTheRunAreFilledIn) {
  CheckedPlan checked = ReadPlan(MUSTER_PLAN_EXAMPLE, {{"environment", "prod"}});
  ASSERT_TRUE(checked.plan);
  const Plan& plan = *checked.plan;
  const CompiledPlan compiled =
      Compile(plan, **plan.FindProfile("aws"), Arrange(plan, Order(plan)));
  EXPECT_EQ(compiled.main.definition["States"]["InitializeMigration"]["Parameters"]["TableName"],
            "migration-status-prod");
}

TEST(Compile, LongNamesStayWithinTheLimit) {
  const std::string name = "StartFlow-1000-" + std::string(64, 'x') + "tail";
  EXPECT_LE(StateName(name).size(), 80U);
  EXPECT_NE(StateName(name + "1"), StateName(name + "2"));
}

TEST(Deployment, HasAllFilesAndLeastPrivileges) {
  const auto outlook = LoadOutlook(MUSTER_PLAN_EXAMPLE, {.profile = "aws"});
  ASSERT_TRUE(outlook);
  const auto files = MakeDeployment(outlook->plan, outlook->compiled);
  ASSERT_TRUE(files) << files.error().ToString();
  std::map<std::string, Json> by_name(files->begin(), files->end());
  EXPECT_EQ(by_name.size(), 1U + 15U + 4U);
  EXPECT_EQ(by_name["logging.json"]["level"], "ALL");
  EXPECT_NE(by_name["logging.json"].dump().find(
                "/aws/vendedlogs/states/simpplr-migration-stepfunctions-dev"),
            std::string::npos);
  for (const Json& statement : by_name["iam-rank.json"]["Statement"]) {
    if (statement["Sid"] == "Extract") {
      EXPECT_EQ(statement["Resource"].size(), 33U);
    }
    if (statement["Sid"] == "Transform") {
      EXPECT_EQ(statement["Resource"].size(), 20U);
    }
    EXPECT_TRUE(statement["Resource"] != "*" || statement["Sid"] == "DeliverLogs");
  }
  const Json& resources = by_name["template.json"]["Resources"];
  EXPECT_EQ(resources["Orchestrator"]["Properties"]["StateMachineName"],
            "simpplr-migration-stepfunctions-dev");
  EXPECT_EQ(resources["StatusTable"]["Properties"]["TableName"], "migration-status-dev");
  EXPECT_LT(by_name["template.json"].dump().size(), 1'000'000U);
}

TEST(Deployment, ValuesKnownOnlyToARunMustBeGiven) {
  const Plan plan = Small();
  const auto files =
      MakeDeployment(plan, Compile(plan, plan.profiles.front(), Arrange(plan, Order(plan))));
  ASSERT_FALSE(files);
  EXPECT_EQ(files.error().hint, "--set environment=VALUE gives it");
}

}  // namespace
}  // namespace muster::plan
