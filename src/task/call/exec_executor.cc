#include "task/call/exec_executor.h"

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
  if (!call.input.is_object()) return Wrong("parameters must be an object");
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
      return Wrong("unknown parameter " + name);
    }
  }
  if (spec.command.empty() || spec.command[0].empty()) return Wrong("Command is empty");
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
    auto parsed = ParseJson(result.output, "output");
    if (!parsed && result.exit_code == 0 && result.signal == 0) {
      return states::TaskFailure{"Exec.BadOutput",
                                 "the program's output is not JSON: " + parsed.error().ToString()};
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

class ExecExecutor final : public BlockingExecutor {
 public:
  ExecExecutor() : BlockingExecutor("Exec") {}

  bool Runs(std::string_view resource) const override { return resource == kResource; }

 protected:
  Result<Work> Prepare(const states::TaskCall& call, states::TaskContext& context) override {
    MUSTER_ASSIGN(ProcessSpec spec, ReadSpec(call));
    return Work([spec = std::move(spec),
                 &context](const std::stop_token& stop) -> Result<states::TaskOutcome> {
      MUSTER_ASSIGN(const ProcessResult result, RunProcess(spec, context.env(), stop));
      return OutcomeOf(result);
    });
  }

  // A machine that is out of processes is not the program's fault.
  states::TaskFailure FailureOf(const states::TaskCall& call, const Error& error) const override {
    if (error.code == Code::kInvalid) return {"Exec.NotStarted", error.ToString()};
    return BlockingExecutor::FailureOf(call, error);
  }
};

}  // namespace

std::unique_ptr<states::TaskExecutor> MakeExecExecutor() {
  return std::make_unique<ExecExecutor>();
}

}  // namespace muster::task
