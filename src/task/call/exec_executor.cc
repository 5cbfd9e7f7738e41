#include "task/call/exec_executor.h"

#include <chrono>
#include <string>
#include <utility>

#include "core/json.h"
#include "core/log.h"
#include "core/secrets.h"
#include "task/background.h"
#include "task/call/process.h"
#include "task/secret_references.h"

namespace muster::task {
namespace {

constexpr std::string_view kResource = "muster:exec";

Error Wrong(const std::string& what) { return Error{Code::kInvalid, "muster:exec: " + what}; }

Result<ProcessSpec> ReadSpec(const states::TaskCall& call) {
  if (!call.input.is_object()) return Wrong("its parameters must be an object");
  ProcessSpec spec;
  for (const auto& [name, value] : call.input.items()) {
    if (name == "Command") {
      if (!value.is_array()) return Wrong("Command must be an array of strings");
      for (const Json& part : value) {
        if (!part.is_string()) return Wrong("Command must be an array of strings");
        spec.command.push_back(part.get<std::string>());
      }
    } else if (name == "Environment") {
      if (!value.is_object()) return Wrong("Environment must be an object");
      for (const auto& [variable, text] : value.items()) {
        if (!text.is_string()) return Wrong("Environment: " + variable + " must be a string");
        MUSTER_ASSIGN(std::string resolved,
                      ResolveReferences(call, JsonPointerTo("/Environment", variable),
                                        text.get<std::string>()));
        spec.environment.emplace_back(variable, std::move(resolved));
      }
    } else if (name == "Directory") {
      if (!value.is_string()) return Wrong("Directory must be a string");
      spec.directory = value.get<std::string>();
    } else if (name == "Input") {
      spec.input = ToJsonText(value) + "\n";
    } else {
      return Wrong("there is no parameter " + name);
    }
  }
  if (spec.command.empty() || spec.command[0].empty()) return Wrong("Command names no program");
  spec.environment.emplace_back("MUSTER_TASK_TOKEN", call.token);
  spec.log = [&call](std::string_view line) {
    Log(Level::kInfo, "program", {{"state", call.state}, {"says", line}});
  };
  return spec;
}

states::TaskOutcome OutcomeOf(const ProcessResult& result) {
  if (result.overflowed) {
    return states::TaskFailure{"States.DataLimitExceeded", "the program printed more than 256 KiB"};
  }
  Json output = nullptr;
  if (result.output.find_first_not_of(" \t\r\n") != std::string::npos) {
    auto parsed = ParseJson(result.output, "its output");
    if (!parsed && result.exit_code == 0 && result.signal == 0) {
      return states::TaskFailure{
          "Exec.BadOutput", "what the program printed is not JSON: " + parsed.error().ToString()};
    }
    if (parsed) output = *std::move(parsed);
  }
  if (result.exit_code == 0 && result.signal == 0) return states::TaskSuccess{std::move(output)};
  if (output.is_object() && output.contains("Error") && output["Error"].is_string()) {
    const Json cause = output.value("Cause", Json(""));
    return states::TaskFailure{output["Error"],
                               cause.is_string() ? cause.get<std::string>() : ToJsonText(cause)};
  }
  const std::string name = result.signal != 0 ? "Exec.Signal." + std::to_string(result.signal)
                                              : "Exec.ExitCode." + std::to_string(result.exit_code);
  return states::TaskFailure{name, Redact(result.error_end)};
}

class ExecExecutor : public states::TaskExecutor {
 public:
  bool Runs(std::string_view resource) const override { return resource == kResource; }

  states::TaskOutcome Start(const states::TaskCall& call, states::TaskContext& context) override {
    const auto spec = ReadSpec(call);
    if (!spec) return states::TaskFailure{"States.Runtime", spec.error().ToString()};
    const auto start = std::chrono::steady_clock::now();
    const auto result = InBackground(
        call, context, [&](std::stop_token stop) { return RunProcess(*spec, std::move(stop)); });
    if (!result) return states::TaskFailure{"Exec.NotStarted", result.error().ToString()};
    if (result->signal != 0 && IsTimeUp(call, start)) return TimedOut();
    return OutcomeOf(*result);
  }

  states::TaskOutcome Poll(const states::TaskCall& call, const Json& /*resume*/,
                           states::TaskContext& context) override {
    return Start(call, context);
  }

  void Cancel(const states::TaskCall& /*call*/, const Json& /*resume*/,
              states::TaskContext& /*context*/) override {}
};

}  // namespace

std::unique_ptr<states::TaskExecutor> MakeExecExecutor() {
  return std::make_unique<ExecExecutor>();
}

}  // namespace muster::task
