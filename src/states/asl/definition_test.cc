#include "states/asl/definition.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/virtual_env.h"
#include "states/run/mocks.h"
#include "states/run/runner.h"

namespace muster::states {
namespace {

std::vector<std::string> ProblemsOf(std::string_view text) {
  const auto jsonata = NewJsonataEngine(RealEnv());
  std::vector<std::string> problems;
  for (const Problem& problem : CheckDefinition(text, jsonata.get()).problems) {
    problems.push_back(AtPosition("f", problem.position, problem.message));
  }
  return problems;
}

RunResult RunText(const std::string& text, const Json& input,
                  const Json& mocks_json = Json::object()) {
  const auto jsonata = NewJsonataEngine(RealEnv());
  const auto definition = ReadDefinition(text, "f", jsonata.get()).value();
  const auto mocks = MockExecutor::FromJson(mocks_json, "", "").value();
  VirtualEnv env{WallTime{}};
  return RunInMemory(definition, {.name = "test", .input = MakeValue(input)}, env, jsonata.get(),
                     *mocks);
}

TEST(Definition, AllProblemsAreFoundAtOnceWithTheirPlaces) {
  const auto problems = ProblemsOf(R"json({
  "StartAt": "A",
  "Colour": "red",
  "States": {
    "A": {"Type": "Task", "Resource": "arn:x", "Retry": [{"ErrorEquals": [], "MaxAttempts": -1}], "Next": "Nowhere"},
    "B": {"Type": "Pass", "InputPath": "$..", "End": true},
    "C": {"Type": "Pass", "Parameters": {"v.$": "States.Nothing(1)"}, "End": true},
    "D": {"Type": "Pass", "QueryLanguage": "JSONata", "Output": "{% 1 + %}", "End": true}
  }
})json");
  const std::vector<std::string> expected = {
      "f:2:14: the state machine has no state that ends it",
      "f:3:3: a state machine has no field \"Colour\"",
      "f:5:74: \"ErrorEquals\" needs at least one error name",
      "f:5:93: \"MaxAttempts\" must be a whole number from 0 to 99999999",
      "f:5:107: \"Nowhere\" is not a state of the state machine",
      "f:6:5: no state leads to \"B\"",
      "f:6:40: bad JSONPath '$..': expected a name at character 4",
      "f:7:5: no state leads to \"C\"",
  };
  ASSERT_GE(problems.size(), expected.size() + 3);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(problems[i], expected[i]);
}

TEST(Definition, DuplicateKeyIsReportedWithTheOtherProblems) {
  const auto problems = ProblemsOf(
      R"({"StartAt": "A", "States": {"A": {"Type": "Pass", "End": true, "End": true, "x": 1}}})");
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[0], "f:1:64: the key \"End\" occurs twice in this object");
  EXPECT_EQ(problems[1], "f:1:77: a JSONPath Pass state has no field \"x\"");
}

TEST(Definition, SecretReferencesOfTheDefinitionAreFound) {
  const auto definition = ReadDefinition(R"json({"StartAt": "A", "States": {"A": {
    "Type": "Task", "Resource": "muster:exec", "End": true, "Parameters": {
      "plain": "a $ {b}",
      "a/b~": ["x", {"c": "${env:A} and ${env:B}"}],
      "path.$": "$.x",
      "text.$": "States.Format('$\\{env:A\\} {}', $.x)",
      "split.$": "States.Format('${}\\{env:A\\}', $.x)",
      "other.$": "States.Array('${env:A}')"}}}})json",
                                         "f", nullptr);
  ASSERT_TRUE(definition) << definition.error().ToString();
  const State& state = (*definition)->machines[0].states.at("A");
  EXPECT_EQ(
      state.parameters->SecretReferences(),
      (SecretPieces{{"/a~1b~0/1/c", {"${env:A} and ${env:B}"}}, {"/text", {"${env:A} ", ""}}}));
}

TEST(Definition, InvalidJsonIsReportedWithItsPosition) {
  EXPECT_EQ(ProblemsOf("{\"StartAt\": }").front(),
            "f:1:13: not JSON: this is not a JSON value, or a number that is too large");
  EXPECT_EQ(ProblemsOf("").front(), "f:1:1: not JSON: the text ends where a value should be");
  EXPECT_EQ(ProblemsOf("{} {}").front(), "f:1:4: not JSON: there is text after the value");
  EXPECT_EQ(ProblemsOf("{\"a\": \"\xff\"}").front(), "f:1:8: not JSON: these bytes are not UTF-8");
  EXPECT_EQ(ProblemsOf("[]").front(),
            "f:1:1: a definition is a JSON object with \"StartAt\" and \"States\"");
}

TEST(Definition, TenMegabytesAreRefusedAtOnce) {
  EXPECT_EQ(ProblemsOf(std::string(10 << 20, ' ')).front(),
            "f:1:1: larger than the limit of 1 MiB");
}

TEST(Definition, AThousandNestedParallelsAreRefused) {
  std::string text;
  for (int i = 0; i < 1000; ++i) {
    text += R"({"StartAt":"P)" + std::to_string(i) + R"(","States":{"P)" + std::to_string(i) +
            R"(":{"Type":"Parallel","End":true,"Branches":[)";
  }
  text += R"({"StartAt":"X","States":{"X":{"Type":"Succeed"}}})";
  for (int i = 0; i < 1000; ++i) text += "]}}}";
  const auto problems = ProblemsOf(text);
  ASSERT_FALSE(problems.empty());
  EXPECT_NE(problems.back().find("nested deeper than"), std::string::npos) << problems.back();
}

TEST(Definition, AnEndlessLoopEndsAtTheLimitOfTheHistory) {
  const RunResult run = RunText(R"({"StartAt":"A","States":{
    "A":{"Type":"Choice","Choices":[{"Variable":"$.never","IsPresent":true,"Next":"B"}],"Default":"A"},
    "B":{"Type":"Succeed"}}})",
                                Json::object());
  EXPECT_EQ(run.status, FlowStatus::kFailed);
  EXPECT_EQ(run.failure.error, "States.Runtime");
  EXPECT_EQ(run.failure.cause,
            "The execution reached the maximum number of history events (25000).");
  EXPECT_LE(run.events.size(), 25'000u);
  EXPECT_GT(run.events.size(), 24'990u);
}

TEST(Definition, JsonataThatNeverEndsFailsTheState) {
  const RunResult run = RunText(R"json({"StartAt":"A","QueryLanguage":"JSONata","States":{
    "A":{"Type":"Pass","Output":"{% ($f := function($n) { $f($n + 1) }; $f(0)) %}","End":true}}})json",
                                Json::object());
  EXPECT_EQ(run.status, FlowStatus::kFailed);
  EXPECT_EQ(run.failure.error, "States.QueryEvaluationError");
}

TEST(Definition, JsonataExpressionsThatExplodeFailTheState) {
  const RunResult run = RunText(R"json({"StartAt":"A","QueryLanguage":"JSONata","States":{
    "A":{"Type":"Pass","Output":"{% $contains($states.input.a, /(a+)+b/) %}","End":true}}})json",
                                {{"a", std::string(50'000, 'a')}});
  EXPECT_EQ(run.status, FlowStatus::kFailed);
  EXPECT_EQ(run.failure.error, "States.QueryEvaluationError");
}

Json FilteredBy(const std::string& condition, const Json& input) {
  Json state = {{"Type", "Pass"}, {"InputPath", "$[?(" + condition + ")]"}, {"End", true}};
  const Json definition = {{"StartAt", "A"}, {"States", {{"A", std::move(state)}}}};
  const RunResult run = RunText(ToJsonText(definition), input);
  EXPECT_EQ(run.status, FlowStatus::kSucceeded) << run.failure.cause;
  return run.output == nullptr ? Json() : *run.output;
}

TEST(Definition, ExpressionsInPathsMatchTheWholeText) {
  const Json input = {{{"k", "abc"}}, {{"k", "ABC"}}, {{"k", "xabc"}}, {{"k", "a\nc"}}, {{"k", 1}}};
  EXPECT_EQ(FilteredBy("@.k =~ /a.c/", input), (Json::array({{{"k", "abc"}}})));
  EXPECT_EQ(FilteredBy("@.k =~ /a.c/i", input), (Json::array({{{"k", "abc"}}, {{"k", "ABC"}}})));
  EXPECT_EQ(FilteredBy("@.k =~ /.*b./", input), (Json::array({{{"k", "abc"}}, {{"k", "xabc"}}})));
}

TEST(Definition, NoTextIsTooLongForExpressionsInPaths) {
  const std::string text(50'000, 'a');
  const Json input = Json::array({{{"k", text}}});
  EXPECT_EQ(FilteredBy("@.k =~ /.*x/", input), Json::array());
  EXPECT_EQ(FilteredBy("@.k =~ /(a+)+b/", input), Json::array());
  EXPECT_EQ(FilteredBy("@.k =~ /(a|a)*/", input), input);
}

TEST(Definition, InvalidExpressionsInPathsAreProblems) {
  const auto problem = [](const std::string& expression) {
    const Json definition = {{"StartAt", "A"},
                             {"States",
                              {{"A",
                                {{"Type", "Pass"},
                                 {"InputPath", "$[?(@.k =~ /" + expression + "/)]"},
                                 {"End", true}}}}}};
    const auto problems = ProblemsOf(ToJsonText(definition));
    return problems.empty() ? "" : problems.front();
  };
  EXPECT_NE(problem("a(").find("'a(' is not a regular expression: missing )"), std::string::npos);
  EXPECT_NE(problem("(a)\\1").find("is not a regular expression"), std::string::npos);
  const std::string many = problem(std::string(60'000, '('));
  EXPECT_NE(many.find("is not a regular expression"), std::string::npos);
  EXPECT_LT(many.size(), 2'000u);
}

TEST(Definition, AConditionInAPathMayHaveManyParts) {
  for (const char* op : {" || ", " && "}) {
    std::string condition = "@.k == 1";
    for (int i = 0; i < 20'000; ++i) condition += std::string(op) + "@.k == 1";
    const Json input = Json::array({{{"k", 1}}});
    EXPECT_EQ(FilteredBy(condition, input), input);
  }
}

TEST(Definition, ResultsUpToTheLimitAreAccepted) {
  const std::string text =
      R"({"StartAt":"A","States":{"A":{"Type":"Task","Resource":"arn:aws:states:::sqs:sendMessage","End":true}}})";
  const auto run = [&](size_t size) {
    return RunText(text, Json::object(), {{"A", {{"0", {{"Return", std::string(size, 'x')}}}}}});
  };
  EXPECT_EQ(run(kMaxPayloadBytes - 2).status, FlowStatus::kSucceeded);
  const RunResult large = run(kMaxPayloadBytes - 1);
  EXPECT_EQ(large.failure.error, "States.DataLimitExceeded");
  EXPECT_EQ(large.failure.cause,
            "The state/task 'sqs' returned a result with a size exceeding the maximum number of "
            "bytes service limit.");
}

#ifdef MUSTER_STATES_DEFINITIONS
TEST(Definition, MachinesOfOtherOwnersAreDistinguished) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(MUSTER_STATES_DEFINITIONS)) {
    std::ifstream file(entry.path());
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const std::string name = entry.path().filename();
    const auto problems = ProblemsOf(text);
    EXPECT_EQ(problems.empty(), name.starts_with("valid"))
        << name << (problems.empty() ? "" : ": " + problems.front());
    ++files;
  }
  EXPECT_EQ(files, 112);
}
#endif

}  // namespace
}  // namespace muster::states
