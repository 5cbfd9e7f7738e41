#include <algorithm>
#include <memory>

#include "cli/commands.h"
#include "cli/existing_store.h"
#include "cli/exit_codes.h"
#include "cli/signals.h"
#include "cli/states_files.h"
#include "cli/table.h"
#include "core/file.h"
#include "core/json.h"
#include "core/timestamp.h"
#include "muster/executors.h"
#include "muster/states.h"

namespace muster::cli {
namespace {

constexpr int kPage = 100;

Style StyleOf(states::ExecutionStatus status) {
  if (status == states::ExecutionStatus::kSucceeded) return Style::kGood;
  return status == states::ExecutionStatus::kRunning ? Style::kNone : Style::kBad;
}

class StatesRun {
 public:
  StatesRun(const StatesCommandOptions& options, Context& context)
      : options_(options),
        context_(context),
        executor_(task::NewExecutors(context.store, context.env)) {}

  Result<int> Run() {
    const std::string& action = options_.action;
    const size_t most = action == "list"                        ? 0
                        : action == "check" || action == "test" ? options_.arguments.size()
                                                                : 1;
    if (options_.arguments.size() > most)
      return Error{Code::kInvalid, "unexpected argument '" + options_.arguments[most] + "'",
                   "see 'muster states --help'"};
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
    StatesFiles files(options_, context_, *executor_);
    if (action == "check") return files.Check();
    if (action == "test") return files.Test();
    if (action == "run") return files.Run();
    if (action == "start") return Start();
    if (action == "show") return Show();
    if (action == "history") return History();
    if (action == "redrive") return Redrive();
    return Stop();
  }

 private:
  const std::string& argument() const { return options_.arguments.front(); }

  // The actions that need the store.
  struct Opened {
    std::unique_ptr<store::Store> store;
    std::unique_ptr<states::States> states;
  };
  Result<Opened> Open() {
    Opened opened;
    MUSTER_ASSIGN(opened.store, store::OpenStore(context_.store, context_.env));
    opened.states = std::make_unique<states::States>(
        *opened.store, std::vector<states::TaskExecutor*>{executor_.get()},
        states::StatesOptions{.owner = "cli"}, context_.env);
    return opened;
  }

  // For a command about what was started before.
  Result<Opened> OpenExisting() {
    MUSTER_TRY(CheckStoreExists(context_.store));
    return Open();
  }

  Result<int> Start() {
    MUSTER_ASSIGN(const std::string definition, ReadFile(argument(), kMaxDefinitionBytes));
    MUSTER_ASSIGN(const std::string input, ReadStatesInput(options_));
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
    if (options_.arguments.empty()) {
      MUSTER_TRY(WorkInThreads(*opened.states, options_.threads, signals.Token(), ""));
      return kDone;
    }
    MUSTER_TRY(WorkInThreads(*opened.states, options_.threads, signals.Token(), argument()));
    MUSTER_ASSIGN(const states::Execution ended, Find(*opened.states));
    if (ended.status == states::ExecutionStatus::kRunning) {
      return Error{Code::kCancelled, "stopped before execution '" + argument() + "' ended",
                   "the same command continues it"};
    }
    return ended.status == states::ExecutionStatus::kSucceeded ? kDone : kFailed;
  }

  // The named execution.
  Result<states::Execution> Find(states::States& states) {
    MUSTER_ASSIGN(auto execution, states.Find(argument()));
    if (execution) return *std::move(execution);
    return Error{Code::kNotFound, "no execution '" + argument() + "'",
                 "'muster states list' shows the existing ones"};
  }

  static Json ToJson(const states::Execution& execution) {
    Json json = {{"name", execution.name},
                 {"machine", execution.machine},
                 {"status", states::NameOf(execution.status)},
                 {"state", execution.state},
                 {"start", FormatTimestamp(execution.start)}};
    if (execution.stop) json["stop"] = FormatTimestamp(*execution.stop);
    if (execution.due && execution.status == states::ExecutionStatus::kRunning)
      json["due"] = FormatTimestamp(*execution.due);
    if (execution.redrives > 0) json["redrives"] = execution.redrives;
    if (!execution.output.empty()) json["output"] = Json::parse(execution.output);
    if (!execution.error.empty()) json["error"] = execution.error;
    if (!execution.cause.empty()) json["cause"] = execution.cause;
    return json;
  }

  Result<int> List() {
    MUSTER_ASSIGN(const Opened opened, OpenExisting());
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
                      {FormatTimestamp(execution.start)},
                      {waits ? FormatTimestamp(*execution.due) : ""},
                      {execution.error}});
      }
      after = page.back().name;
      left -= static_cast<int>(page.size());
    }
    PrintList(table, list, context_);
    return exit_code;
  }

  Result<int> Show() {
    MUSTER_ASSIGN(const Opened opened, OpenExisting());
    MUSTER_ASSIGN(const states::Execution execution, Find(*opened.states));
    const Json json = ToJson(execution);
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
    MUSTER_ASSIGN(const Opened opened, OpenExisting());
    if (context_.json) {
      MUSTER_ASSIGN(const Json history, opened.states->History(argument()));
      context_.out << ToJsonText(history) << '\n';
      return kDone;
    }
    // Refuses an invalid name.
    MUSTER_TRY(opened.states->Find(argument()));
    MUSTER_ASSIGN(const auto events, states::ReadEvents(*opened.store, argument()));
    Table table({{"ID", Table::Align::kRight}, {"TIME"}, {"TYPE"}, {"DETAILS"}});
    for (const states::Event& event : events) {
      const Json said = event.Details();
      std::string details = said.empty() ? "" : ToJsonText(said);
      if (details.size() > 100) details = details.substr(0, 100) + "…";
      table.AddRow(
          {{std::to_string(event.id)}, {FormatTimestamp(event.time)}, {event.type}, {details}});
    }
    table.Print(context_.out, context_.color);
    return kDone;
  }

  Result<int> Redrive() {
    MUSTER_ASSIGN(const Opened opened, OpenExisting());
    MUSTER_TRY(opened.states->Redrive(argument()));
    return kDone;
  }

  Result<int> Stop() {
    MUSTER_ASSIGN(const Opened opened, OpenExisting());
    MUSTER_TRY(opened.states->Stop(argument(), options_.error, options_.cause));
    return kDone;
  }

  const StatesCommandOptions& options_;
  Context& context_;
  const std::unique_ptr<states::TaskExecutor> executor_;
};

}  // namespace

void AddStatesCommand(Command& app, Context& context) {
  Command command =
      app.AddCommand("states", "Check, run and follow state machines in Amazon States Language");
  command.Group("Run plans and state machines");
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
  command
      .AddOption("--case", options->test_case,
                 "For run: the test case, if --mocks is a mock configuration file")
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
      .TypeName("N")
      .Range(1, 1'000'000);
  command.Footer(
      "  muster states check order.asl.json\n"
      "  muster states run order.asl.json --input order.json --mocks mocks.json --virtual-time\n"
      "  muster states start order.asl.json --name order-17 && muster states work order-17");
  command.Action(context, [command, options, &context]() -> Result<int> {
    MUSTER_TRY(command.CheckUse(options->action, {{"--input", {"run", "start"}},
                                                  {"--mocks", {"run"}},
                                                  {"--case", {"run"}},
                                                  {"--virtual-time", {"run"}},
                                                  {"--name", {"start"}},
                                                  {"--error", {"stop"}},
                                                  {"--cause", {"stop"}},
                                                  {"--threads", {"run", "work"}},
                                                  {"--limit", {"list"}}}));
    return StatesRun(*options, context).Run();
  });
}

}  // namespace muster::cli
