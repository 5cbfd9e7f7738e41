// The random plan of a simulated migration, and how its tasks behave.

#include "plan/plan.h"
#include "sim/plan_world.h"

namespace muster::sim {
namespace {

constexpr int64_t kMostRetries = 2;

plan::Plan Parse(const std::string& text) {
  plan::CheckedPlan checked = plan::ParsePlan(text, "sim.yaml", {});
  // The plan is generated: any problem is a bug here.
  if (!checked.plan) throw std::logic_error(checked.problems.front() + "\n" + text);
  return *std::move(checked.plan);
}

}  // namespace

void PlanWorld::DrawPlan() {
  Random& random = sim_.random();
  std::string objects;
  std::string scripts;
  std::string ranks;
  const int64_t count = random.Between(1, 3);
  for (int64_t rank = 1; rank <= count; ++rank) {
    std::string extract;
    std::string transform;
    const std::string number = std::to_string(rank);
    for (int64_t i = random.Between(1, 2); i > 0; --i) {
      const std::string name = "O" + number + std::to_string(i);
      objects += (objects.empty() ? "" : ", ") + name + ": {rows: 1}";
      extract += (extract.empty() ? "" : ", ") + name;
    }
    for (int64_t i = random.Between(0, 2); i > 0; --i) {
      const std::string name = "s" + number + std::to_string(i);
      scripts += "  " + name + ": {file: a.sql, schema: s, table: " + name + "}\n";
      transform += (transform.empty() ? "" : ", ") + name;
    }
    const char* needs = random.OneIn(3) ? ", needs: []" : "";
    ranks += "  - {rank: " + number + ", extract: [" + extract + "], transform: [" + transform +
             "]" + needs + "}\n";
  }
  const char* policies[] = {"finish-rank", "fail-fast", "continue"};
  // Sequentially: compilers differ in the evaluation order of a sum.
  const char* policy = policies[random.Between(0, 2)];
  const char* pools = random.OneIn(3) ? "pools: {flows: 2, jobs: 2}\n" : "";
  const std::string attempts = std::to_string(random.Between(0, kMostRetries));
  const std::string text =
      "plan: sim\nprofiles: {local: {source: a, target: b, staging: c, notify: "
      "[\"file:told\"]}}\n" +
      std::string("on_failure: ") + policy + "\n" + pools +
      "retry: {extract: {interval: 4s, attempts: " + std::to_string(kMostRetries) +
      "}, transform: {interval: 2s, attempts: " + attempts + "}}\nobjects: {" + objects + "}\n" +
      (scripts.empty() ? "" : "scripts:\n" + scripts) + "ranks:\n" + ranks;
  plan_ = Parse(text);
  std::string edited = text;
  edited.replace(edited.find("rows: 1"), 7, "rows: 2");
  edited_ = Parse(edited);
  DrawTasks();
  DrawTerms();
}

// Those of `muster run`, those of all simulations before there were others, or any. But faults do
// not count: what becomes of a plan is known beforehand.
void PlanWorld::DrawTerms() {
  Random& random = sim_.terms();
  terms_.max_attempts = 1'000;
  terms_.lease = plan::kRunLease;
  terms_.idle_wait = milliseconds(100);
  if (random.OneIn(4)) return;
  terms_.idle_wait = std::chrono::seconds(2);
  if (random.OneIn(2)) return;
  terms_.lease = std::chrono::seconds(random.Between(12, 60));
  terms_.max_lease = terms_.lease * random.Between(1, 8);
  terms_.idle_wait = milliseconds(random.Between(200, 5'000));
  terms_.batch = static_cast<int>(random.Between(1, 10));
}

void PlanWorld::DrawTasks() {
  Random& random = sim_.random();
  const auto states = plan::NewProfileStates(plan_, plan_.profiles.front());
  for (const plan::Rank& rank : plan_.ranks)
    reconcile_states_.push_back(states->ReconcileName(rank));
  order_.emplace(plan_);
  const auto add = [&](size_t rank, plan::Phase phase, const std::string& name) {
    const bool extracts = phase == plan::Phase::kExtract;
    Task task{
        .key = (extracts ? "extract/" : "transform/") + name,
        .name = name,
        .rank = rank,
        .extracts = extracts,
        .most_retries = (extracts ? plan_.objects.at(name).rules : plan_.scripts.at(name).rules)
                            .retry.attempts};
    task.busy = random.Between(0, task.most_retries);
    task.broken = random.OneIn(6);
    // Only failures are notified.
    if (files_ && sim_.RandomOf(Fault::kFailedSync).OneIn(2)) task.broken = true;
    task.slow = random.OneIn(6);
    task.pending = random.OneIn(4);
    task.rows = random.Between(0, 99);
    tasks_[states->LastState(plan_.ranks[rank], phase, name)] = std::move(task);
  };
  for (size_t rank = 0; rank < plan_.ranks.size(); ++rank) {
    for (const auto& object : plan_.ranks[rank].extract)
      add(rank, plan::Phase::kExtract, object.name);
    for (const auto& script : plan_.ranks[rank].transform)
      add(rank, plan::Phase::kTransform, script.name);
  }
}

}  // namespace muster::sim
