// How fast state machines run: transitions in memory beside two interpreters of others, and durable
// executions beside what the commits that they need cost on the bare store, all in the same run.

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "arguments.h"
#include "core/json.h"
#include "core/virtual_env.h"
#include "muster/states.h"
#include "states/run/runner.h"
#include "states_durable.h"
#include "support/postgres_server.h"
#include "support/temporary_folder.h"

namespace muster::bench {
namespace {

using Clock = std::chrono::steady_clock;

class NoExecutor final : public states::TaskExecutor {
 public:
  bool Runs(std::string_view) const override { return false; }
  states::TaskOutcome Start(const states::TaskCall&, states::TaskContext&) override {
    return states::TaskFailure{};
  }
  states::TaskOutcome Poll(const states::TaskCall&, const Json&, states::TaskContext&) override {
    return states::TaskFailure{};
  }
  void Cancel(const states::TaskCall&, const Json&, states::TaskContext&) override {}
};

// Pairs of a Pass and a Choice, one after the other.
Json Chain(int pairs) {
  Json states = Json::object();
  for (int i = 0; i < pairs; ++i) {
    const std::string number = std::to_string(i);
    const std::string next = i + 1 < pairs ? "P" + std::to_string(i + 1) : "E";
    states["P" + number] = {{"Type", "Pass"}, {"Next", "C" + number}};
    states["C" + number] = {
        {"Type", "Choice"},
        {"Choices", {{{"Variable", "$.never"}, {"IsPresent", true}, {"Next", "E"}}}},
        {"Default", next}};
  }
  states["E"] = {{"Type", "Succeed"}};
  return {{"StartAt", "P0"}, {"States", std::move(states)}};
}

// What a program prints as its last line, if that is a number.
std::optional<double> Ask(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  if (!pipe) return {};
  std::array<char, 256> line{};
  std::optional<double> number;
  while (fgets(line.data(), line.size(), pipe.get()) != nullptr) {
    char* end = nullptr;
    const double value = std::strtod(line.data(), &end);
    if (end != line.data()) number = value;
  }
  return number;
}

void Peer(const std::string& name, const std::string& folder, const std::string& fetched_by,
          const std::string& program, const std::string& rest, double ours, double bar,
          Bars& bars) {
  if (!std::filesystem::exists(folder)) {
    std::cout << "  " << name << " is not there: " << fetched_by << " fetches it" << std::endl;
    return;
  }
  const auto theirs = Ask(program + " " + folder + " " + rest);
  if (!theirs) throw std::runtime_error(name + " cannot run the machine");
  Print("  " + name, *theirs, "us a transition");
  bars.AtLeast("times as fast", *theirs / ours, bar, "");
}

void Transitions(int pairs, int runs, const testing::TemporaryFolder& folder, Bars& bars) {
  const Json machine = Chain(pairs);
  const auto definition = Must(states::ReadDefinition(ToJsonText(machine), "bench", nullptr));
  NoExecutor no_executor;
  const int transitions = 2 * pairs + 1;
  const auto start = Clock::now();
  for (int i = 0; i < runs; ++i) {
    VirtualEnv env{WallTime{}};
    const auto run = states::RunInMemory(
        definition, {.name = "bench", .input = states::MakeValue(Json{{"a", 1}})}, env, nullptr,
        no_executor);
    if (run.status != states::FlowStatus::kSucceeded) throw std::runtime_error(run.failure.cause);
  }
  const double ours = SecondsSince(start) * 1e6 / runs / transitions;
  Print("Pass and Choice in memory", ours, "us a transition");
  const std::string rest =
      folder.Write("machine.json", ToJsonText(machine)) + " " + std::to_string(transitions);
  Peer("moto's interpreter", MUSTER_THIRD_PARTY "/moto", "scripts/moto",
       "/usr/bin/python3 -B " MUSTER_PEERS ".py", rest, ours, 200, bars);
  Peer("aws-local-stepfunctions", MUSTER_THIRD_PARTY "/aws-local-stepfunctions",
       "scripts/fetch aws-local-stepfunctions", "node " MUSTER_PEERS ".mjs", rest, ours, 1, bars);
}

int Main(int argc, char** argv) {
  StatesLoad load;
  std::string store_url;
  int pairs = 500;
  int runs = 100;
  Arguments arguments(
      "State machines beside what they are built on. Exit code 1: a bar does not hold.");
  arguments.AddText(
      "--store", store_url,
      "where durable executions are kept; by default new ones, SQLite and PostgreSQL");
  arguments.AddNumber("--executions", load.executions, "of one durable task, in a round");
  arguments.AddNumber("--rounds", load.rounds, "of durable tasks; the median counts", 1);
  arguments.AddNumber("--threads", load.threads, "that run durable tasks");
  arguments.AddNumber("--waiting", load.waiting, "executions that wait at the same time");
  arguments.AddNumber("--items", load.items, "of a distributed Map");
  arguments.AddFlag("--smoke", load.smoke, "only see whether everything still runs");
  arguments.Parse(argc, argv);
  if (load.smoke) {
    pairs = 5;
    runs = 1;
    load.executions = 8;
    load.rounds = 1;
    load.threads = 2;
    load.waiting = 200;
    load.items = 50;
  }
  const testing::TemporaryFolder folder;
  Bars bars;
  Transitions(pairs, runs, folder, bars);
  std::vector<std::string> urls = {store_url};
  std::optional<testing::PostgresServer> server;
  if (store_url.empty()) {
    urls = {"sqlite:" + folder.At("states.db")};
    if (const std::string reason = testing::PostgresServer::Unavailable(); !reason.empty()) {
      std::cout << "without PostgreSQL: " << reason << std::endl;
    } else if (!load.smoke) {
      server.emplace(testing::PostgresServer::Options{.durable = true});
      urls.push_back(server->Url());
    }
  }
  for (const std::string& url : urls) {
    std::cout << url.substr(0, url.find(':')) << std::endl;
    DurableTasks(load, url, bars);
    ManyItems(load, url);
    Waiting(load, url, bars);
  }
  Waiting(load, "memory:", bars);
  LargeInput(load, bars);
  return bars.hold() || load.smoke ? 0 : 1;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  try {
    return muster::bench::Main(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
