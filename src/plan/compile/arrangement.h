#pragma once

#include <memory>
#include <vector>

#include "plan/model/order.h"
#include "plan/model/plan.h"

namespace muster::plan {

// Tasks of one phase that run one after another, so that no more lanes than a pool allows run at a
// time. Without a pool each task has a lane to itself.
using Lane = std::vector<std::string>;

struct RankWork {
  size_t rank = 0;  // its place in plan.ranks
  std::vector<Lane> extract = {};
  std::vector<Lane> transform = {};
};

// What runs when: one rank, steps one after another, or steps side by side. It is what both
// `explain` computes with and the state machine is made of, so that they agree.
struct Step {
  enum class Kind { kRank, kSequence, kParallel };
  Kind kind = Kind::kSequence;
  RankWork work = {};            // of a rank
  std::vector<Step> steps = {};  // of the others
};

struct Arrangement {
  Step root;
  // Ranks that start later than their needs ask for: a state machine knows branches and sequences
  // only, or a pool is too small for them to run side by side.
  std::vector<size_t> delayed;
};

// Ranks that need not wait for each other run side by side, external ones are done. The plan has
// no cycle. Within a phase the tasks that take longest begin first.
Arrangement Arrange(const Plan& plan, const Order& order);

}  // namespace muster::plan
