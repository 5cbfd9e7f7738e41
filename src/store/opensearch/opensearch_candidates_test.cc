#include "store/opensearch/opensearch_candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace muster::store {
namespace {

// A search's view, and how often it was called.
struct Index {
  std::vector<Candidate> due;  // oldest first
  int searches = 0;

  explicit Index(int count) {
    for (int i = 0; i < count; ++i) due.push_back({std::to_string(i), {i, 1}});
  }
  Candidates::Search Searching() {
    return [this](size_t size) -> Result<std::vector<Candidate>> {
      ++searches;
      return std::vector<Candidate>(
          due.begin(), due.begin() + static_cast<std::ptrdiff_t>(std::min(size, due.size())));
    };
  }
};

std::vector<int> Take(Candidates& candidates, Index& index, size_t count) {
  std::vector<int> ids;
  const auto taken = candidates.Take(count, RealEnv().MonoNow(), index.Searching()).value();
  for (const Candidate& candidate : taken) ids.push_back(std::stoi(candidate.id));
  return ids;
}

TEST(Candidates, OneSearchServesManyClaimsAndNoCandidateIsHandedOutTwice) {
  Index index(100);
  Candidates candidates(RealEnv());
  std::set<int> taken;
  for (int i = 0; i < 50; ++i) {
    for (const int id : Take(candidates, index, 2)) EXPECT_TRUE(taken.insert(id).second);
  }
  EXPECT_EQ(taken.size(), 100u);
  EXPECT_EQ(index.searches, 1);
}

TEST(Candidates, StaleSearchOffersNothingNew) {
  Index index(3);
  Candidates candidates(RealEnv());
  EXPECT_EQ(Take(candidates, index, 3).size(), 3u);
  EXPECT_TRUE(Take(candidates, index, 1).empty());
  EXPECT_EQ(index.searches, 2);
}

TEST(Candidates, NewVersionOfARecordIsANewCandidate) {
  Index index(1);
  Candidates candidates(RealEnv());
  EXPECT_EQ(Take(candidates, index, 1).size(), 1u);
  index.due[0].version.seq_no = 17;
  EXPECT_EQ(Take(candidates, index, 1).size(), 1u);
}

TEST(Candidates, ReturnedCandidateIsOfferedAgain) {
  Index index(1);
  Candidates candidates(RealEnv());
  EXPECT_EQ(Take(candidates, index, 1).size(), 1u);
  candidates.GiveBack(index.due[0]);
  EXPECT_EQ(Take(candidates, index, 1).size(), 1u);
}

TEST(Candidates, OlderHalfComesFirst) {
  Index index(20);
  Candidates candidates(RealEnv());
  const std::vector<int> first = Take(candidates, index, 10);
  EXPECT_TRUE(std::all_of(first.begin(), first.end(), [](int id) { return id < 10; }));
  const std::vector<int> rest = Take(candidates, index, 10);
  EXPECT_TRUE(std::all_of(rest.begin(), rest.end(), [](int id) { return id >= 10; }));
}

TEST(Candidates, OldestOfThreeComesFirst) {
  for (int i = 0; i < 20; ++i) {
    Index index(3);
    Candidates candidates(RealEnv());
    EXPECT_EQ(Take(candidates, index, 1), std::vector<int>{0});
  }
}

TEST(Candidates, ConcurrentProcessesChooseDifferentCandidates) {
  Index index(40);
  std::set<int> wanted;
  for (int process = 0; process < 40; ++process) {
    Candidates candidates(RealEnv());
    wanted.insert(Take(candidates, index, 1).front());
  }
  EXPECT_GE(wanted.size(), 8u);  // of 20; less has a chance of one in a million
}

TEST(Candidates, AfterACollisionTheOrderIsRandom) {
  Index index(40);
  std::set<int> wanted;
  for (int process = 0; process < 100; ++process) {
    Candidates candidates(RealEnv());
    candidates.Collided();
    wanted.insert(Take(candidates, index, 1).front());
  }
  EXPECT_TRUE(std::any_of(wanted.begin(), wanted.end(), [](int id) { return id >= 20; }));
}

TEST(Candidates, CollisionMakesTheNextClaimSearch) {
  Index index(40);
  Candidates candidates(RealEnv());
  Take(candidates, index, 1);
  candidates.Collided();
  Take(candidates, index, 1);
  EXPECT_EQ(index.searches, 2);
}

TEST(Candidates, FailedSearchIsReturned) {
  Candidates candidates(RealEnv());
  const auto taken = candidates.Take(1, RealEnv().MonoNow(), [](size_t) {
    return Result<std::vector<Candidate>>(Error{Code::kUnavailable, "gone"});
  });
  EXPECT_EQ(taken.error().code, Code::kUnavailable);
}

TEST(Candidates, ClaimSharesASearchStartedAfterItArrived) {
  Index index(0);
  Candidates candidates(RealEnv());
  const MonoTime arrived = RealEnv().MonoNow();
  EXPECT_TRUE(candidates.Take(1, RealEnv().MonoNow(), index.Searching()).value().empty());
  EXPECT_TRUE(candidates.Take(1, arrived, index.Searching()).value().empty());
  EXPECT_EQ(index.searches, 1);
}

}  // namespace
}  // namespace muster::store
