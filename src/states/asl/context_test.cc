// Goal: what a state sees of its execution does not depend on how it asks. Method: the same values
// by paths that need not make the whole context and by those that do, one after another in one
// scope, and by JSONata.

#include <gtest/gtest.h>

#include <thread>

#include "core/json.h"
#include "core/virtual_env.h"
#include "muster/states.h"
#include "states/run/mocks.h"
#include "states/run/runner.h"

namespace muster::states {
namespace {

const Json kInput = {{"a", 1}, {"list", {10, {{"b", 2}}}}, {"Input", "inner"}};

RunResult Run(const Json& machine) {
  const auto jsonata = NewJsonataEngine(RealEnv());
  const auto mocks = MockExecutor::FromJson(Json::object(), "", "").value();
  VirtualEnv env{WallTime{}};
  return RunInMemory(ReadDefinition(ToJsonText(machine), "test", jsonata.get()).value(),
                     {.name = "run", .input = MakeValue(kInput)}, env, jsonata.get(), *mocks);
}

RunResult Pass(const Json& parameters) {
  return Run({{"StartAt", "P"},
              {"States", {{"P", {{"Type", "Pass"}, {"Parameters", parameters}, {"End", true}}}}}});
}

RunResult PassJsonata(const Json& output) {
  return Run({{"QueryLanguage", "JSONata"},
              {"StartAt", "P"},
              {"States", {{"P", {{"Type", "Pass"}, {"Output", output}, {"End", true}}}}}});
}

TEST(Context, PathsSeeTheSameHoweverTheyAreWritten) {
  const RunResult result = Pass({{"name.$", "$$.Execution.Name"},
                                 {"a.$", "$$.Execution.Input.a"},
                                 {"b.$", "$$.Execution.Input.list[1].b"},
                                 {"named.$", "$$.Execution.Input['Input']"},
                                 {"input.$", "$$.Execution.Input"},
                                 {"brackets.$", "$$['Execution']['Input']"},
                                 {"mixed.$", "$$.Execution['Input'].a"},
                                 {"indefinite.$", "$$.Execution.Input.list[*].b"},
                                 {"deep.$", "$$..b"},
                                 {"execution.$", "$$.Execution"},
                                 {"all.$", "$$"},
                                 {"state.$", "$$.State.Name"},
                                 {"text.$", "States.Format('{}', $$.Execution.Input.a)"}});
  ASSERT_EQ(result.status, FlowStatus::kSucceeded) << result.failure.cause;
  const Json& output = *result.output;
  EXPECT_EQ(output["name"], "run");
  EXPECT_EQ(output["a"], 1);
  EXPECT_EQ(output["b"], 2);
  EXPECT_EQ(output["named"], "inner");
  EXPECT_EQ(output["input"], kInput);
  EXPECT_EQ(output["brackets"], kInput);
  EXPECT_EQ(output["mixed"], 1);
  EXPECT_EQ(output["indefinite"], Json::array({2}));
  EXPECT_EQ(output["deep"], Json::array({2}));
  EXPECT_EQ(output["execution"]["Input"], kInput);
  EXPECT_EQ(output["all"]["Execution"], output["execution"]);
  EXPECT_EQ(output["state"], "P");
  EXPECT_EQ(output["text"], "1");
  // As AWS orders them.
  EXPECT_EQ(output["execution"].begin().key(), "Id");
  EXPECT_EQ(std::next(output["execution"].begin()).key(), "Input");
}

TEST(Context, MissingPathIsReportedWithTheExistingFields) {
  for (const char* path : {"$$.Execution.Input.none", "$$.Execution.None", "$$.Map.Item.Value"}) {
    const RunResult result = Pass({{"seen.$", "$$.Execution.Name"}, {"none.$", path}});
    EXPECT_EQ(result.status, FlowStatus::kFailed);
    EXPECT_NE(result.failure.cause.find(path), std::string::npos) << result.failure.cause;
    EXPECT_NE(result.failure.cause.find(ToJsonText(kInput)), std::string::npos)
        << result.failure.cause;
  }
}

TEST(Context, JsonataSeesTheSameHoweverItIsWritten) {
  const RunResult result =
      PassJsonata({{"name", "{% $states.context.Execution.Name %}"},
                   {"a", "{% $states.context.Execution.Input.a %}"},
                   {"quoted", "{% $states.context.Execution.`Input`.a %}"},
                   {"execution", "{% $states.context.Execution %}"},
                   {"any", "{% $states.context.*.Input.a %}"},
                   {"parent", "{% $states.context.Execution.Name.%.Input.a %}"},
                   {"variable", "{% ($c := $states.context; $c.Execution.Input.a) %}"},
                   {"whole", "{% ($s := $states; $s.input.a + $s.context.Execution.Input.a) %}"},
                   {"both", "{% $states.input.a & $states.context.State.Name %}"},
                   {"none", "{% $exists($states.result) %}"},
                   {"keys", "{% $keys($states) %}"}});
  ASSERT_EQ(result.status, FlowStatus::kSucceeded) << result.failure.cause;
  const Json& output = *result.output;
  EXPECT_EQ(output["name"], "run");
  for (const char* same : {"a", "quoted", "any", "parent", "variable"}) EXPECT_EQ(output[same], 1);
  EXPECT_EQ(output["execution"]["Input"], kInput);
  EXPECT_EQ(output["whole"], 2);
  EXPECT_EQ(output["both"], "1P");
  EXPECT_EQ(output["none"], false);
  EXPECT_EQ(output["keys"], Json::array({"input", "context"}));
}

TEST(Context, BranchesSeeTheInputOfTheirOwnExecution) {
  const std::string definition = R"({"StartAt":"M","States":{"M":{"Type":"Map","End":true,
      "ItemsPath":"$.items","ItemProcessor":{"StartAt":"P","States":{
        "P":{"Type":"Pass","End":true,"Parameters":{
          "own.$":"$$.Execution.Input.own","name.$":"$$.Execution.Name"}}}}}}})";
  const auto store = store::OpenStore("memory:", RealEnv()).value();
  States states(*store, {}, {.owner = "test", .idle_wait = milliseconds(5)}, RealEnv());
  // More than whose inputs a thread remembers.
  constexpr int kExecutions = 9;
  for (int i = 0; i < kExecutions; ++i) {
    const Json input = {{"own", i}, {"items", Json::array({1, 2, 3, 4, 5, 6, 7, 8, 9})}};
    ASSERT_TRUE(states.Start(
        {.name = "run" + std::to_string(i), .definition = definition, .input = ToJsonText(input)}));
  }
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < 2; ++i) {
      workers.emplace_back([&] {
        for (int n = 0; n < kExecutions; ++n)
          EXPECT_TRUE(states.Work("run" + std::to_string(n), {}));
      });
    }
  }
  for (int i = 0; i < kExecutions; ++i) {
    const Execution execution = states.Find("run" + std::to_string(i)).value().value();
    ASSERT_EQ(execution.status, ExecutionStatus::kSucceeded) << execution.cause;
    const Json output = Json::parse(execution.output);
    ASSERT_EQ(output.size(), 9u);
    for (const Json& seen : output)
      EXPECT_EQ(seen, Json({{"own", i}, {"name", "run" + std::to_string(i)}}));
  }
}

// As doubles, 2^53 and 2^53 + 1 are equal, and so are 2^63 and 2^64 - 1 as signed integers.
TEST(NumbersInPathsAndChoices, AreComparedExactly) {
  const Json machine = Json::parse(R"({"StartAt": "C", "States": {
      "C": {"Type": "Choice", "Default": "No", "Choices": [
        {"Variable": "$.a", "NumericEqualsPath": "$.b", "Next": "Yes"},
        {"Variable": "$.a", "NumericLessThanEquals": 9007199254740992.0, "Next": "Yes"},
        {"Variable": "$.large", "NumericLessThanEquals": 9223372036854775807, "Next": "Yes"}]},
      "Yes": {"Type": "Pass", "End": true},
      "No": {"Type": "Pass", "End": true, "Parameters": {
        "equal.$": "$.list[?(@.n == 9007199254740993)].n",
        "above.$": "$.list[?(@.n > 9007199254740992)].n"}}}})");
  const Json input = Json::parse(R"({"a": 9007199254740993, "b": 9007199254740992,
      "large": 18446744073709551615, "list": [
        {"n": 9007199254740992}, {"n": 9007199254740993}, {"n": 9007199254740994}]})");
  const auto jsonata = NewJsonataEngine(RealEnv());
  const auto mocks = MockExecutor::FromJson(Json::object(), "", "").value();
  VirtualEnv env{WallTime{}};
  const RunResult result =
      RunInMemory(ReadDefinition(ToJsonText(machine), "test", jsonata.get()).value(),
                  {.name = "run", .input = MakeValue(input)}, env, jsonata.get(), *mocks);
  EXPECT_EQ(ToJsonText(*result.output),
            R"({"equal":[9007199254740993],"above":[9007199254740993,9007199254740994]})");
}

}  // namespace
}  // namespace muster::states
