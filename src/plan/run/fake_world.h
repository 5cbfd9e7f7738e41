#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/virtual_env.h"
#include "muster/states.h"
#include "plan/compile/compile.h"
#include "states/states.h"

namespace muster::plan {

// For tests: runs compiled plans in memory and in virtual time, children included, against
// simulated services.
class FakeWorld final : public states::TaskExecutor {
 public:
  struct Call {
    std::string state;
    std::string resource;
    Json input;
    int64_t at_s = 0;
  };
  // The outcome of a state's n-th call; none: success.
  using Answer = std::function<std::optional<states::TaskOutcome>(const states::TaskCall& call,
                                                                  int64_t number)>;

  explicit FakeWorld(const CompiledPlan& compiled, Answer answer = {})
      : compiled_(compiled), answer_(std::move(answer)) {}

  states::RunResult Run(const Json& input) { return Run(compiled_.main, input); }
  states::RunResult Run(const Machine& machine, const Json& input) {
    const auto definition =
        states::ReadDefinition(machine.definition.dump(), "compiled", jsonata_.get());
    if (!definition) throw std::runtime_error(definition.error().ToString());
    return states::RunInMemory(*definition,
                               {.name = "run", .input = states::MakeValue(Json(input))}, env_,
                               jsonata_.get(), *this);
  }

  const std::vector<Call>& calls() const { return calls_; }
  std::vector<Call> CallsTo(const std::string& resource) const {
    std::vector<Call> found;
    for (const Call& call : calls_) {
      if (call.resource.find(resource) != std::string::npos) found.push_back(call);
    }
    return found;
  }
  int64_t CallsOf(const std::string& state) const {
    return std::count_if(calls_.begin(), calls_.end(),
                         [&](const Call& call) { return call.state == state; });
  }
  int64_t NowSeconds() {
    return std::chrono::duration_cast<std::chrono::seconds>(env_.WallNow() - start_).count();
  }

  bool Runs(std::string_view /*resource*/) const override { return true; }
  states::TaskOutcome Start(const states::TaskCall& call,
                            states::TaskContext& /*context*/) override {
    const int64_t number = CallsOf(call.state);
    calls_.push_back({call.state, call.resource, call.input, NowSeconds()});
    if (answer_) {
      if (auto told = answer_(call, number)) return *told;
    }
    if (call.resource.find("startExecution") != std::string::npos) return RunChild(call);
    if (call.resource.find("startFlow") != std::string::npos)
      return states::TaskSuccess{{{"ExecutionId", "x-" + std::to_string(number)}}};
    if (call.resource.find("describeFlow") != std::string::npos) return Described(call);
    if (call.resource.find("startJobRun") != std::string::npos)
      return states::TaskSuccess{
          {{"Id", "jr"}, {"JobName", call.input["JobName"]}, {"JobRunState", "SUCCEEDED"}}};
    return states::TaskSuccess{{{"done", call.resource}}};
  }
  states::TaskOutcome Poll(const states::TaskCall& /*call*/, const Json& resume,
                           states::TaskContext& /*context*/) override {
    return states::TaskSuccess{resume};
  }
  void Cancel(const states::TaskCall&, const Json&, states::TaskContext&) override {}

 private:
  // The last execution must have succeeded, all earlier ones must have failed.
  states::TaskOutcome Described(const states::TaskCall& call) {
    const std::string start = "Start" + call.state.substr(std::string("Describe").size());
    Json executions = Json::array();
    for (int64_t i = CallsOf(start) - 1; i >= 0; --i) {
      executions.push_back({{"ExecutionId", "x-" + std::to_string(i)},
                            {"ExecutionStatus", "Successful"},
                            {"ExecutionResult", {{"RecordsProcessed", 7}}}});
    }
    return states::TaskSuccess{{{"FlowExecutions", executions}}};
  }

  states::TaskOutcome RunChild(const states::TaskCall& call) {
    const std::string arn = call.input["StateMachineArn"];
    const int64_t rank = std::stoll(arn.substr(arn.rfind('-') + 1));
    for (const RankMachine& machine : compiled_.ranks) {
      if (machine.rank != rank) continue;
      const auto run = Run(machine.machine, call.input["Input"]);
      if (run.status == states::FlowStatus::kSucceeded)
        return states::TaskSuccess{{{"Status", "SUCCEEDED"}, {"Output", *run.output}}};
      return states::TaskFailure{"States.TaskFailed", run.failure.error + ": " + run.failure.cause};
    }
    return states::TaskFailure{"States.TaskFailed", "no such machine"};
  }

  const CompiledPlan& compiled_;
  Answer answer_;
  const WallTime start_{};
  VirtualEnv env_{WallTime{}};
  std::unique_ptr<states::JsonataEngine> jsonata_ = states::NewJsonataEngine(env_);
  std::vector<Call> calls_;
};

}  // namespace muster::plan
