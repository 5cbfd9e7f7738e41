// Goal: a run knows the rank, phase and task of each of its states, whatever their names. Method:
// tables of compiled plans, and tables in the memory store.

#include "plan/compile/state_table.h"

#include <gtest/gtest.h>

#include "core/json.h"
#include "plan/compile/compile.h"

namespace muster::plan {
namespace {

Plan PlanOf(const std::string& profiles) {
  CheckedPlan checked = ParsePlan("plan: p\nprofiles: " + profiles + R"(
variables: {customer: a, app-name: b, environment: c, region: d, account: 'e'}
objects: {A: {}, B: {}}
scripts: {load-a: {file: a.sql, schema: s, table: a}}
ranks:
  - {rank: 1, extract: [A], transform: [load-a]}
  - {rank: 2, extract: [B]}
)",
                                  "p.yaml", {});
  if (!checked.plan) throw std::runtime_error(checked.problems.front());
  return *std::move(checked.plan);
}

TEST(StateTable, EachTaskHasOneFirstAndOneLastState) {
  for (const char* profiles :
       {"{local: {source: a, target: b, staging: c}}", "{aws: {kind: aws}}"}) {
    const Plan plan = PlanOf(profiles);
    std::map<std::string, int> begun;
    std::map<std::string, int> ended;
    for (const auto& [name, state] : StatesOf(plan, plan.profiles.front())) {
      EXPECT_TRUE(plan.FindRank(state.rank)) << name;
      if (!state.phase) continue;
      begun[KeyOf(*state.phase, state.task)] += state.Begins() ? 1 : 0;
      ended[KeyOf(*state.phase, state.task)] += state.Ends() ? 1 : 0;
    }
    const std::map<std::string, int> once{
        {"extract/A", 1}, {"extract/B", 1}, {"transform/load-a", 1}};
    EXPECT_EQ(begun, once) << profiles;
    EXPECT_EQ(ended, once) << profiles;
  }
}

TEST(StateTable, ATableOfSeveralRecordsIsReadAsItWasWritten) {
  const auto store = *store::OpenStore("memory:", RealEnv());
  StateTable states{{"Rank1-Done", {1, StateRole::kRankDone}}};
  for (int i = 0; i < 5'000; ++i) {
    const std::string task = "a-task-with-quite-a-long-name-" + std::to_string(i);
    states["Extract-1-" + task] = {1, StateRole::kTask, Phase::kExtract, task};
  }
  ASSERT_TRUE(WriteStates(*store, "m.1", states));
  ASSERT_TRUE(WriteStates(*store, "m.1", states));
  EXPECT_GT(store->Scan("plan.states", "m.1/", "", 100)->size(), 1U);
  EXPECT_EQ(**ReadStates(*store, "m.1"), states);
  EXPECT_FALSE(*ReadStates(*store, "m.2"));
}

TEST(StateTable, ATableOfANewerVersionIsRefusedWithBothVersions) {
  const auto store = *store::OpenStore("memory:", RealEnv());
  const store::Record newer{
      .kind = "plan.states", .queue = "default", .key = "m.1/0", .body = R"({"v": 7})"};
  ASSERT_TRUE(store->Write({{store::Change::Put(newer, store::Due::Never())}}));
  const auto read = ReadStates(*store, "m.1");
  ASSERT_FALSE(read);
  EXPECT_EQ(
      read.error().message,
      "the state table 'm.1/0' was written by a newer version of muster: in format 7, and this "
      "one reads up to format 1");
}

}  // namespace
}  // namespace muster::plan
