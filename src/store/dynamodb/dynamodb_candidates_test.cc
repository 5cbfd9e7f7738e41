#include "store/dynamodb/dynamodb_candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/virtual_env.h"

namespace muster::store {
namespace {

using namespace std::chrono_literals;
using Candidate = DynamoDbCandidates::Candidate;

class DynamoDbCandidatesTest : public ::testing::Test {
 protected:
  // As many as the index has, up to the limit.
  Result<std::optional<Candidate>> Next() {
    return candidates_.Next("work", "q", [&](int limit) -> Result<std::vector<Candidate>> {
      ++asked_;
      limit_ = limit;
      std::vector<Candidate> proposed;
      for (const Candidate& candidate : index_) {
        if (proposed.size() < static_cast<size_t>(limit)) proposed.push_back(candidate);
      }
      return proposed;
    });
  }

  void Fill(int first, int count) {
    for (int i = first; i < first + count; ++i) {
      index_.push_back({.key = std::to_string(i), .version = 1, .attempt = 0});
    }
  }

  VirtualEnv env_;
  DynamoDbCandidates candidates_{env_};
  std::vector<Candidate> index_;
  int asked_ = 0;
  int limit_ = 0;
};

TEST_F(DynamoDbCandidatesTest, OneQueryServesManyClaimsInOrder) {
  Fill(0, 20);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Next().value()->key, std::to_string(i));
  EXPECT_EQ(asked_, 1);
}

TEST_F(DynamoDbCandidatesTest, QueryResultExpires) {
  Fill(0, 20);
  ASSERT_TRUE(Next().value());
  env_.Pass(2s);
  EXPECT_EQ(Next().value()->key, "0");
  EXPECT_EQ(asked_, 2);
}

TEST_F(DynamoDbCandidatesTest, SettledCandidateIsNotProposedAgainForAWhile) {
  Fill(0, 2);
  candidates_.Settled("work", "q", *Next().value(), true);
  candidates_.Settled("work", "q", *Next().value(), false);
  EXPECT_FALSE(Next().value());
  index_[0].version = 2;  // released
  EXPECT_EQ(Next().value()->version, 2);
  env_.Pass(10s);
  EXPECT_TRUE(Next().value());
  EXPECT_TRUE(Next().value());
}

TEST_F(DynamoDbCandidatesTest, IndexFullOfSettledCandidatesIsReadFurther) {
  Fill(0, 30);
  for (int i = 0; i < 25; ++i)
    candidates_.Settled("work", "q", index_[static_cast<size_t>(i)], true);
  EXPECT_EQ(Next().value()->key, "25");
}

TEST_F(DynamoDbCandidatesTest, ContentionRequestsMoreAndPicksAtRandom) {
  Fill(0, 1'000);
  std::set<int> keys;
  for (int i = 0; i < 40; ++i) {
    const Candidate candidate = *Next().value();
    candidates_.Settled("work", "q", candidate, false);
    keys.insert(std::stoi(candidate.key));
  }
  EXPECT_EQ(keys.size(), 40u);
  EXPECT_EQ(limit_, 250);
  EXPECT_GT(*keys.rbegin(), 40);
}

TEST_F(DynamoDbCandidatesTest, FailedQueryIsReturned) {
  const auto next = candidates_.Next("work", "q", [](int) -> Result<std::vector<Candidate>> {
    return Error{Code::kUnavailable, "no"};
  });
  ASSERT_FALSE(next);
  EXPECT_EQ(next.error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace muster::store
