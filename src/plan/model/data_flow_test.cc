// Goal: nothing derived from outdated data counts as done. Method: plans with known dependencies,
// and results as stored by runs.

#include "plan/model/data_flow.h"

#include <gtest/gtest.h>

namespace muster::plan {
namespace {

using Keys = std::vector<std::string>;

Plan Read(const std::string& changes_from = "", const std::string& changes_to = "") {
  std::string text = R"(plan: p
profiles: {local: {source: "csv:{folder}", target: b, staging: c}}
variables: {folder: in}
objects: {People: {}, Posts: {}, Votes: {}}
scripts:
  people: {file: people.sql, schema: s, table: people, references: []}
  posts: {file: posts.sql, schema: s, table: posts, references: [s.people]}
  votes: {file: votes.sql, schema: s, table: votes, reads: [Posts, Votes], references: []}
ranks:
  - {rank: 1, extract: [People], transform: [people]}
  - {rank: 2, extract: [Posts], transform: [posts]}
  - {rank: 3, extract: [Votes], transform: [votes]}
)";
  if (!changes_from.empty()) text.replace(text.find(changes_from), changes_from.size(), changes_to);
  CheckedPlan checked = ParsePlan(text, "p.yaml", {});
  if (!checked.plan) throw std::runtime_error(checked.problems.front());
  return *std::move(checked.plan);
}

Json AllDone() {
  Json done;
  for (const char* key : {"extract/People", "extract/Posts", "extract/Votes", "transform/people",
                          "transform/posts", "transform/votes"})
    done[key] = {{"rows", 1}};
  for (const char* key : {"reconcile/1", "reconcile/2", "reconcile/3"}) done[key] = {{"loaded", 1}};
  return done;
}

Keys KeysIn(const Json& done) {
  Keys keys;
  for (const auto& [key, result] : done.items()) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  return keys;
}

TEST(Invalidate, ObjectInvalidatesItsReadersInAllRanks) {
  Json done = AllDone();
  EXPECT_EQ(Invalidate(Read(), {"extract/Posts"}, done),
            (Keys{"extract/Posts", "transform/posts", "transform/votes"}));
  EXPECT_EQ(KeysIn(done),
            (Keys{"extract/People", "extract/Votes", "reconcile/1", "transform/people"}));
}

TEST(Invalidate, ScriptInvalidatesThoseThatReferToItsTable) {
  Json done = AllDone();
  EXPECT_EQ(Invalidate(Read(), {"extract/People"}, done),
            (Keys{"extract/People", "transform/people", "transform/posts"}));
  EXPECT_EQ(KeysIn(done),
            (Keys{"extract/Posts", "extract/Votes", "reconcile/3", "transform/votes"}));
}

TEST(Invalidate, ObjectsThatAScriptActuallyReadCountToo) {
  Json done = AllDone();
  done["transform/votes"]["objects"] = {{"People", 3}};
  EXPECT_EQ(Invalidate(Read(), {"extract/People"}, done),
            (Keys{"extract/People", "transform/people", "transform/posts", "transform/votes"}));
}

TEST(Invalidate, UnfinishedObjectInvalidatesItsReaders) {
  Json done = AllDone();
  done.erase("extract/Votes");
  EXPECT_EQ(Invalidate(Read(), {}, done), Keys{"transform/votes"});
  EXPECT_FALSE(done.contains("reconcile/3"));
}

TEST(Invalidate, NothingIsInvalidatedWithoutAChange) {
  Json done = AllDone();
  EXPECT_EQ(Invalidate(Read(), {}, done), Keys{});
  EXPECT_EQ(done, AllDone());
}

TEST(ChangedTasks, AreTasksWithAnotherDefinition) {
  const Plan before = Read();
  const auto changed = [&](const std::string& from, const std::string& to) {
    return ChangedTasks(before, Read(from, to), "local");
  };
  using Set = std::set<std::string>;
  EXPECT_EQ(ChangedTasks(before, before, "local"), Set{});
  EXPECT_EQ(changed("Votes: {}", "Votes: {rows: 5, timeout: 9h}"), Set{});
  EXPECT_EQ(changed("table: votes", "dpu: 7, retry: {attempts: 9}, table: votes"), Set{});
  EXPECT_EQ(changed("table: votes", "table: ballots"), Set{"transform/votes"});
  EXPECT_EQ(changed("votes.sql", "others.sql"), Set{"transform/votes"});
  EXPECT_EQ(changed("folder: in", "folder: elsewhere"),
            (Set{"extract/People", "extract/Posts", "extract/Votes"}));
  EXPECT_EQ(changed("target: b", "target: d"),
            (Set{"transform/people", "transform/posts", "transform/votes"}));
  Plan edited = before;
  edited.scripts.at("posts").sha256 = "another";
  EXPECT_EQ(ChangedTasks(before, edited, "local"), Set{"transform/posts"});
  EXPECT_EQ(ChangedTasks(Plan(), before, "local").size(), 6U);
}

}  // namespace
}  // namespace muster::plan
