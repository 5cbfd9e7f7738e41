// Goal: all problems of a plan are reported at once, each with its position and a fix. Method: a
// table of plans with all the problems that must be found.

#include "plan/model/plan.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/json.h"
#include "plan/model/plan_json.h"
#include "support/temporary_folder.h"

namespace muster::plan {
namespace {

TEST(Plan, EveryProblemIsReportedAtItsPosition) {
  std::ifstream file(MUSTER_PLAN_PROBLEMS);
  ASSERT_TRUE(file);
  int cases = 0;
  for (std::string line; std::getline(file, line); ++cases) {
    const Json test_case = Json::parse(line);
    const CheckedPlan checked = ParsePlan(test_case["plan"].get<std::string>(), "p.yaml", {});
    std::vector<std::string> expected;
    for (const Json& problem : test_case["problems"])
      expected.push_back("p.yaml:" + problem.get<std::string>());
    EXPECT_EQ(checked.problems, expected) << test_case["name"];
    EXPECT_EQ(checked.plan.has_value(), expected.empty()) << test_case["name"];
  }
  EXPECT_GT(cases, 30);
}

TEST(Plan, TheExampleHasNoProblems) {
  EXPECT_EQ(ReadPlan(MUSTER_PLAN_EXAMPLE, {}).problems, std::vector<std::string>());
}

TEST(Plan, APinnedPlanNamesItsEnumsAndIsReadWithNumbersToo) {
  const CheckedPlan checked = ParsePlan(R"(plan: p
on_failure: continue
profiles: {local: {source: a, target: b, staging: c, format: parquet}}
objects: {A: {}}
ranks: [{rank: 1, extract: [A]}]
)",
                                        "p.yaml", {});
  ASSERT_TRUE(checked.plan) << checked.problems.front();
  const Json names = Canonical(*checked.plan);
  EXPECT_EQ(names["on_failure"], "continue");
  EXPECT_EQ(names["profiles"]["local"]["kind"], "local");
  EXPECT_EQ(names["profiles"]["local"]["format"], "parquet");
  const Json numbers = Canonical(*checked.plan, CanonicalForm::kNumbers);
  EXPECT_EQ(numbers["on_failure"], 2);
  for (const Json& form : {names, numbers}) {
    const auto plan = ReadCanonical(form);
    ASSERT_TRUE(plan) << plan.error().ToString();
    EXPECT_EQ(plan->on_failure, FailurePolicy::kContinue);
    EXPECT_EQ(plan->profiles.front().format, StagingFormat::kParquet);
  }
  Json unknown = names;
  unknown["on_failure"] = "later";
  EXPECT_EQ(ReadCanonical(unknown).error().code, Code::kCorrupt);
  unknown["on_failure"] = 3;
  EXPECT_EQ(ReadCanonical(unknown).error().code, Code::kCorrupt);
}

TEST(Plan, TooManyTasksAreRefusedByNumber) {
  std::string text =
      "plan: big\nprofiles: {x: {kind: aws}}\nvariables: {customer: a, app-name: b, "
      "region: c, account: d}\nobjects:\n";
  std::string rank = "ranks:\n  - rank: 1\n    extract:\n";
  for (int i = 0; i < 100'000; ++i) {
    text += "  o" + std::to_string(i) + ": {}\n";
    rank += "      - o" + std::to_string(i) + "\n";
  }
  const CheckedPlan checked = ParsePlan(text + rank, "p.yaml", {});
  ASSERT_EQ(checked.problems.size(), 1U);
  EXPECT_NE(checked.problems[0].find("there are 100000 tasks, more than 10000"), std::string::npos)
      << checked.problems[0];
}

TEST(Plan, MissingFileIsReported) {
  const CheckedPlan checked = ReadPlan("/nowhere/plan.yaml", {});
  ASSERT_EQ(checked.problems.size(), 1U);
  EXPECT_NE(checked.problems[0].find("/nowhere/plan.yaml"), std::string::npos);
}

TEST(Plan, ALocalProfileNeedsItsScripts) {
  const muster::testing::TemporaryFolder folder;
  folder.Write("here.sql", "SELECT 1");
  const std::string text =
      "plan: p\n"
      "profiles: {local: {source: a, target: b, staging: c}}\n"
      "scripts:\n"
      "  here: {file: here.sql, schema: s, table: a}\n"
      "  gone: {file: gone.sql, schema: s, table: b}\n"
      "  none: {schema: s, table: c}\n"
      "ranks: [{rank: 1, transform: [here, gone, none]}]\n";
  const std::string path = folder.Write("plan.yaml", text);
  EXPECT_EQ(CheckPlan(path),
            (std::vector<std::string>{
                path + ":5:3: job not found: no file 'gone.sql' for gone",
                path + ":6:3: the script none has no file (a local profile runs it)"}));
}

TEST(Plan, ALinkOutOfTheFolderIsOutside) {
  const muster::testing::TemporaryFolder folder;
  folder.Write("elsewhere/x.sql", "SELECT 1");
  std::filesystem::create_directories(folder.path() + "/plan");
  std::filesystem::create_symlink(folder.path() + "/elsewhere/x.sql",
                                  folder.path() + "/plan/x.sql");
  const std::string path =
      folder.Write("plan/plan.yaml",
                   "plan: p\nprofiles: {local: {source: a, target: b, staging: c}}\n"
                   "scripts: {x: {file: x.sql, schema: s, table: a}}\n"
                   "ranks: [{rank: 1, transform: [x]}]\n");
  const auto problems = ReadPlan(path, {}).problems;
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_NE(problems[0].find("outside of the plan's folder"), std::string::npos) << problems[0];
}

TEST(Plan, HashDependsOnMeaningNotOnText) {
  const std::string head =
      "profiles: {aws: {}}\nvariables: {customer: a, app-name: b, region: c, "
      "account: d}\n";
  const auto one =
      ParsePlan("plan: p\n" + head + "objects: {A: {rows: 1}}\nranks: [{rank: 1, extract: [A]}]\n",
                "a.yaml", {});
  const auto same = ParsePlan(
      "# other words\n" + head +
          "plan: p\nranks: [{rank: 1, extract: A}]\nobjects: {A: {rows: 1, timeout: 240m}}\n",
      "b.yaml", {});
  const auto other =
      ParsePlan("plan: p\n" + head + "objects: {A: {rows: 2}}\nranks: [{rank: 1, extract: [A]}]\n",
                "c.yaml", {});
  ASSERT_TRUE(one.plan && same.plan && other.plan);
  EXPECT_EQ(HashOf(*one.plan), HashOf(*same.plan));
  EXPECT_NE(HashOf(*one.plan), HashOf(*other.plan));
  const auto differences = Compare(*one.plan, *other.plan);
  ASSERT_EQ(differences.size(), 1U);
  EXPECT_EQ(differences[0].where, "objects.A.rows");
  EXPECT_EQ(differences[0].before, 1);
  EXPECT_EQ(differences[0].after, 2);
}

}  // namespace
}  // namespace muster::plan
