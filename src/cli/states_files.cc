#include "cli/states_files.h"

#include <fstream>
#include <memory>
#include <thread>
#include <utility>

#include "cli/exit_codes.h"
#include "cli/signals.h"
#include "core/file.h"
#include "core/guard.h"
#include "core/json.h"
#include "core/virtual_env.h"
#include "muster/store.h"

namespace muster::cli {
namespace {

using states::ExecutionInfo;
using states::MockExecutor;
using states::RunResult;

constexpr size_t kMaxInputBytes = 1024 * 1024;
constexpr size_t kMaxMocksBytes = 16 * 1024 * 1024;
constexpr size_t kMaxLineBytes = 16 * 1024 * 1024;

}  // namespace

std::string MachineName(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  name = name.substr(0, name.find('.'));
  return name.empty() ? "machine" : name;
}

Result<std::string> ReadStatesInput(const StatesCommandOptions& options) {
  if (options.input.empty()) return std::string("{}");
  return ReadFile(options.input, kMaxInputBytes);
}

Status WorkInThreads(states::States& states, int threads, const std::stop_token& stop,
                     const std::string& until_done) {
  std::vector<Status> ended(static_cast<size_t>(threads));
  {
    std::vector<std::jthread> working;
    for (Status& status : ended) {
      working.emplace_back([&states, &status, &stop, &until_done] {
        status = GuardedThread("a worker", [&] { return states.Work(until_done, stop); });
      });
    }
  }
  for (const Status& status : ended) MUSTER_TRY(status);
  return {};
}

Result<int> StatesFiles::Check() {
  size_t found = 0;
  Json list = Json::array();
  for (const std::string& path : options_.arguments) {
    MUSTER_ASSIGN(const std::string text, ReadFile(path, kMaxDefinitionBytes));
    for (const std::string& problem : states::CheckStates(text, path, context_.env)) {
      ++found;
      list.push_back(problem);
      if (!context_.json) context_.out << problem << '\n';
    }
  }
  if (context_.json) context_.out << ToJsonText(list) << '\n';
  return found == 0 ? kDone : kUsage;
}

Result<int> StatesFiles::Run() {
  MUSTER_ASSIGN(const std::string definition_text, ReadFile(argument(), kMaxDefinitionBytes));
  MUSTER_ASSIGN(const std::string input_text, ReadStatesInput(options_));
  MUSTER_ASSIGN(Json input,
                ParseJson(input_text, options_.input.empty() ? "input" : options_.input));
  if (options_.mocks.empty() && !options_.virtual_time)
    return RunDurably(definition_text, input_text);
  return RunMocked(definition_text, std::move(input));
}

Result<int> StatesFiles::RunMocked(const std::string& definition_text, Json input) {
  const auto jsonata = states::NewJsonataEngine(context_.env);
  MUSTER_ASSIGN(const auto definition,
                states::ReadDefinition(definition_text, argument(), jsonata.get()));
  Json mocks_json = Json::object();
  if (!options_.mocks.empty()) {
    MUSTER_ASSIGN(mocks_json, ReadJsonFile(options_.mocks, {.bytes = kMaxMocksBytes}));
  }
  const bool whole = mocks_json.is_object() && mocks_json.contains("StateMachines");
  const std::string machine = whole && mocks_json["StateMachines"].contains(MachineName(argument()))
                                  ? MachineName(argument())
                                  : "";
  MUSTER_ASSIGN(const auto mocks, MockExecutor::FromJson(mocks_json, machine, options_.test_case));
  VirtualEnv virtual_env(context_.env.WallNow(), context_.env.Random());
  Env& env = options_.virtual_time ? static_cast<Env&>(virtual_env) : context_.env;
  const StopOnSignals signals;
  const ExecutionInfo info{.name = "run",
                           .machine_name = MachineName(argument()),
                           .input = states::MakeValue(std::move(input))};
  const RunResult run =
      states::RunInMemory(definition, info, env, jsonata.get(), *mocks, signals.Token());
  Json events = Json::array();
  for (const states::Event& event : run.events) events.push_back(event.ToShort());
  return Report(run.status, run.output ? *run.output : Json(), run.failure.error, run.failure.cause,
                events);
}

// With real calls: branches wait concurrently.
Result<int> StatesFiles::RunDurably(const std::string& definition, const std::string& input) {
  MUSTER_ASSIGN(const auto store, store::OpenStore("memory:", context_.env));
  states::States states(*store, {&executor_}, {.owner = "run", .idle_wait = milliseconds(50)},
                        context_.env);
  MUSTER_TRY(states.Start({.name = "run",
                           .definition = definition,
                           .origin = argument(),
                           .machine = MachineName(argument()),
                           .input = input}));
  const StopOnSignals signals;
  MUSTER_TRY(WorkInThreads(states, options_.threads, signals.Token(), "run"));
  MUSTER_ASSIGN(const auto execution, states.Find("run"));
  if (signals.Token().stop_requested()) return Error{Code::kCancelled, "stopped before the end"};
  MUSTER_ASSIGN(const std::vector<states::Event> history, states::ReadEvents(*store, "run"));
  Json events = Json::array();
  for (const states::Event& event : history) events.push_back(event.ToShort());
  const Json output = execution->output.empty() ? Json() : Json::parse(execution->output);
  return Report(execution->status, output, execution->error, execution->cause, events);
}

Result<int> StatesFiles::Report(states::ExecutionStatus status, const Json& output,
                                const std::string& error, const std::string& cause,
                                const Json& events) {
  const bool succeeded = status == states::ExecutionStatus::kSucceeded;
  if (context_.json) {
    Json result = {{"status", states::NameOf(status)}};
    if (succeeded) result["output"] = output;
    if (!succeeded) {
      result["error"] = error;
      result["cause"] = cause;
    }
    result["events"] = events;
    context_.out << ToJsonText(result) << '\n';
    return succeeded ? kDone : kFailed;
  }
  for (const Json& event : events) {
    context_.err << event[0].get<std::string>()
                 << (event.size() > 1 ? " " + event[1].get<std::string>() : "") << '\n';
  }
  if (succeeded) {
    context_.out << ToJsonText(output) << '\n';
    return kDone;
  }
  context_.err << states::NameOf(status) << (error.empty() ? "" : ": " + error)
               << (cause.empty() ? "" : ": " + cause) << '\n';
  return kFailed;
}

Status StatesFiles::TestFile(const std::string& path, states::JsonataEngine* jsonata,
                             Score& score) {
  std::ifstream file(path);
  if (!file) return Error{Code::kInvalid, path + ": cannot be read"};
  int64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string origin = path + ":" + std::to_string(number);
    MUSTER_ASSIGN(const Json test_case, ParseJson(line, origin, {.bytes = kMaxLineBytes}));
    ++score.cases;
    const auto result = states::RunCase(test_case, jsonata);
    if (!result) {
      context_.out << "FAILED " << origin << ": " << result.error().message << '\n';
      continue;
    }
    score.outcomes += result->outcome ? 1 : 0;
    score.causes += result->cause ? 1 : 0;
    score.events += result->events ? 1 : 0;
    score.passed += result->passed() ? 1 : 0;
    if (!result->passed() && !context_.json) {
      context_.out << "FAILED " << origin << ": " << result->name << '\n' << result->difference;
    }
  }
  if (file.bad()) return Error{Code::kInvalid, path + ": cannot be read"};
  return {};
}

Result<int> StatesFiles::Test() {
  const auto jsonata = states::NewJsonataEngine(context_.env);
  Score score;
  for (const std::string& path : options_.arguments) {
    MUSTER_TRY(TestFile(path, jsonata.get(), score));
  }
  if (score.cases == 0)
    return Error{Code::kInvalid, "no test cases in " + options_.arguments.front() +
                                     (options_.arguments.size() > 1 ? ", …" : "")};
  if (context_.json) {
    context_.out << ToJsonText(Json{{"cases", score.cases},
                                    {"passed", score.passed},
                                    {"outcome", score.outcomes},
                                    {"cause", score.causes},
                                    {"events", score.events}})
                 << '\n';
  } else {
    context_.out << score.cases << " cases, " << score.passed << " passed; by outcome "
                 << score.outcomes << ", by cause " << score.causes << ", by events "
                 << score.events << '\n';
  }
  return score.passed == score.cases ? kDone : kFailed;
}

}  // namespace muster::cli
