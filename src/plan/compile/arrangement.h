#pragma once

#include <memory>
#include <vector>

#include "plan/model/order.h"
#include "plan/model/plan.h"

namespace muster::plan {

// Tasks of one phase that run one after another, so that no more lanes run at a time than a pool
// allows. Without a pool each task has its own lane.
using Lane = std::vector<std::string>;

struct RankWork {
  size_t rank = 0;  // index in plan.ranks
  std::vector<Lane> extract = {};
  std::vector<Lane> transform = {};
};

// What runs when: one rank, steps in sequence, or steps in parallel. `explain` computes with it and
// the state machine is built from it, so the two agree.
struct Step {
  enum class Kind { kRank, kSequence, kParallel };
  Kind kind = Kind::kSequence;
  RankWork work = {};            // if kRank
  std::vector<Step> steps = {};  // otherwise
};

struct Arrangement {
  Step root;
  // Ranks that start later than their needs require: a state machine has only branches and
  // sequences, or a pool is too small to run them in parallel.
  std::vector<size_t> delayed;
};

// Ranks that do not depend on each other run in parallel; external ones count as done. The plan has
// no cycle. Within a phase the longest tasks start first.
Arrangement Arrange(const Plan& plan, const Order& order);

}  // namespace muster::plan
