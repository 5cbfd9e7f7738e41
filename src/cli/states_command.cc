#include <algorithm>
#include <fstream>
#include <memory>
#include <optional>
#include <thread>

#include "cli/commands.h"
#include "cli/executors.h"
#include "cli/exit_codes.h"
#include "cli/signals.h"
#include "cli/table.h"
#include "core/file.h"
#include "core/guard.h"
#include "core/json.h"
#include "core/virtual_env.h"
#include "muster/states.h"
#include "states/states.h"

namespace muster::cli {
namespace {

using states::ExecutionInfo;
using states::MockExecutor;
using states::RunResult;

constexpr size_t kMaxInputBytes = 1024 * 1024;
constexpr size_t kMaxMocksBytes = 16 * 1024 * 1024;
constexpr size_t kMaxLineBytes = 16 * 1024 * 1024;
constexpr int kPage = 100;

struct StatesCommandOptions {
  std::string action;
  std::vector<std::string> arguments;
  std::string input;
  std::string mocks;
  std::string test_case;
  std::string name;
  std::string error;
  std::string cause;
  bool virtual_time = false;
  int threads = 4;
  int limit = 1'000;
};

std::string MachineName(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  name = name.substr(0, name.find('.'));
  return name.empty() ? "machine" : name;
}

Style StyleOf(states::ExecutionStatus status) {
  if (status == states::ExecutionStatus::kSucceeded) return Style::kGood;
  return status == states::ExecutionStatus::kRunning ? Style::kNone : Style::kBad;
}

class StatesRun {
 public:
  StatesRun(const StatesCommandOptions& options, Context& context)
      : options_(options), context_(context), executors_(context.env, context.store) {}

  Result<int> Run() {
    const std::string& action = options_.action;
    if (action == "list") return List();
    if (action == "work") return Work();
    if (options_.arguments.empty()) {
      const bool file =
          action == "check" || action == "run" || action == "start" || action == "test";
      return Error{
          Code::kInvalid,
          "'muster states " + action + "' needs " + (file ? "a file" : "the name of an execution"),
          "see 'muster states --help'"};
    }
    if (action == "check") return Check();
    if (action == "test") return Test();
    if (options_.arguments.size() > 1)
      return Error{Code::kInvalid, "unexpected argument '" + options_.arguments[1] + "'"};
    if (action == "run") return RunOne();
    if (action == "start") return Start();
    if (action == "show") return Show();
    if (action == "history") return History();
    if (action == "redrive") return Redrive();
    return Stop();
  }

 private:
  const std::string& argument() const { return options_.arguments.front(); }

  Result<int> Check() {
    size_t found = 0;
    Json list = Json::array();
    for (const std::string& path : options_.arguments) {
      MUSTER_ASSIGN(const std::string text, ReadFile(path, kMaxMocksBytes));
      for (const std::string& problem : states::CheckStates(text, path, context_.env)) {
        ++found;
        list.push_back(problem);
        if (!context_.json) context_.out << problem << '\n';
      }
    }
    if (context_.json) context_.out << ToJsonText(list) << '\n';
    return found == 0 ? kDone : kFailed;
  }

  Result<std::string> ReadInput() {
    if (options_.input.empty()) return std::string("{}");
    return ReadFile(options_.input, kMaxInputBytes);
  }

  Result<int> RunOne() {
    MUSTER_ASSIGN(const std::string definition_text, ReadFile(argument(), kMaxMocksBytes));
    MUSTER_ASSIGN(const std::string input_text, ReadInput());
    MUSTER_ASSIGN(Json input,
                  ParseJson(input_text, options_.input.empty() ? "input" : options_.input));
    if (options_.mocks.empty() && !options_.virtual_time)
      return RunDurably(definition_text, input_text);
    const auto jsonata = states::NewJsonataEngine(context_.env);
    MUSTER_ASSIGN(const auto definition,
                  states::ReadDefinition(definition_text, argument(), jsonata.get()));
    Json mocks_json = Json::object();
    if (!options_.mocks.empty()) {
      MUSTER_ASSIGN(mocks_json, ReadJsonFile(options_.mocks, {.bytes = kMaxMocksBytes}));
    }
    const bool whole = mocks_json.is_object() && mocks_json.contains("StateMachines");
    const std::string machine =
        whole && mocks_json["StateMachines"].contains(MachineName(argument()))
            ? MachineName(argument())
            : "";
    MUSTER_ASSIGN(const auto mocks,
                  MockExecutor::FromJson(mocks_json, machine, options_.test_case));
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
    return Report(run.status, run.output ? *run.output : Json(), run.failure.error,
                  run.failure.cause, std::move(events));
  }

  // With real calls: branches wait concurrently.
  Result<int> RunDurably(const std::string& definition, const std::string& input) {
    MUSTER_ASSIGN(const auto store, store::OpenStore("memory:", context_.env));
    states::States states(*store, context_.env, executors_.all(),
                          {.owner = "run", .idle_wait = milliseconds(50)});
    MUSTER_TRY(states.Start({.name = "run",
                             .definition = definition,
                             .origin = argument(),
                             .machine = MachineName(argument()),
                             .input = input}));
    const StopOnSignals signals;
    MUSTER_TRY(WorkInThreads(states, signals.Token(), "run"));
    MUSTER_ASSIGN(const auto execution, states.Find("run"));
    if (signals.Token().stop_requested()) return Error{Code::kCancelled, "stopped before the end"};
    MUSTER_ASSIGN(const Json history, states.History("run"));
    Json events = Json::array();
    for (const Json& event : history) {
      Json entry = Json::array({event["type"]});
      for (const char* key : {"stateEnteredEventDetails", "stateExitedEventDetails"}) {
        if (event.contains(key)) entry.push_back(event[key]["name"]);
      }
      events.push_back(std::move(entry));
    }
    const Json output = execution->output.empty() ? Json() : Json::parse(execution->output);
    return Report(execution->status, output, execution->error, execution->cause, std::move(events));
  }

  Result<int> Report(states::ExecutionStatus status, const Json& output, const std::string& error,
                     const std::string& cause, Json events) {
    const bool succeeded = status == states::ExecutionStatus::kSucceeded;
    if (context_.json) {
      Json result = {{"status", states::NameOf(status)}};
      if (succeeded) result["output"] = output;
      if (!succeeded) {
        result["error"] = error;
        result["cause"] = cause;
      }
      result["events"] = std::move(events);
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

  Status WorkInThreads(states::States& states, std::stop_token stop,
                       const std::string& until_done) {
    std::vector<Status> ended(static_cast<size_t>(options_.threads));
    {
      std::vector<std::jthread> threads;
      for (Status& status : ended) {
        threads.emplace_back([&states, &status, stop, until_done] {
          status = GuardedThread("a worker", [&] { return states.Work(stop, until_done); });
        });
      }
    }
    for (const Status& status : ended) MUSTER_TRY(status);
    return {};
  }

  Result<int> Test() {
    const auto jsonata = states::NewJsonataEngine(context_.env);
    int64_t cases = 0;
    int64_t outcomes = 0;
    int64_t causes = 0;
    int64_t events = 0;
    int64_t passed = 0;
    for (const std::string& path : options_.arguments) {
      std::ifstream file(path);
      if (!file) return Error{Code::kInvalid, path + ": cannot be read"};
      int64_t number = 0;
      for (std::string line; std::getline(file, line);) {
        ++number;
        if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
        const std::string origin = path + ":" + std::to_string(number);
        MUSTER_ASSIGN(const Json test_case, ParseJson(line, origin, {.bytes = kMaxLineBytes}));
        ++cases;
        auto result = states::RunCase(test_case, jsonata.get());
        if (!result) {
          context_.out << "FAILED " << origin << ": " << result.error().message << '\n';
          continue;
        }
        outcomes += result->outcome ? 1 : 0;
        causes += result->cause ? 1 : 0;
        events += result->events ? 1 : 0;
        passed += result->passed() ? 1 : 0;
        if (!result->passed() && !context_.json) {
          context_.out << "FAILED " << origin << ": " << result->name << '\n' << result->difference;
        }
      }
    }
    if (context_.json) {
      context_.out << ToJsonText(Json{{"cases", cases},
                                      {"passed", passed},
                                      {"outcome", outcomes},
                                      {"cause", causes},
                                      {"events", events}})
                   << '\n';
    } else {
      context_.out << cases << " cases, " << passed << " passed; by outcome " << outcomes
                   << ", by cause " << causes << ", by events " << events << '\n';
    }
    if (cases == 0) return Error{Code::kInvalid, "there are no cases in it"};
    return passed == cases ? kDone : kFailed;
  }

  // What needs the store.
  struct Opened {
    std::unique_ptr<store::Store> store;
    std::unique_ptr<states::States> states;
  };
  Result<Opened> Open() {
    Opened opened;
    MUSTER_ASSIGN(opened.store, store::OpenStore(context_.store, context_.env));
    opened.states = std::make_unique<states::States>(*opened.store, context_.env, executors_.all(),
                                                     states::StatesOptions{.owner = "cli"});
    return opened;
  }

  Result<int> Start() {
    MUSTER_ASSIGN(const std::string definition, ReadFile(argument(), kMaxMocksBytes));
    MUSTER_ASSIGN(const std::string input, ReadInput());
    MUSTER_ASSIGN(const Opened opened, Open());
    const std::string name = options_.name.empty() ? context_.env.NewId() : options_.name;
    MUSTER_TRY(opened.states->Start({.name = name,
                                     .definition = definition,
                                     .origin = argument(),
                                     .machine = MachineName(argument()),
                                     .input = input}));
    if (context_.json) {
      context_.out << ToJsonText(Json{{"name", name}}) << '\n';
    } else {
      context_.out << name << '\n';
    }
    return kDone;
  }

  Result<int> Work() {
    MUSTER_ASSIGN(const Opened opened, Open());
    const StopOnSignals signals;
    MUSTER_TRY(WorkInThreads(*opened.states, signals.Token(),
                             options_.arguments.empty() ? "" : argument()));
    return kDone;
  }

  static Json ToJson(const states::Execution& execution) {
    Json json = {{"name", execution.name},
                 {"machine", execution.machine},
                 {"status", states::NameOf(execution.status)},
                 {"state", execution.state},
                 {"start", states::FormatTimestamp(execution.start)}};
    if (execution.stop) json["stop"] = states::FormatTimestamp(*execution.stop);
    if (execution.due && execution.status == states::ExecutionStatus::kRunning)
      json["due"] = states::FormatTimestamp(*execution.due);
    if (execution.redrives > 0) json["redrives"] = execution.redrives;
    if (!execution.output.empty()) json["output"] = Json::parse(execution.output);
    if (!execution.error.empty()) json["error"] = execution.error;
    if (!execution.cause.empty()) json["cause"] = execution.cause;
    return json;
  }

  Result<int> List() {
    MUSTER_ASSIGN(const Opened opened, Open());
    Table table({{"NAME"}, {"STATUS"}, {"STATE"}, {"STARTED"}, {"DUE"}, {"ERROR"}});
    Json list = Json::array();
    std::string after;
    int exit_code = kDone;
    for (int left = options_.limit; left > 0;) {
      MUSTER_ASSIGN(const auto page, opened.states->List(after, std::min(left, kPage)));
      if (page.empty()) break;
      for (const states::Execution& execution : page) {
        list.push_back(ToJson(execution));
        if (execution.status == states::ExecutionStatus::kUnreadable) {
          exit_code = kFailed;
          context_.err << execution.cause << '\n';
        }
        const bool waits = execution.due && execution.status == states::ExecutionStatus::kRunning;
        table.AddRow({{execution.name},
                      {std::string(states::NameOf(execution.status)), StyleOf(execution.status)},
                      {execution.state},
                      {states::FormatTimestamp(execution.start)},
                      {waits ? states::FormatTimestamp(*execution.due) : ""},
                      {execution.error}});
      }
      after = page.back().name;
      left -= static_cast<int>(page.size());
    }
    if (context_.json) {
      context_.out << ToJsonText(list) << '\n';
    } else {
      table.Print(context_.out, context_.color);
    }
    return exit_code;
  }

  Result<int> Show() {
    MUSTER_ASSIGN(const Opened opened, Open());
    MUSTER_ASSIGN(const auto execution, opened.states->Find(argument()));
    if (!execution)
      return Error{Code::kNotFound, "there is no execution '" + argument() + "'",
                   "'muster states list' shows the existing ones"};
    const Json json = ToJson(*execution);
    if (context_.json) {
      context_.out << ToJsonText(json) << '\n';
      return kDone;
    }
    for (const auto& [key, value] : json.items()) {
      context_.out << key << ": "
                   << (value.is_string() ? value.get<std::string>() : ToJsonText(value)) << '\n';
    }
    return kDone;
  }

  Result<int> History() {
    MUSTER_ASSIGN(const Opened opened, Open());
    MUSTER_ASSIGN(const Json history, opened.states->History(argument()));
    if (context_.json) {
      context_.out << ToJsonText(history) << '\n';
      return kDone;
    }
    Table table({{"ID", Table::Align::kRight}, {"TIME"}, {"TYPE"}, {"DETAILS"}});
    for (const Json& event : history) {
      std::string details;
      for (const auto& [key, value] : event.items()) {
        if (key.ends_with("EventDetails")) details = ToJsonText(value);
      }
      if (details.size() > 100) details = details.substr(0, 100) + "…";
      table.AddRow({{std::to_string(event["id"].get<int64_t>())},
                    {event["timestamp"].get<std::string>()},
                    {event["type"].get<std::string>()},
                    {details}});
    }
    table.Print(context_.out, context_.color);
    return kDone;
  }

  Result<int> Redrive() {
    MUSTER_ASSIGN(const Opened opened, Open());
    MUSTER_TRY(opened.states->Redrive(argument()));
    return kDone;
  }

  Result<int> Stop() {
    MUSTER_ASSIGN(const Opened opened, Open());
    MUSTER_TRY(opened.states->Stop(argument(), options_.error, options_.cause));
    return kDone;
  }

  const StatesCommandOptions& options_;
  Context& context_;
  Executors executors_;
};

}  // namespace

void AddStatesCommand(Command& app, Context& context) {
  Command command =
      app.AddCommand("states", "Check, run and follow state machines in Amazon States Language");
  command.Group("Run");
  auto options = std::make_shared<StatesCommandOptions>();
  command.AddOption("ACTION", options->action, "What to do")
      .Required()
      .OneOf(
          {"check", "run", "start", "work", "list", "show", "history", "redrive", "stop", "test"});
  command.AddOption("ARGUMENT", options->arguments,
                    "Definitions for check, run and start; tables of cases for test; else the "
                    "name of an execution");
  command
      .AddOption("--input", options->input,
                 "The input of run and start, a JSON file; {} by default")
      .TypeName("FILE");
  command.AddOption("--mocks", options->mocks, "Task results for run, instead of real calls")
      .TypeName("FILE");
  command.AddOption("--case", options->test_case, "Which test case of a whole mock configuration")
      .TypeName("NAME");
  command.AddFlag("--virtual-time", options->virtual_time, "For run: skip waits and backoffs");
  command
      .AddOption("--name", options->name,
                 "The name of the execution for start; a new one by default")
      .TypeName("NAME");
  command.AddOption("--error", options->error, "For stop: the error to end it with")
      .TypeName("NAME");
  command.AddOption("--cause", options->cause, "For stop: why").TypeName("TEXT");
  command.AddOption("--threads", options->threads, "For run and work: maximum concurrent calls")
      .TypeName("N")
      .Range(1, 256);
  command.AddOption("--limit", options->limit, "For list: maximum number of executions")
      .TypeName("N");
  command.Footer(
      "  muster states check order.asl.json\n"
      "  muster states run order.asl.json --input order.json --mocks mocks.json --virtual-time\n"
      "  muster states start order.asl.json --name order-17 && muster states work order-17");
  command.Action(context, [options, &context] { return StatesRun(*options, context).Run(); });
}

}  // namespace muster::cli
