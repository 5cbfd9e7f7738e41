// What a plan costs beyond its tasks: plans of tasks that do nothing, run as `muster run` does it,
// beside the same tasks on Prefect, all in the same run.

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <optional>
#include <stdexcept>

#include "base/json.h"
#include "median.h"
#include "muster/states.h"
#include "plan/runs.h"
#include "support/temporary_folder.h"

namespace muster::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kBar = 0.2;  // of what Prefect takes

class Nothing final : public TaskExecutor {
 public:
  bool Runs(std::string_view) const override { return true; }
  TaskOutcome Start(const TaskCall&, TaskContext&) override { return TaskSuccess{{{"rows", 1}}}; }
  TaskOutcome Poll(const TaskCall&, const Json& resume, TaskContext&) override {
    return TaskSuccess{resume};
  }
  void Cancel(const TaskCall&, const Json&, TaskContext&) override {}
};

// `ranks` ranks, each with as many tasks, which run at the same time.
plan::Plan Trivial(int ranks, int tasks) {
  std::string objects;
  std::string list;
  for (int rank = 1; rank <= ranks; ++rank) {
    std::string extract;
    for (int task = 0; task < tasks; ++task) {
      const std::string name = "O" + std::to_string(rank) + "x" + std::to_string(task);
      objects += "  " + name + ": {}\n";
      extract += (extract.empty() ? "" : ", ") + name;
    }
    list += "  - {rank: " + std::to_string(rank) + ", extract: [" + extract + "]}\n";
  }
  plan::CheckedPlan checked = plan::ParsePlan(
      "plan: trivial\nprofiles: {local: {source: a, target: b, staging: c}}\nobjects:\n" + objects +
          "ranks:\n" + list,
      "trivial.yaml", {});
  if (!checked.plan) throw std::runtime_error(checked.problems.front());
  return *std::move(checked.plan);
}

// Milliseconds a task.
double Ours(const plan::Plan& plan, const std::string& url, const std::string& id) {
  Env& env = RealEnv();
  auto store = OpenStore(url, env);
  if (!store) throw std::runtime_error(store.error().ToString());
  Nothing nothing;
  States states(**store, env, {&nothing},
                {.owner = "bench", .lease = milliseconds(15'000), .idle_wait = milliseconds(100)});
  plan::Runs runs(**store, states, env);
  const auto start = Clock::now();
  const auto run = runs.Start(plan, plan.profiles.front(),
                              {{"tenantId", "t"}, {"migrationId", id}, {"environment", "bench"}});
  if (!run) throw std::runtime_error(run.error().ToString());
  const auto ended = runs.Drive(*run, 8, {});
  const std::chrono::duration<double, std::milli> taken = Clock::now() - start;
  if (!ended) throw std::runtime_error(ended.error().ToString());
  if (ended->status != "COMPLETED") throw std::runtime_error(ended->cause);
  return taken.count() / static_cast<double>(plan.objects.size());
}

// What Prefect says of as many tasks, one after another and all at once: milliseconds a task.
std::optional<Json> Prefect(int tasks) {
  const std::string python = MUSTER_THIRD_PARTY "/prefect/bin/python3";
  if (!std::filesystem::exists(python)) {
    std::cout << "Prefect is not there: bench/fetch_prefect fetches it" << std::endl;
    return {};
  }
  const std::string command = python + " -B " MUSTER_PREFECT " " + std::to_string(tasks);
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string text;
  std::array<char, 256> part{};
  while (pipe && fgets(part.data(), part.size(), pipe.get()) != nullptr) text += part.data();
  const Json answer = Json::parse(text, nullptr, false);
  if (!answer.is_object()) throw std::runtime_error("Prefect cannot run the tasks: " + text);
  return answer;
}

struct PlanShape {
  const char* name;  // as bench/plan_prefect.py has it
  const char* shown;
  int ranks;
  int tasks;
};

int Main(int argc, char** argv) {
  int tasks = 200;
  int rounds = 5;
  bool smoke = false;
  CLI::App app("What a plan costs beyond its tasks, beside Prefect");
  app.add_option("--tasks", tasks)->check(CLI::Range(1, 1'000));
  app.add_option("--rounds", rounds)->check(CLI::Range(1, 100));
  app.add_flag("--smoke", smoke, "Only see whether everything still runs; no bar counts");
  CLI11_PARSE(app, argc, argv);
  if (smoke) {
    tasks = 5;
    rounds = 1;
  }
  const testing::TemporaryFolder folder;
  const auto prefect = smoke ? std::optional<Json>() : Prefect(tasks);
  bool holds = true;
  std::cout << std::fixed << std::setprecision(2);
  for (const PlanShape& shape : {PlanShape{"chain", "one task after another", tasks, 1},
                                 PlanShape{"wide", "all tasks at once", 1, tasks}}) {
    const plan::Plan plan = Trivial(shape.ranks, shape.tasks);
    std::vector<double> ours;
    for (int round = 0; round < rounds; ++round) {
      const std::string id = std::string(shape.name) + "-" + std::to_string(round);
      ours.push_back(Ours(plan, "sqlite:" + folder.At(id + ".db"), id));
    }
    const double median = MedianOf(ours);
    std::cout << shape.shown << ", " << tasks << " tasks\n  muster   " << median << " ms a task\n";
    if (!prefect) continue;
    const double theirs = prefect->value(shape.name, 0.0);
    const double ratio = median / theirs;
    holds = holds && ratio <= kBar;
    std::cout << "  Prefect  " << theirs << " ms a task\n  ratio    " << ratio << " (bar: at most "
              << kBar << (ratio <= kBar ? ", holds)\n" : ", DOES NOT HOLD)\n");
  }
  return holds ? 0 : 1;
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
