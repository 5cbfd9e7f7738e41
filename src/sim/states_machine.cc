#include "sim/states_machine.h"

#include "core/virtual_env.h"
#include "states/states.h"

namespace muster::sim {

using std::chrono::seconds;

const char kStatesDefinition[] = R"({
  "StartAt": "Prepare",
  "States": {
    "Prepare": {"Type": "Pass", "Assign": {"factor": 2}, "Next": "Both"},
    "Both": {
      "Type": "Parallel",
      "Branches": [
        {"StartAt": "Flaky", "States": {
          "Flaky": {"Type": "Task", "Resource": "sim:call", "End": true,
            "Retry": [{"ErrorEquals": ["Busy"], "IntervalSeconds": 5, "MaxAttempts": 4}],
            "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Recovered"}]},
          "Recovered": {"Type": "Pass", "Result": "recovered", "End": true}}},
        {"StartAt": "Rest", "States": {
          "Rest": {"Type": "Wait", "Seconds": 20, "Next": "Slow"},
          "Slow": {"Type": "Task", "Resource": "sim:slow", "End": true}}}
      ],
      "ResultPath": "$.both",
      "Next": "Each"},
    "Each": {
      "Type": "Map", "ItemsPath": "$.items", "MaxConcurrency": 2, "ResultPath": "$.each",
      "ItemSelector": {"item.$": "$$.Map.Item.Value", "factor.$": "$factor"},
      "ItemProcessor": {"StartAt": "One", "States": {
        "One": {"Type": "Task", "Resource": "sim:call", "End": true,
          "Retry": [{"ErrorEquals": ["Busy"], "IntervalSeconds": 2, "MaxAttempts": 6}]}}},
      "Next": "Ask"},
    "Ask": {
      "Type": "Task", "Resource": "sim:ask.waitForTaskToken", "ResultPath": "$.answer",
      "Parameters": {"token.$": "$$.Task.Token"}, "Next": "Notify"},
    "Notify": {
      "Type": "Task", "Resource": "sim:notify", "ResultPath": null,
      "Retry": [{"ErrorEquals": ["Down"], "IntervalSeconds": 3, "MaxAttempts": 2}],
      "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": null, "Next": "Which"}],
      "Next": "Which"},
    "Which": {
      "Type": "Choice", "Default": "Done",
      "Choices": [{"Variable": "$.doomed", "BooleanEquals": true, "Next": "Doomed"}]},
    "Doomed": {"Type": "Fail", "Error": "Doomed", "Cause": "as the input said"},
    "Done": {"Type": "Succeed"}
  }
})";

const std::map<std::string, RetryTerms>& StatesRetries() {
  static const std::map<std::string, RetryTerms> kRetries = {
      {"Flaky", {seconds(5), 4}},
      {"One", {seconds(2), 6}},
      {"Notify", {seconds(3), kNotifyRetries}}};
  return kRetries;
}

int64_t RetryOf(const std::string& token) { return std::stoll(token.substr(token.rfind(':') + 1)); }

states::TaskOutcome AnswerOf(const states::TaskCall& call) {
  const int64_t retry = RetryOf(call.token);
  const std::string input = call.input.dump();
  uint64_t hash = 1469598103934665603u;
  for (const char c : call.state + input)
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  const auto failures = static_cast<int64_t>(hash % 3);
  if (call.resource == "sim:call" && retry < failures)
    return states::TaskFailure{"Busy", "try again"};
  if (call.state == "Flaky" && hash % 5 == 0) return states::TaskFailure{"Broken", "for good"};
  return states::TaskSuccess{{{"state", call.state}, {"retry", retry}}};
}

ExpectedEnd ExpectedOf(const Json& input) {
  class Oracle final : public states::TaskExecutor {
   public:
    bool Runs(std::string_view) const override { return true; }
    states::TaskOutcome Start(const states::TaskCall& call, states::TaskContext&) override {
      if (call.resource == "sim:ask.waitForTaskToken") return states::TaskSuccess{{{"yes", true}}};
      return AnswerOf(call);
    }
    states::TaskOutcome Poll(const states::TaskCall& call, const Json&,
                             states::TaskContext& context) override {
      return Start(call, context);
    }
    void Cancel(const states::TaskCall&, const Json&, states::TaskContext&) override {}
  } oracle;
  VirtualEnv env{WallTime{}};
  const auto definition = states::ReadDefinition(kStatesDefinition, "sim", nullptr).value();
  const auto run = states::RunInMemory(
      definition, {.name = "oracle", .input = states::MakeValue(input)}, env, nullptr, oracle);
  return {run.status, run.output ? *run.output : Json()};
}

}  // namespace muster::sim
