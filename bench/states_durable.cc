#include "states_durable.h"

#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iostream>
#include <thread>
#include <vector>

#include "core/json.h"
#include "median.h"
#include "muster/states.h"

namespace muster::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Answers what it was asked, lists items, and takes results.
class Echo final : public states::TaskExecutor {
 public:
  explicit Echo(int items = 0) : items_(items) {}
  bool Runs(std::string_view) const override { return true; }
  states::TaskOutcome Start(const states::TaskCall& call, states::TaskContext&) override {
    if (call.resource == "bench:items") return states::TaskSuccess{{{"Body", Items()}}};
    if (call.resource == "bench:echo") ++calls;
    return states::TaskSuccess{call.input};
  }
  states::TaskOutcome Poll(const states::TaskCall& call, const Json&,
                           states::TaskContext&) override {
    return states::TaskSuccess{call.input};
  }
  void Cancel(const states::TaskCall&, const Json&, states::TaskContext&) override {}

  std::atomic<int> calls = 0;

 private:
  Json Items() const {
    Json items = Json::array();
    for (int i = 0; i < items_; ++i) items.push_back({{"id", i}, {"name", "item"}});
    return items;
  }

  int items_;
};

template <class Body>
double InThreads(int threads, Body body) {
  const auto start = Clock::now();
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < threads; ++i) workers.emplace_back([&body, i] { body(i); });
  }
  return SecondsSince(start);
}

// Create all, then claim, start and finish each: the commits that a durable task needs.
double BareTasks(store::Store& store, int tasks, int threads) {
  const std::string body = Json(std::string(600, 'x')).dump();
  const std::string run = RealEnv().NewId();
  std::atomic<int> next = 0;
  return InThreads(threads, [&](int thread) {
    const std::string queue = run + std::to_string(thread);
    for (int i = next++; i < tasks; i = next++) {
      const store::Change create = store::Change::Put(
          store::Record{
              .kind = "bare", .queue = queue, .key = run + std::to_string(i), .body = body},
          store::Due::AtOnce());
      Must(store.Write({&create, 1}));
      auto claimed = Must(store.Claim(
          {.kind = "bare", .queue = queue, .owner = "b", .claim_id = RealEnv().NewId()}));
      store::Record held = claimed.at(0);
      for (const store::Due due : {store::Due::After(milliseconds(60'000)), store::Due::Never()}) {
        const store::Change change = store::Change::Put(held, due);
        held.version = Must(store.Write({&change, 1})).front().version;
      }
    }
  });
}

// Claims due records and completes them, in batches as large as the engine's.
double BareTurns(store::Store& store, int records, int threads) {
  const std::string body = Json(std::string(900, 'x')).dump();
  std::vector<store::Change> changes;
  for (int i = 0; i < records; ++i) {
    changes.push_back(
        store::Change::Put({.kind = "turn", .queue = "q", .key = std::to_string(i), .body = body},
                           store::Due::AtOnce()));
    if (changes.size() < 100 && i + 1 < records) continue;
    Must(store.Write(changes));
    changes.clear();
  }
  return InThreads(threads, [&](int) {
    for (;;) {
      auto claimed = Must(store.Claim({.kind = "turn",
                                       .queue = "q",
                                       .limit = 64,
                                       .owner = "b",
                                       .claim_id = RealEnv().NewId()}));
      if (claimed.empty()) return;
      std::vector<store::Change> done;
      for (store::Record& record : claimed)
        done.push_back(store::Change::Put(std::move(record), store::Due::Never()));
      Must(store.Write(done));
    }
  });
}

int64_t ResidentMib() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0;
  int64_t resident = 0;
  file >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE) / (1024 * 1024);
}

// The records of executions that wait for a day.
std::vector<store::Record> WaitingRecords(store::Store& store) {
  std::vector<store::Record> waiting;
  const WallTime later = Must(store.Now()) + std::chrono::hours(1);
  for (std::string after;;) {
    std::vector<store::Record> page = Must(store.Scan("states", "wait", after, 1'000));
    if (page.empty()) return waiting;
    after = page.back().key;
    for (store::Record& record : page) {
      if (record.due && *record.due > later) waiting.push_back(std::move(record));
    }
  }
}

double MibOf(const std::vector<store::Record>& records) {
  size_t bytes = 0;
  for (const store::Record& record : records)
    bytes += sizeof record + record.key.capacity() + record.body.capacity();
  return static_cast<double>(bytes) / (1024 * 1024);
}

}  // namespace

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void Print(const std::string& what, double value, const std::string& unit) {
  std::cout << what << ": " << value << ' ' << unit << std::endl;
}

void DurableTasks(const StatesLoad& load, const std::string& store_url, Bars& bars) {
  const std::string definition =
      R"({"StartAt":"T","States":{"T":{"Type":"Task","Resource":"bench:echo","End":true}}})";
  const auto store = Must(store::OpenStore(store_url, RealEnv()));
  std::vector<double> ours, bare, ratios;
  for (int round = 0; round < load.rounds; ++round) {
    Echo echo;
    states::States states(*store, {&echo}, {.owner = "bench", .idle_wait = milliseconds(10)},
                          RealEnv());
    std::atomic<int> next = 0;
    std::stop_source done;
    std::jthread watch([&] {
      while (echo.calls < load.executions) std::this_thread::sleep_for(milliseconds(1));
      done.request_stop();
    });
    // All workers go on until the last execution is over, as they would where more keep coming.
    ours.push_back(InThreads(load.threads, [&](int) {
      for (int i = next++; i < load.executions; i = next++) {
        const std::string name = "task" + std::to_string(round) + "-" + std::to_string(i);
        Must(states.Start({.name = name, .definition = definition, .input = R"({"a":1})"}));
      }
      Must(states.Work("", done.get_token()));
    }));
    bare.push_back(BareTasks(*store, load.executions, load.threads));
    ratios.push_back(bare.back() / ours.back());
  }
  Print("  durable executions of one task", load.executions / MedianOf(ours), "a second");
  Print("  their four commits bare", load.executions / MedianOf(bare), "a second");
  bars.AtLeast("beside them", MedianOf(ratios), 0.6, "");
}

void Waiting(const StatesLoad& load, const std::string& store_url, Bars& bars) {
  const auto store = Must(store::OpenStore(store_url, RealEnv()));
  states::States states(*store, {}, {.owner = "bench", .idle_wait = milliseconds(5)}, RealEnv());
  const int64_t before = ResidentMib();
  const std::string definition =
      R"({"StartAt":"W","States":{"W":{"Type":"Wait","Seconds":86400,"End":true}}})";
  std::atomic<int> next = 0;
  InThreads(load.threads, [&](int) {
    for (int i = next++; i < load.waiting; i = next++) {
      const std::string name = "wait" + std::to_string(i);
      Must(states.Start({.name = name, .definition = definition, .input = R"({"a":1})"}));
    }
  });
  // Until each has been driven into its state.
  std::vector<store::Record> waiting;
  while (waiting.size() < static_cast<size_t>(load.waiting)) {
    std::stop_source stop;
    std::jthread worker([&] { Must(states.Work("", stop.get_token())); });
    std::this_thread::sleep_for(milliseconds(500));
    stop.request_stop();
    worker.join();
    waiting = WaitingRecords(*store);
  }
  Print("waiting executions", load.waiting, "");
  if (store_url == "memory:") {
    bars.AtMost("their memory", static_cast<double>(ResidentMib() - before) - MibOf(waiting), 300,
                " MiB");
  }
  std::vector<store::Change> changes;
  for (size_t i = 0; i < waiting.size(); ++i) {
    changes.push_back(store::Change::Put(std::move(waiting[i]), store::Due::AtOnce()));
    if (changes.size() < 100 && i + 1 < waiting.size()) continue;
    Must(store->Write(changes));
    changes.clear();
  }
  const std::string last = "wait" + std::to_string(load.waiting - 1);
  const double ours = InThreads(load.threads, [&](int) { Must(states.Work(last, {})); });
  const double bare = BareTurns(*store, load.waiting, load.threads);
  Print("  falling due together", load.waiting / ours, "a second");
  Print("  bare claims and writes", load.waiting / bare, "a second");
  if (store_url == "memory:") {
    Print("  ratio", bare / ours, "");
  } else {
    bars.AtLeast("beside them", bare / ours, 0.6, "");
  }
}

void LargeInput(const StatesLoad& load, Bars& bars) {
  const std::string definition = R"({"StartAt":"M","States":{"M":{"Type":"Map","End":true,
    "ItemsPath":"$.items","ItemSelector":{"value.$":"$$.Map.Item.Value"},
    "ItemProcessor":{"StartAt":"P","States":{"P":{"Type":"Pass","End":true,"Parameters":{
      "value.$":"$.value","name.$":"$$.Execution.Input.name"}}}}}}})";
  const int items = std::min(load.items, 1'000);
  const auto seconds = [&](int more) {
    Json input = {{"name", "x"}, {"items", Json::array()}, {"more", Json::array()}};
    for (int i = 0; i < items; ++i) input["items"].push_back(i);
    for (int i = 0; i < more; ++i)
      input["more"].push_back({{"id", i}, {"name", "one of many"}, {"tags", {"a", "b"}}});
    const auto store = Must(store::OpenStore("memory:", RealEnv()));
    states::States states(*store, {}, {.owner = "bench", .idle_wait = milliseconds(5)}, RealEnv());
    Must(states.Start({.name = "map", .definition = definition, .input = ToJsonText(input)}));
    const double taken = InThreads(load.threads, [&](int) { Must(states.Work("map", {})); });
    if (Must(states.Find("map"))->status != states::ExecutionStatus::kSucceeded)
      throw std::runtime_error("a Map failed");
    return taken;
  };
  std::vector<double> small;
  std::vector<double> large;
  for (int round = 0; round < load.rounds; ++round) {
    small.push_back(seconds(0));
    large.push_back(seconds(3'000));
  }
  Print("items that look at their execution", items / MedianOf(small), "a second");
  Print("  with an input of 150 KB", items / MedianOf(large), "a second");
  bars.AtMost("as long", MedianOf(large) / MedianOf(small), 3, " times");
}

void ManyItems(const StatesLoad& load, const std::string& store_url) {
  const std::string definition = R"({"StartAt":"M","States":{"M":{"Type":"Map","End":true,
    "ItemReader":{"Resource":"bench:items","ReaderConfig":{"InputType":"JSON"}},
    "ItemProcessor":{"ProcessorConfig":{"Mode":"DISTRIBUTED","ExecutionType":"STANDARD"},
      "StartAt":"T","States":{"T":{"Type":"Task","Resource":"bench:echo","End":true}}},
    "ResultWriter":{"Resource":"bench:results","Parameters":{"Bucket":"b"}}}}})";
  const auto store = Must(store::OpenStore(store_url, RealEnv()));
  Echo echo(load.items);
  const int64_t before = ResidentMib();
  std::atomic<int64_t> most = before;
  Must(states::States(*store, {&echo}, {.owner = "starter"}, RealEnv())
           .Start({.name = "map", .definition = definition, .input = "{}"}));
  const double ours = InThreads(load.threads, [&](int thread) {
    states::States states(
        *store, {&echo}, {.owner = "bench" + std::to_string(thread), .idle_wait = milliseconds(20)},
        RealEnv());
    std::stop_source done;
    std::jthread watch([&] {
      while (!done.stop_requested()) {
        most = std::max(most.load(), ResidentMib());
        std::this_thread::sleep_for(milliseconds(100));
      }
    });
    Must(states.Work("map", {}));
    done.request_stop();
  });
  if (echo.calls != load.items) throw std::runtime_error("an item was left out or taken twice");
  const int some = std::min(load.items, load.executions);
  const double bare = BareTasks(*store, some, load.threads) / some * load.items;
  Print("items of a Map", load.items, "");
  Print("  items", load.items / ours, "a second");
  Print("  their four commits bare", load.items / bare, "a second");
  Print("  ratio", bare / ours, "");
  Print("  memory", static_cast<double>(most - before), "MiB");
}

}  // namespace muster::bench
