// What a plan costs beyond its tasks: plans of tasks that do nothing, run as `muster run` does it,
// beside the same tasks on Prefect, all in the same run.

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>

#include "arguments.h"
#include "core/json.h"
#include "median.h"
#include "muster/states.h"
#include "plan/run/runs.h"
#include "support/temporary_folder.h"

namespace muster::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kBar = 0.2;  // of what Prefect takes until its server has stored the tasks
constexpr int kPhase = 10;

class Nothing final : public states::TaskExecutor {
 public:
  bool Runs(std::string_view) const override { return true; }
  states::TaskOutcome Start(const states::TaskCall&, states::TaskContext&) override {
    return states::TaskSuccess{{{"rows", 1}}};
  }
  states::TaskOutcome Poll(const states::TaskCall&, const Json& resume,
                           states::TaskContext&) override {
    return states::TaskSuccess{resume};
  }
  void Cancel(const states::TaskCall&, const Json&, states::TaskContext&) override {}
};

struct PlanShape {
  const char* name;  // as bench/plan_prefect.py has it
  const char* shown;
  int extracts;  // in each rank, all at the same time
  int transforms;
};

// As many tasks as are asked for, in as many ranks as they need.
plan::Plan Trivial(const PlanShape& shape, int tasks) {
  std::string objects;
  std::string scripts;
  std::string ranks;
  for (int rank = 1, left = tasks; left > 0; ++rank) {
    const auto names = [&](const char* kind, int most) {
      std::vector<std::string> list;
      for (; static_cast<int>(list.size()) < most && left > 0; --left)
        list.push_back(kind + std::to_string(left));
      return list;
    };
    const auto joined = [](const std::vector<std::string>& list) {
      std::string text;
      for (const std::string& name : list) text += (text.empty() ? "" : ", ") + name;
      return "[" + text + "]";
    };
    const auto extract = names("O", shape.extracts);
    const auto transform = names("s", shape.transforms);
    for (const std::string& name : extract) objects += "  " + name + ": {}\n";
    for (const std::string& name : transform)
      scripts += "  " + name + ": {file: a.sql, schema: s, table: " + name + "}\n";
    ranks += "  - {rank: " + std::to_string(rank) + ", extract: " + joined(extract) +
             ", transform: " + joined(transform) + "}\n";
  }
  plan::CheckedPlan checked = plan::ParsePlan(
      "plan: trivial\nprofiles: {local: {source: a, target: b, staging: c}}\nobjects:\n" + objects +
          (scripts.empty() ? "" : "scripts:\n" + scripts) + "ranks:\n" + ranks,
      "trivial.yaml", {});
  if (!checked.plan) throw std::runtime_error(checked.problems.front());
  return *std::move(checked.plan);
}

// Milliseconds a task.
double Ours(const plan::Plan& plan, int tasks, const std::string& url, const std::string& id) {
  Env& env = RealEnv();
  auto store = store::OpenStore(url, env);
  if (!store) throw std::runtime_error(store.error().ToString());
  Nothing nothing;
  states::States states(
      **store, {&nothing},
      {.owner = "bench", .lease = milliseconds(15'000), .idle_wait = milliseconds(100)}, env);
  plan::Runs runs(**store, states, env);
  const auto start = Clock::now();
  const auto run = runs.Start(plan, plan.profiles.front(),
                              {{"tenantId", "t"}, {"migrationId", id}, {"environment", "bench"}});
  if (!run) throw std::runtime_error(run.error().ToString());
  const auto ended = runs.Drive(*run, 8, {});
  const std::chrono::duration<double, std::milli> taken = Clock::now() - start;
  if (!ended) throw std::runtime_error(ended.error().ToString());
  if (ended->status != RunStatus::kCompleted) throw std::runtime_error(ended->cause);
  return taken.count() / tasks;
}

// What bench/plan_prefect.py says of as many tasks.
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

int Main(int argc, char** argv) {
  int tasks = 200;
  int rounds = 5;
  bool smoke = false;
  Arguments arguments("What a plan costs beyond its tasks, beside Prefect");
  arguments.AddNumber("--tasks", tasks, "tasks of a plan", 1, 1'000);
  arguments.AddNumber("--rounds", rounds, "rounds of each plan", 1, 100);
  arguments.AddFlag("--smoke", smoke, "only see whether everything still runs; no bar counts");
  arguments.Parse(argc, argv);
  if (smoke) {
    tasks = 5;
    rounds = 1;
  }
  const testing::TemporaryFolder folder;
  const auto prefect = smoke ? std::optional<Json>() : Prefect(tasks);
  bool holds = true;
  std::cout << std::fixed << std::setprecision(2);
  for (const PlanShape& shape :
       {PlanShape{"ranked", "ranks of ten extracts and ten transforms", kPhase, kPhase},
        PlanShape{"wide", "all tasks at once", tasks, 0},
        PlanShape{"chain", "one task after another", 1, 0}}) {
    const plan::Plan plan = Trivial(shape, tasks);
    std::vector<double> ours;
    for (int round = 0; round < rounds; ++round) {
      const std::string id = std::string(shape.name) + "-" + std::to_string(round);
      ours.push_back(Ours(plan, tasks, "sqlite:" + folder.At(id + ".db"), id));
    }
    const double median = MedianOf(ours);
    std::cout << shape.shown << ", " << tasks << " tasks\n  muster   " << median << " ms a task\n";
    if (!prefect) continue;
    const Json& theirs = prefect->at(shape.name);
    const double stored = theirs.at("stored");
    const double returned = theirs.at("returned");
    const double ratio = median / stored;
    holds = holds && ratio <= kBar;
    std::cout << "  Prefect  " << stored << " ms a task, until its server has stored it; its flow "
              << "returns after " << returned << "\n  ratio    " << ratio << " (bar: at most "
              << kBar << (ratio <= kBar ? ", holds" : ", DOES NOT HOLD") << "), of what returns "
              << median / returned << '\n';
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
