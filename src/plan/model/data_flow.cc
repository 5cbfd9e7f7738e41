#include "plan/model/data_flow.h"

#include <map>

#include "core/json_fields.h"
#include "core/planted_bug.h"
#include "plan/compile/profile_states.h"

namespace muster::plan {
namespace {

// For every task, those that use its result.
using Dependants = std::map<std::string, std::set<std::string>>;

Dependants DependantsIn(const Plan& plan, const Json& done) {
  Dependants dependants;
  std::map<std::string, std::string> loaders;  // scripts, by table
  for (const auto& [name, script] : plan.scripts) loaders[script.Target()] = name;
  for (const Rank& rank : plan.ranks) {
    for (const Reference& reference : rank.transform) {
      const TransformTask& script = plan.scripts.at(reference.name);
      const std::string key = KeyOf(Phase::kTransform, script.name);
      for (const std::string& object : plan.ReadBy(script, rank))
        dependants[KeyOf(Phase::kExtract, object)].insert(key);
      // What the task has actually read: the plan may not list everything.
      for (const auto& [object, rows] : MemberIn(MemberIn(done, key), "objects").items())
        dependants[KeyOf(Phase::kExtract, object)].insert(key);
      for (const Reference& table : script.refers.value_or(std::vector<Reference>())) {
        const auto loader = loaders.find(table.name);
        if (loader != loaders.end() && loader->second != script.name)
          dependants[KeyOf(Phase::kTransform, loader->second)].insert(key);
      }
    }
  }
  return dependants;
}

std::vector<std::string> KeysOf(const Rank& rank) {
  std::vector<std::string> keys;
  for (const Reference& object : rank.extract) keys.push_back(KeyOf(Phase::kExtract, object.name));
  for (const Reference& script : rank.transform)
    keys.push_back(KeyOf(Phase::kTransform, script.name));
  return keys;
}

// The parameters that determine a task's result.
Json CallOf(const ProfileStates& states, const Plan& plan, const Rank& rank, Phase phase,
            const std::string& task) {
  Chain chain;
  if (phase == Phase::kExtract) {
    states.AddExtract(chain, rank, plan.objects.at(task), "failed");
  } else {
    states.AddTransform(chain, rank, plan.scripts.at(task), "failed");
  }
  const Json machine = chain.Finish();
  Json call = MemberIn(MemberIn(machine, "States"), TextIn(machine, "StartAt"));
  for (const char* other : {"Retry", "Catch", "TimeoutSeconds", "Next"}) call.erase(other);
  // Only used in messages.
  if (call.contains("Parameters")) call["Parameters"].erase("references");
  // A task that succeeded was within its limit, whatever the limit is now.
  if (call.contains("Parameters")) call["Parameters"].erase("max_unreadable");
  // On AWS the call only names a job, which runs the deployed script.
  if (phase == Phase::kTransform) call["sha256"] = plan.scripts.at(task).sha256;
  return call;
}

std::map<std::string, Json> CallsOf(const Plan& plan, const Profile& profile) {
  const auto states = NewProfileStates(plan, profile);
  std::map<std::string, Json> calls;
  for (const Rank& rank : plan.ranks) {
    for (const Reference& object : rank.extract)
      calls[KeyOf(Phase::kExtract, object.name)] =
          CallOf(*states, plan, rank, Phase::kExtract, object.name);
    for (const Reference& script : rank.transform)
      calls[KeyOf(Phase::kTransform, script.name)] =
          CallOf(*states, plan, rank, Phase::kTransform, script.name);
  }
  return calls;
}

}  // namespace

std::string ReconcileKey(int64_t rank) { return "reconcile/" + std::to_string(rank); }

std::vector<std::string> Invalidate(const Plan& plan, const std::set<std::string>& tasks,
                                    Json& done) {
  const Dependants dependants = DependantsIn(plan, done);
  std::set<std::string> reached = tasks;
  for (const auto& [name, object] : plan.objects) {
    if (const std::string key = KeyOf(Phase::kExtract, name); !done.contains(key))
      reached.insert(key);
  }
  std::set<std::string> taken;
  std::vector<std::string> left(reached.begin(), reached.end());
  while (!left.empty()) {
    const std::string key = std::move(left.back());
    left.pop_back();
    if (done.contains(key)) taken.insert(key);
    done.erase(key);
    const auto found = dependants.find(key);
    if (found == dependants.end()) continue;
    for (const std::string& next : found->second) {
      // A task that is not done runs anyway, and its dependents after it.
      if (done.contains(next) && reached.insert(next).second) left.push_back(next);
    }
  }
  std::vector<std::string> ordered;
  for (const Rank& rank : plan.ranks) {
    for (const std::string& key : KeysOf(rank)) {
      if (taken.contains(key)) ordered.push_back(key);
      // Also if the rank continued after a failure: it was reconciled without the failed task.
      const bool changed =
          PLANTED_BUG(ranks_stay_reconciled) ? taken.contains(key) : !done.contains(key);
      if (changed) done.erase(ReconcileKey(rank.number));
    }
  }
  return ordered;
}

std::set<std::string> ChangedTasks(const Plan& before, const Plan& after,
                                   const std::string& profile) {
  Plan pinned = before;
  pinned.folder = after.folder;
  for (auto& [name, script] : pinned.scripts) {
    const auto now = after.scripts.find(name);
    if (now != after.scripts.end()) script.dpu = now->second.dpu;
  }
  const auto old_profile = pinned.FindProfile(profile);
  const auto new_profile = after.FindProfile(profile);
  const auto old_calls =
      old_profile ? CallsOf(pinned, **old_profile) : std::map<std::string, Json>();
  std::set<std::string> changed;
  if (!new_profile) return changed;
  for (const auto& [key, call] : CallsOf(after, **new_profile)) {
    const auto old = old_calls.find(key);
    if (old == old_calls.end() || old->second != call) changed.insert(key);
  }
  return changed;
}

}  // namespace muster::plan
