#include "plan/explain/past_runs.h"

#include <algorithm>
#include <ranges>

#include "plan/run/run_attempts.h"
#include "plan/run/run_body.h"
#include "plan/run/runs.h"
#include "store/store.h"

namespace muster::plan {
namespace {

constexpr size_t kMostRuns = 10;

class PastReader {
 public:
  PastReader(store::Store& store, states::States& states, const Plan& plan, const Profile& profile)
      : store_(store), states_(states), plan_(plan), profile_(profile) {}

  Result<PastRuns> Read() {
    MUSTER_ASSIGN(const std::vector<Found> all, FindRuns());
    for (const Found& found : all) {
      MUSTER_ASSIGN(const bool told, AddRun(found));
      if (told) past_.runs.push_back(found.run.id);
      if (past_.runs.size() == kMostRuns) break;
    }
    return std::move(past_);
  }

 private:
  struct Found {
    store::Record record;
    RunState run;
    WallTime start{};
  };

  // The newest first.
  Result<std::vector<Found>> FindRuns() {
    std::vector<Found> all;
    for (store::RecordScan records(store_, kRunKind, "");;) {
      MUSTER_ASSIGN(std::optional<store::Record> record, records.Next());
      if (!record) break;
      auto run = ReadRunBody(*record);
      // Unreadable runs are skipped here; 'muster list' shows them.
      if (!run || run->plan != plan_.name || run->profile != profile_.name) continue;
      MUSTER_TRY(DropForeignAttempts(store_, *run));
      const auto execution = states_.Find(run->attempts.front().execution);
      if (!execution && execution.error().code != Code::kCorrupt) return execution.error();
      if (!execution || !*execution) continue;
      const WallTime start = run->first_start.value_or((*execution)->start);
      all.push_back({*std::move(record), *std::move(run), start});
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Found& a, const Found& b) { return a.start > b.start; });
    return all;
  }

  // Adds the times and rows of a run. False: it had none.
  Result<bool> AddRun(const Found& found) {
    MUSTER_ASSIGN(std::optional<Plan> plan, PinnedPlan(found.record));
    if (!plan) return false;
    const PlanWithStates pinned(*std::move(plan));
    MUSTER_ASSIGN(const Profile* profile, pinned->FindProfile(found.run.profile));
    bool told = false;
    for (const auto& attempt : std::views::reverse(found.run.attempts)) {
      const std::string& name = attempt.execution;
      MUSTER_ASSIGN(const auto execution, states_.Find(name));
      if (!execution) continue;
      MUSTER_ASSIGN(const ExecutionLog log, ReadLog(store_, name, found.run.profile, &pinned));
      const RunReport report = MakeReport(*pinned, log, Json::object(), true);
      for (const RankReport& rank : report.ranks) {
        for (const TaskReport& task : rank.tasks) told = AddTask(task, *pinned, *profile) || told;
      }
    }
    return told;
  }

  bool AddTask(const TaskReport& task, const Plan& pinned, const Profile& profile) {
    if (task.state != PartState::kSucceeded || !task.start || !task.stop) return false;
    double seconds = std::chrono::duration<double>(*task.stop - *task.start).count();
    if (task.phase == Phase::kExtract) {
      if (!plan_.objects.contains(task.name)) return false;
      if (task.rows) past_.rows.emplace(task.name, *task.rows);
    } else {
      const auto script = plan_.scripts.find(task.name);
      if (script == plan_.scripts.end() || script->second.dpu != pinned.scripts.at(task.name).dpu)
        return false;
      if (profile.format == StagingFormat::kParquet) seconds *= plan_.rates.parquet_speedup;
    }
    const std::string key = KeyOf(task.phase, task.name);
    const auto [place, is_new] = past_.times.emplace(key, SecondsRange{seconds, seconds});
    if (!is_new) {
      place->second.min = std::min(place->second.min, seconds);
      place->second.max = std::max(place->second.max, seconds);
    }
    return true;
  }

  store::Store& store_;
  states::States& states_;
  const Plan& plan_;
  const Profile& profile_;
  PastRuns past_;
};

}  // namespace

Result<PastRuns> ReadPastRuns(store::Store& store, states::States& states, const Plan& plan,
                              const Profile& profile) {
  return PastReader(store, states, plan, profile).Read();
}

void ApplyPast(const PastRuns& past, Plan& plan) {
  for (auto& [name, object] : plan.objects) {
    if (const auto rows = past.rows.find(name); rows != past.rows.end()) object.rows = rows->second;
    if (const auto time = past.times.find(KeyOf(Phase::kExtract, name)); time != past.times.end())
      object.time = time->second;
  }
  for (auto& [name, script] : plan.scripts) {
    if (const auto time = past.times.find(KeyOf(Phase::kTransform, name)); time != past.times.end())
      script.time = time->second;
  }
}

}  // namespace muster::plan
