#include "states/run/mocks.h"

#include <charconv>

#include "core/json.h"
#include "core/mutex.h"

namespace muster::states {
namespace {

Error Bad(std::string what) {
  return {Code::kInvalid, "mocks: " + std::move(what),
          "a state's mocks are {\"0\": {\"Return\": …}, \"1-2\": {\"Throw\": {\"Error\": …, "
          "\"Cause\": …}}}"};
}

std::string TextOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>() : ToJsonText(*found);
}

}  // namespace

Result<std::unique_ptr<MockExecutor>> MockExecutor::FromJson(const Json& json,
                                                             const std::string& machine,
                                                             const std::string& test_case) {
  if (!json.is_object()) return Bad("not an object");
  auto executor = std::make_unique<MockExecutor>();
  if (!json.contains("StateMachines")) {
    if (!test_case.empty()) return Bad("no test cases in it");
    for (const auto& [state, answers] : json.items()) {
      MUSTER_ASSIGN(executor->answers_[state], ReadAnswers(state, answers));
    }
    return executor;
  }
  const Json& machines = json["StateMachines"];
  if (!machines.is_object() || machines.empty()) return Bad("\"StateMachines\" is empty");
  if (machine.empty() && machines.size() > 1)
    return Bad("it has several state machines: name one of them");
  const auto found = machine.empty() ? machines.begin() : machines.find(machine);
  if (found == machines.end()) return Bad("no state machine '" + machine + "'");
  const Json& cases = found->value("TestCases", Json::object());
  if (!cases.is_object() || !cases.contains(test_case)) {
    std::string names;
    for (const auto& [name, ignored] : cases.items()) names += (names.empty() ? "" : ", ") + name;
    return Bad("no test case '" + test_case + "'; known: " + names);
  }
  const Json responses = json.value("MockedResponses", Json::object());
  for (const auto& [state, name] : cases[test_case].items()) {
    if (!name.is_string() || !responses.contains(name.get<std::string>())) {
      return Bad("state '" + state + "': no mocked response '" +
                 TextOf(cases[test_case], state.c_str()) + "'");
    }
    MUSTER_ASSIGN(executor->answers_[state],
                  ReadAnswers(state, responses[name.get<std::string>()]));
  }
  return executor;
}

Result<std::vector<MockExecutor::Answer>> MockExecutor::ReadAnswers(const std::string& state,
                                                                    const Json& json) {
  if (!json.is_object()) return Bad("state '" + state + "': not an object");
  std::vector<Answer> answers;
  for (const auto& [range, body] : json.items()) {
    Answer answer;
    const char* end = range.data() + range.size();
    auto first = std::from_chars(range.data(), end, answer.first);
    answer.last = answer.first;
    bool good = first.ec == std::errc();
    if (good && first.ptr != end && *first.ptr == '-') {
      const auto last = std::from_chars(first.ptr + 1, end, answer.last);
      good = last.ec == std::errc() && last.ptr == end && answer.last >= answer.first;
    } else {
      good = good && first.ptr == end;
    }
    if (!good)
      return Bad("state '" + state + "': '" + range +
                 "' is neither the number of a call nor a range");
    if (body.is_object() && body.contains("Return")) {
      answer.outcome = TaskSuccess{body["Return"]};
    } else if (body.is_object() && body.contains("Throw") && body["Throw"].is_object()) {
      answer.outcome = TaskFailure{TextOf(body["Throw"], "Error"), TextOf(body["Throw"], "Cause")};
    } else {
      return Bad("state '" + state + "', call " + range + ": neither \"Return\" nor \"Throw\"");
    }
    answers.push_back(std::move(answer));
  }
  return answers;
}

bool MockExecutor::Runs(std::string_view /*resource*/) const { return true; }

TaskOutcome MockExecutor::Start(const TaskCall& call, TaskContext& /*context*/) {
  const MutexLock lock(mutex_);
  const int64_t number = calls_[call.state]++;
  const auto found = answers_.find(call.state);
  if (found != answers_.end()) {
    for (const Answer& answer : found->second) {
      if (answer.first <= number && number <= answer.last) return answer.outcome;
    }
  }
  return TaskFailure{"States.Runtime", "the mocks have no answer for call " +
                                           std::to_string(number) + " of the state '" + call.state +
                                           "'"};
}

TaskOutcome MockExecutor::Poll(const TaskCall& call, const Json& /*resume*/, TaskContext& context) {
  return Start(call, context);
}

void MockExecutor::Cancel(const TaskCall& /*call*/, const Json& /*resume*/,
                          TaskContext& /*context*/) {}

}  // namespace muster::states
