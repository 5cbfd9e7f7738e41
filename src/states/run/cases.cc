#include "states/run/cases.h"

#include "core/json.h"
#include "core/json_equal.h"
#include "core/timestamp.h"
#include "core/virtual_env.h"
#include "states/run/mocks.h"
#include "states/run/runner.h"

namespace muster::states {
namespace {

// Any day: the result of a case must not depend on when it runs.
constexpr char kStart[] = "2026-01-01T00:00:00Z";

std::string Short(const Json& json) {
  std::string text = ToJsonText(json);
  if (text.size() > 1000) text = text.substr(0, 1000) + "…";
  return text;
}

void Differ(CaseResult& result, const std::string& what, const Json& expected, const Json& came) {
  result.difference +=
      what + "\n  expected " + Short(expected) + "\n  came     " + Short(came) + "\n";
}

}  // namespace

Result<CaseResult> RunCase(const Json& test_case, JsonataEngine* jsonata) {
  if (!test_case.is_object() || !test_case.contains("definition")) {
    return Error{Code::kInvalid, "a case is an object with \"name\", \"definition\" and \"input\""};
  }
  CaseResult result;
  result.name = test_case.value("name", "unnamed");
  const Json& definition_json = test_case["definition"];
  const std::string text = definition_json.is_string() ? definition_json.get<std::string>()
                                                       : ToJsonText(definition_json);
  MUSTER_ASSIGN(auto definition, ReadDefinition(text, result.name, jsonata));
  MUSTER_ASSIGN(auto mocks,
                MockExecutor::FromJson(test_case.value("mocks", Json::object()), "", ""));
  VirtualEnv env(ParseTimestamp(kStart)->ToWallTime());
  const ExecutionInfo info{.name = "case",
                           .input = MakeValue(test_case.value("input", Json::object()))};
  const RunResult run = RunInMemory(definition, info, env, jsonata, *mocks);

  const bool succeeded = run.status == FlowStatus::kSucceeded;
  const Json came = succeeded ? Json{{"output", *run.output}}
                              : Json{{"error", run.failure.error}, {"cause", run.failure.cause}};
  result.cause = true;
  if (test_case.contains("expected_error")) {
    const Json& expected = test_case["expected_error"];
    result.outcome = !succeeded && expected.value("error", "") == run.failure.error;
    if (!expected.contains("cause_masked")) {
      result.cause = result.outcome && expected.value("cause", "") == run.failure.cause;
    }
    if (!result.outcome || !result.cause) Differ(result, "error", expected, came);
  } else if (test_case.contains("expected_output")) {
    result.outcome = succeeded && JsonEqual(test_case["expected_output"], *run.output);
    if (!result.outcome) Differ(result, "output", test_case["expected_output"], came);
  } else {
    return Error{Code::kInvalid,
                 result.name + ": a case has \"expected_output\" or \"expected_error\""};
  }
  result.events = true;
  if (test_case.contains("expected_events")) {
    Json events = Json::array();
    for (const Event& event : run.events) events.push_back(event.ToShort());
    result.events = test_case["expected_events"] == events;
    if (!result.events) Differ(result, "events", test_case["expected_events"], events);
  }
  return result;
}

}  // namespace muster::states
