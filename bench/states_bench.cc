// How fast state machines run: transitions in memory, and durable executions beside what the
// commits that they need cost on the bare store in the same run.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <thread>
#include <vector>

#include "base/json.h"
#include "muster/states.h"
#include "states/mocks.h"
#include "states/runner.h"
#include "states/virtual_env.h"

namespace muster::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string store;  // empty: a new SQLite file
  int runs = 200;
  int executions = 2'000;
  int threads = 4;
  int waiting = 100'000;
  bool smoke = false;
};

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void Print(const std::string& what, double value, const std::string& unit) {
  std::cout << what << ": " << value << ' ' << unit << std::endl;
}

template <class T>
T Must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().ToString());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

class Echo final : public TaskExecutor {
 public:
  bool Runs(std::string_view) const override { return true; }
  TaskOutcome Start(const TaskCall& call, TaskContext&) override { return TaskSuccess{call.input}; }
  TaskOutcome Poll(const TaskCall& call, const Json&, TaskContext&) override {
    return TaskSuccess{call.input};
  }
  void Cancel(const TaskCall&, const Json&, TaskContext&) override {}
};

// A loop of one Pass and one Choice, in memory: no store, no time.
void Transitions(const Options& options) {
  const std::string text = R"({"StartAt":"P","States":{
    "P":{"Type":"Pass","Next":"C"},
    "C":{"Type":"Choice","Choices":[{"Variable":"$.never","IsPresent":true,"Next":"E"}],"Default":"P"},
    "E":{"Type":"Succeed"}}})";
  const auto definition = Must(states::ReadDefinition(text, "bench", nullptr));
  Echo echo;
  const auto start = Clock::now();
  int64_t events = 0;
  for (int i = 0; i < options.runs; ++i) {
    states::VirtualEnv env{WallTime{}};
    const auto run = states::RunInMemory(
        definition, {.name = "bench", .input = states::MakeValue(Json{{"a", 1}})}, env, nullptr,
        echo);
    events += static_cast<int64_t>(run.events.size());
  }
  Print("Pass and Choice in memory", SecondsSince(start) * 1e6 / (static_cast<double>(events) / 2),
        "us a transition");
}

template <class Body>
double InThreads(int threads, Body body) {
  const auto start = Clock::now();
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < threads; ++i) workers.emplace_back([&body, i] { body(i); });
  }
  return SecondsSince(start);
}

// One task each: create, claim, start of the call, result. And the same four commits bare.
void DurableTasks(const Options& options, Store& store) {
  const std::string definition =
      R"({"StartAt":"T","States":{"T":{"Type":"Task","Resource":"bench:echo","End":true}}})";
  Echo echo;
  States states(store, RealEnv(), {&echo}, {.owner = "bench", .idle_wait = milliseconds(10)});
  const std::string body(600, 'x');
  std::atomic<int> next = 0;
  const double ours = InThreads(options.threads, [&](int) {
    for (int i = next++; i < options.executions; i = next++) {
      const std::string name = "task" + std::to_string(i);
      Must(states.Start({.name = name, .definition = definition, .input = R"({"a":1})"}));
      Must(states.Work({}, name));
    }
  });
  next = 0;
  const double bare = InThreads(options.threads, [&](int thread) {
    const std::string queue = "bare" + std::to_string(thread);
    for (int i = next++; i < options.executions; i = next++) {
      Record record{.kind = "bare",
                    .queue = queue,
                    .key = "k" + std::to_string(i),
                    .body = Json(body).dump()};
      const Change create = Change::Put(record, Due::Now());
      Must(store.Write({&create, 1}));
      auto claimed = Must(store.Claim(
          {.kind = "bare", .queue = queue, .owner = "b", .claim_id = RealEnv().NewId()}));
      Record held = claimed.at(0);
      for (const Due due : {Due::After(milliseconds(60'000)), Due::Never()}) {
        const Change change = Change::Put(held, due);
        held.version = Must(store.Write({&change, 1})).front().version;
      }
    }
  });
  Print("durable executions of one task", options.executions / ours, "a second");
  Print("their four commits bare", options.executions / bare, "a second");
  Print("ratio", bare / ours, "(at least 0.6 is wanted)");
}

int64_t ResidentMib() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0;
  int64_t resident = 0;
  file >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE) / (1024 * 1024);
}

// Many executions that wait, in one process, and then fall due together.
void Waiting(const Options& options) {
  const auto store = Must(OpenStore("memory:", RealEnv()));
  States states(*store, RealEnv(), {}, {.owner = "bench", .idle_wait = milliseconds(5)});
  const int64_t before = ResidentMib();
  const std::string definition =
      R"({"StartAt":"W","States":{"W":{"Type":"Wait","SecondsPath":"$.s","End":true}}})";
  const int seconds = options.smoke ? 1 : 30;
  const std::string input = R"({"s":)" + std::to_string(seconds) + "}";
  const auto begun = Clock::now();
  for (int i = 0; i < options.waiting; ++i) {
    Must(states.Start(
        {.name = "wait" + std::to_string(i), .definition = definition, .input = input}));
  }
  std::stop_source stop;
  std::jthread worker([&] { Must(states.Work(stop.get_token())); });
  const std::string last = "wait" + std::to_string(options.waiting - 1);
  while (Must(states.History(last)).size() < 2) std::this_thread::sleep_for(milliseconds(1));
  Print("waiting executions", options.waiting, "");
  Print("their memory", static_cast<double>(ResidentMib() - before),
        "MiB (less than 300 is wanted)");
  stop.request_stop();
  worker.join();
  std::this_thread::sleep_until(begun + std::chrono::seconds(seconds) +
                                std::chrono::seconds(options.smoke ? 1 : 40));
  const auto start = Clock::now();
  Must(states.Work({}, last));
  Print("falling due together", options.waiting / SecondsSince(start), "a second");
  const auto bare = Must(OpenStore("memory:", RealEnv()));
  for (int i = 0; i < options.waiting; ++i) {
    const Change change = Change::Put({.kind = "b",
                                       .queue = "q",
                                       .key = std::to_string(i),
                                       .body = Json(std::string(900, 'x')).dump()},
                                      Due::Now());
    Must(bare->Write({&change, 1}));
  }
  const auto bare_start = Clock::now();
  for (;;) {
    auto claimed = Must(bare->Claim(
        {.kind = "b", .queue = "q", .limit = 64, .owner = "b", .claim_id = RealEnv().NewId()}));
    if (claimed.empty()) break;
    std::vector<Change> changes;
    for (Record& record : claimed) changes.push_back(Change::Put(std::move(record), Due::Never()));
    Must(bare->Write(changes));
  }
  Print("bare claims and writes", options.waiting / SecondsSince(bare_start), "a second");
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("State machines beside what they are built on");
  app.add_option("--store", options.store,
                 "Where durable executions are kept; a new SQLite file by default");
  app.add_option("--executions", options.executions);
  app.add_option("--threads", options.threads);
  app.add_option("--waiting", options.waiting);
  app.add_flag("--smoke", options.smoke, "Only see whether everything still runs");
  CLI11_PARSE(app, argc, argv);
  if (options.smoke) {
    options.runs = 1;
    options.executions = 8;
    options.threads = 2;
    options.waiting = 200;
  }
  std::string folder = (std::filesystem::temp_directory_path() / "muster-states-XXXXXX").string();
  if (options.store.empty()) {
    if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("cannot create " + folder);
    options.store = "sqlite:" + folder + "/states.db";
  }
  Transitions(options);
  {
    const auto store = Must(OpenStore(options.store, RealEnv()));
    DurableTasks(options, *store);
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  Waiting(options);
  return 0;
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
