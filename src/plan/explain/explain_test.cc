// Goal: `explain` predicts what runs. Method: the example has its known numbers; on random plans
// the computed schedule is compared with the compiled machine, run in virtual time with tasks that
// take as long as planned, and with a second-by-second simulation.

#include "plan/explain/explain.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

#include "plan/explain/what_if.h"
#include "plan/run/fake_world.h"

namespace muster::plan {
namespace {

Outlook Example(std::vector<std::string> what_if = {}) {
  auto outlook =
      LoadOutlook(MUSTER_PLAN_EXAMPLE, {.profile = "aws", .what_if = std::move(what_if)});
  if (!outlook) throw std::runtime_error(outlook.error().ToString());
  return *std::move(outlook);
}

TEST(Explain, ComputedNumbersOfTheExampleAreRight) {
  const Json json = ToJson(Example());
  EXPECT_EQ(json["ranks"], 15);
  EXPECT_EQ(json["objects"], 33);
  EXPECT_EQ(json["scripts"], 20);
  EXPECT_EQ(json["rows"], 1'000'000);
  EXPECT_EQ(json["peak"]["flows"], 7);
  EXPECT_EQ(json["peak"]["jobs"], 4);
  EXPECT_EQ(json["peak"]["dpu"], 20);
  EXPECT_EQ(json["peak"]["rank"], (Json{{"flows", 600}, {"jobs", 600}, {"dpu", 2800}}));
  EXPECT_EQ(json["dpu_total"], 147);
  EXPECT_EQ(json["time"], (Json{{"min_s", 10 * 3600.0}, {"max_s", 17 * 3600.0}}));
  EXPECT_EQ(json["cost"]["appflow"]["max"], 1000.0);
  std::vector<double> hours;
  for (const Json& group : json["by_group"]) {
    hours.push_back(group["time"]["min_s"].get<double>() / 3600);
    hours.push_back(group["time"]["max_s"].get<double>() / 3600);
  }
  EXPECT_EQ(hours, (std::vector<double>{1, 2, 2, 3, 3, 4, 4, 8}));
  EXPECT_LT(json["events"]["most_in_one"], 25'000);
  EXPECT_EQ(json["retries_add_at_most"], (Json{{"extract_s", 90.0}, {"transform_s", 360.0}}));
}

TEST(Explain, LocalRunsHaveNoPriceAndNoDpu) {
  const auto outlook = LoadOutlook(MUSTER_PLAN_EXAMPLE, {.profile = "local"});
  ASSERT_TRUE(outlook) << outlook.error().ToString();
  const std::string text = ToJsonText(ToJson(*outlook));
  for (const char* word : {"cost", "appflow", "dpu", "DPU", "transitions", "executions"})
    EXPECT_EQ(text.find(std::string("\"") + word), std::string::npos) << word;
  EXPECT_EQ(text.find(" DPU"), std::string::npos);
  EXPECT_NE(text.find("\"advice\":[{"), std::string::npos) << "there is other advice";
}

TEST(Explain, LocalRunsDoNotWaitForServicesToStart) {
  const auto seconds = [](const char* profile) {
    const auto example = LoadOutlook(MUSTER_PLAN_EXAMPLE, {.profile = profile});
    EXPECT_TRUE(example) << example.error().ToString();
    Plan plan = example->plan;
    for (auto& [name, object] : plan.objects) object.time.reset(), object.rows = 0;
    const Outlook outlook = MakeOutlook(std::move(plan), example->profile);
    return outlook.slow.tasks.front().length_s();
  };
  EXPECT_EQ(seconds("aws"), 60);
  EXPECT_EQ(seconds("local"), 0);
}

TEST(Explain, AdviceOnTheExampleSavesWhatItPromises) {
  std::vector<std::string> changes;
  for (const Advice& advice : AdviseOn(Example())) changes.push_back(advice.what_if);
  for (const char* change :
       {"parallel=1400,1500", "dpu.feed-comments=20", "dpu.feed-feed-posts=20", "staging=parquet"})
    EXPECT_NE(std::find(changes.begin(), changes.end(), change), changes.end()) << change;
}

TEST(Explain, WhatIfShowsTheDifference) {
  const double now = Example().slow.total_s;
  // 15 to 20 DPU takes 30 % off 100 minutes, with no other limit.
  EXPECT_NEAR(now - Example({"dpu.feed-feed-posts=20"}).slow.total_s, 0.3 * 100 * 60, 5);
  // Navigation takes 30 minutes, sites 45: in parallel the shorter one costs no time.
  EXPECT_EQ(now - Example({"parallel=1400,1500"}).slow.total_s, 30 * 60);
  EXPECT_LT(Example({"staging=parquet"}).slow.total_s, now / 2);
  EXPECT_EQ(Example({"dpu.feed-comments=20"}).slow.dpu.most, 25);
  EXPECT_EQ(Example({"pool.flows=3"}).slow.flows.most, 3);
  EXPECT_GT(Example({"rows.User=200000"}).slow.total_s, now);
}

// Two ranks with the same needs, each with an object and a script that reads it.
Plan TwoAlike() {
  Plan plan;
  plan.name = "alike";
  plan.profiles.push_back({.name = "local", .source = "a", .target = "b", .staging = "c"});
  plan.ranks = {{.number = 1},
                {.number = 2, .needs = {1}},
                {.number = 3, .needs = {1}},
                {.number = 4, .needs = {3}}};
  for (Rank& rank : plan.ranks) {
    const std::string name = "o" + std::to_string(rank.number);
    plan.objects[name] = {.name = name, .rows = 1, .time = SecondsRange{10, 10}};
    rank.extract.push_back({name});
  }
  return plan;
}

TEST(Explain, RanksWithEqualNeedsCanBeMerged) {
  Plan plan = TwoAlike();
  StagingFormat format = StagingFormat::kJson;
  const auto status = ApplyWhatIf(plan, format, "merge=3,2");
  ASSERT_TRUE(status) << status.error().ToString();
  ASSERT_EQ(plan.ranks.size(), 3U);
  EXPECT_EQ(plan.ranks[1].number, 2);
  EXPECT_EQ(plan.ranks[1].needs, std::vector<int64_t>{1});
  EXPECT_EQ(plan.ranks[1].extract.size(), 2U);
  EXPECT_EQ(plan.ranks[2].needs, std::vector<int64_t>{2}) << "it waited for the merged rank";
}

TEST(Explain, MergeThatWouldAddADependencyIsRejected) {
  for (const char* change : {"merge=1,4", "merge=2,4", "merge=2,9", "merge=2,2", "merge=2"}) {
    Plan plan = TwoAlike();
    StagingFormat format = StagingFormat::kJson;
    EXPECT_FALSE(ApplyWhatIf(plan, format, change)) << change;
  }
}

TEST(Explain, AdviceOnAMergeNamesTheChangeThatTriesIt) {
  const Plan plan = TwoAlike();
  const Outlook outlook = MakeOutlook(plan, plan.profiles[0]);
  const auto advice = AdviseOn(outlook);
  const auto merge = std::find_if(advice.begin(), advice.end(),
                                  [](const Advice& one) { return one.kind == AdviceKind::kMerge; });
  ASSERT_NE(merge, advice.end());
  EXPECT_EQ(merge->what_if, "merge=2,3");
}

TEST(Explain, WhatIfRejectsImpossibleChanges) {
  for (const char* change :
       {"dpu.feed-coments=20", "parallel=500,600", "parallel=1400", "staging=csv", "wish=1",
        "pool.flows=0", "pool.dpu=14", "rows.Nobody=1", "dpu.feed-comments=many"}) {
    Plan plan = Example().plan;
    StagingFormat format = StagingFormat::kJson;
    const auto status = ApplyWhatIf(plan, format, change);
    ASSERT_FALSE(status) << change;
    EXPECT_NE(status.error().message.find(change), std::string::npos) << status.error().message;
  }
}

// A plan of a few ranks, each of which needs any of those before it.
Plan RandomPlan(std::mt19937& random) {
  const auto below = [&random](int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));
  };
  Plan plan;
  plan.name = "random";
  plan.inputs = {{"tenantId", {}}, {"migrationId", {}}, {"environment", {}}};
  plan.profiles.push_back({.name = "local", .source = "a", .target = "b", .staging = "c"});
  const int ranks = 1 + below(8);
  for (int r = 0; r < ranks; ++r) {
    Rank rank{.number = 100 + r};
    for (int before = 0; before < r; ++before) {
      if (below(3) == 0) rank.needs.push_back(100 + before);
    }
    const int objects = below(4);
    for (int i = 0; i < objects; ++i) {
      const std::string name = "o" + std::to_string(r) + "-" + std::to_string(i);
      const double time = 1 + below(20);
      plan.objects[name] = {.name = name,
                            .rows = 1,
                            .time = SecondsRange{time, time},
                            .rules = {.retry = {30, 2, 2}, .timeout_s = 1'000}};
      rank.extract.push_back({name});
    }
    const int scripts = objects == 0 ? 1 + below(3) : below(4);
    for (int i = 0; i < scripts; ++i) {
      const std::string name = "s" + std::to_string(r) + "-" + std::to_string(i);
      const double time = 1 + below(20);
      plan.scripts[name] = {.name = name,
                            .file = "x.sql",
                            .schema = "s",
                            .table = name,
                            .dpu = 1 + below(5),
                            .time = SecondsRange{time, time},
                            .rules = {.retry = {120, 2, 2}, .timeout_s = 1'000}};
      rank.transform.push_back({name});
    }
    plan.ranks.push_back(std::move(rank));
  }
  if (below(2) == 0) plan.pools.flows = 1 + below(4);
  if (below(2) == 0) plan.pools.jobs = 1 + below(4);
  if (below(2) == 0) plan.pools.dpu = 5 + below(10);
  return plan;
}

struct Interval {
  std::string name;
  int64_t start = 0;
  int64_t end = 0;
};

// The maximum in any one second.
std::array<int64_t, 3> PeaksOf(const Plan& plan, const std::vector<Interval>& intervals) {
  std::array<int64_t, 3> most{};
  int64_t end = 0;
  for (const Interval& task : intervals) end = std::max(end, task.end);
  for (int64_t second = 0; second < end; ++second) {
    std::array<int64_t, 3> now{};
    for (const Interval& task : intervals) {
      if (second < task.start || second >= task.end) continue;
      const auto script = plan.scripts.find(task.name);
      ++now[script == plan.scripts.end() ? 0 : 1];
      if (script != plan.scripts.end()) now[2] += script->second.dpu;
    }
    for (size_t i = 0; i < 3; ++i) most[i] = std::max(most[i], now[i]);
  }
  return most;
}

int64_t TimeOf(const Plan& plan, const std::string& task) {
  const auto script = plan.scripts.find(task);
  return static_cast<int64_t>(script == plan.scripts.end() ? plan.objects.at(task).time->max
                                                           : script->second.time->max);
}

// The task that a call is about; empty: none.
std::string TaskOf(const std::string& resource, const Json& input) {
  if (resource == "muster:copy") return input["object"];
  if (resource == "muster:transform") return input["arguments"]["ENTITY_NAME"];
  return "";
}

// Every second, starts what can start.
std::vector<Interval> BruteForce(const Plan& plan) {
  std::map<int64_t, int64_t> done;  // start of each rank
  std::vector<Interval> intervals;
  for (int64_t second = 0; done.size() < plan.ranks.size(); ++second) {
    for (bool more = true; more;) {
      more = false;
      for (const Rank& rank : plan.ranks) {
        const bool ready = !done.contains(rank.number) &&
                           std::all_of(rank.needs.begin(), rank.needs.end(), [&](int64_t need) {
                             return done.contains(need) && done[need] <= second;
                           });
        if (!ready) continue;
        int64_t extracted = second;
        for (const Reference& object : rank.extract) {
          intervals.push_back({object.name, second, second + TimeOf(plan, object.name)});
          extracted = std::max(extracted, intervals.back().end);
        }
        int64_t loaded = extracted;
        for (const Reference& script : rank.transform) {
          intervals.push_back({script.name, extracted, extracted + TimeOf(plan, script.name)});
          loaded = std::max(loaded, intervals.back().end);
        }
        done[rank.number] = loaded;
        more = true;
      }
    }
  }
  return intervals;
}

void ExpectSame(const Outlook& outlook, std::vector<Interval> intervals) {
  int64_t end = 0;
  std::map<std::string, std::pair<int64_t, int64_t>> found;
  for (const Interval& task : intervals) {
    end = std::max(end, task.end);
    found[task.name] = {task.start, task.end};
  }
  EXPECT_EQ(outlook.slow.total_s, static_cast<double>(end));
  ASSERT_EQ(outlook.slow.tasks.size(), found.size());
  for (const TaskTime& task : outlook.slow.tasks) {
    EXPECT_EQ((std::pair<int64_t, int64_t>(task.start_s, task.end_s)), found[task.name])
        << task.name;
  }
  const auto peaks = PeaksOf(outlook.plan, intervals);
  EXPECT_EQ(outlook.slow.flows.most, peaks[0]);
  EXPECT_EQ(outlook.slow.jobs.most, peaks[1]);
  EXPECT_EQ(outlook.slow.dpu.most, peaks[2]);
}

// A sanitizer gets fewer plans.
#ifdef MUSTER_SANITIZED
constexpr unsigned kRandomPlans = 100;
#else
constexpr unsigned kRandomPlans = 300;
#endif

TEST(Explain, OnRandomPlansAgreesWithTheMachineAndWithBruteForce) {
  int compared = 0;
  for (unsigned seed = 1; seed <= kRandomPlans; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    Plan plan = RandomPlan(random);
    Profile profile = plan.profiles.front();
    const Outlook outlook = MakeOutlook(std::move(plan), std::move(profile));
    FakeWorld world(outlook.compiled, [&](const states::TaskCall& call, int64_t) {
      const std::string task = TaskOf(call.resource, call.input);
      std::optional<states::TaskOutcome> outcome;
      if (!task.empty())
        outcome =
            states::TaskPending{{{"task", task}}, std::chrono::seconds(TimeOf(outlook.plan, task))};
      return outcome;
    });
    const auto run = world.Run({{"tenantId", "t"}, {"migrationId", "m"}, {"environment", "dev"}});
    ASSERT_EQ(run.status, states::FlowStatus::kSucceeded) << run.failure.cause;
    EXPECT_EQ(static_cast<int64_t>(run.events.size()), outlook.compiled.main.count.slow.events);
    std::vector<Interval> ran;
    for (const FakeWorld::Call& call : world.calls()) {
      const std::string task = TaskOf(call.resource, call.input);
      if (!task.empty()) ran.push_back({task, call.at_s, call.at_s + TimeOf(outlook.plan, task)});
    }
    ExpectSame(outlook, ran);
    const Pools& pools = outlook.plan.pools;
    const auto peaks = PeaksOf(outlook.plan, ran);
    EXPECT_LE(peaks[0], pools.flows.value_or(1'000));
    EXPECT_LE(peaks[1], pools.jobs.value_or(1'000));
    EXPECT_LE(peaks[2], pools.dpu.value_or(1'000));
    if (outlook.arrangement.delayed.empty() && !pools.flows && !pools.jobs && !pools.dpu) {
      ExpectSame(outlook, BruteForce(outlook.plan));
      ++compared;
    }
  }
  EXPECT_GT(compared, 10);
}

}  // namespace
}  // namespace muster::plan
