#include "replica/assignment.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace muster::replica {
namespace {

std::vector<std::string> Members(int count) {
  std::vector<std::string> members;
  for (int i = 0; i < count; ++i) members.push_back("w" + std::to_string(i));
  return members;
}

void ExpectBalanced(const Assignment& assignment, int slots) {
  const auto count = static_cast<int>(assignment.members.size());
  ASSERT_EQ(assignment.owners.size(), static_cast<size_t>(slots));
  for (int partition = 0; partition < count; ++partition) {
    const auto owned = static_cast<int>(assignment.SlotsOf(partition).size());
    EXPECT_GE(owned, slots / count);
    EXPECT_LE(owned, slots / count + 1);
  }
}

int Moved(const Assignment& before, const Assignment& after) {
  int moved = 0;
  for (size_t slot = 0; slot < before.owners.size(); ++slot) {
    moved += before.members[static_cast<size_t>(before.owners[slot])] !=
             after.members[static_cast<size_t>(after.owners[slot])];
  }
  return moved;
}

TEST(Assign, DistributesSlotsEvenly) {
  for (const Strategy strategy : {Strategy::kRecreate, Strategy::kIncremental}) {
    for (int members = 1; members <= 20; ++members) {
      ExpectBalanced(Assign({}, Members(members), 16, strategy), 16);
    }
  }
}

TEST(Assign, DoesNotDependOnTheOrderOfMembers) {
  auto members = Members(5);
  const Assignment one = Assign({}, members, 16, Strategy::kRecreate);
  std::reverse(members.begin(), members.end());
  EXPECT_EQ(one, Assign({}, members, 16, Strategy::kRecreate));
}

TEST(Assign, KeepsTheOrderOfMembers) {
  const Assignment before{{"b", "c"}, {0, 0, 1, 1}};
  const Assignment after = Assign(before, {"a", "c", "b"}, 4, Strategy::kRecreate);
  EXPECT_EQ(after.members, (std::vector<std::string>{"b", "c", "a"}));
}

TEST(Assign, IncrementalMovesAsFewSlotsAsPossible) {
  Assignment before = Assign({}, Members(3), 128, Strategy::kIncremental);
  Assignment after = Assign(before, Members(4), 128, Strategy::kIncremental);
  ExpectBalanced(after, 128);
  EXPECT_EQ(Moved(before, after), 32);  // the new member's share
  before = after;
  after = Assign(before, {"w0", "w2", "w3"}, 128, Strategy::kIncremental);
  ExpectBalanced(after, 128);
  EXPECT_EQ(Moved(before, after), 32);  // the lost member's share
  EXPECT_EQ(Assign(after, {"w3", "w0", "w2"}, 128, Strategy::kIncremental), after);
}

TEST(Assign, WithoutMembersNothingIsOwned) {
  EXPECT_TRUE(Assign({}, {}, 16, Strategy::kRecreate).owners.empty());
  EXPECT_TRUE(Assign({}, {}, 16, Strategy::kIncremental).owners.empty());
}

}  // namespace
}  // namespace muster::replica
