#include "plan/compile/arrangement.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "core/planted_bug.h"
#include "plan/explain/estimate.h"

namespace muster::plan {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max() / 4;

// An amount of each thing that a pool limits.
struct Amount {
  int64_t flows = 0;
  int64_t jobs = 0;
  int64_t dpu = 0;

  bool FitsInto(const Amount& other) const {
    return flows <= other.flows && jobs <= other.jobs && dpu <= other.dpu;
  }
};

Amount Sum(const Amount& a, const Amount& b) {
  return {a.flows + b.flows, a.jobs + b.jobs, a.dpu + b.dpu};
}

Amount Most(const Amount& a, const Amount& b) {
  return {std::max(a.flows, b.flows), std::max(a.jobs, b.jobs), std::max(a.dpu, b.dpu)};
}

class Arranger {
 public:
  Arranger(const Plan& plan, const Order& order) : plan_(plan), order_(order) {}

  Arrangement Arrange() {
    std::vector<size_t> ranks;
    for (size_t i = 0; i < plan_.ranks.size(); ++i) {
      if (!plan_.ranks[i].external) ranks.push_back(i);
    }
    Step root = Shape(ranks);
    const auto most = [](const std::optional<int64_t>& pool) {
      return PLANTED_BUG(pools_are_ignored) ? kUnlimited : pool.value_or(kUnlimited);
    };
    Share(root, {most(plan_.pools.flows), most(plan_.pools.jobs), most(plan_.pools.dpu)});
    std::sort(delayed_.begin(), delayed_.end());
    delayed_.erase(std::unique(delayed_.begin(), delayed_.end()), delayed_.end());
    return {std::move(root), std::move(delayed_)};
  }

 private:
  using Related = std::function<bool(size_t, size_t)>;

  // The connected components of the ranks under `related`.
  static std::vector<std::vector<size_t>> Groups(const std::vector<size_t>& ranks,
                                                 const Related& related) {
    std::vector<std::vector<size_t>> groups;
    std::vector<bool> taken(ranks.size());
    for (size_t first = 0; first < ranks.size(); ++first) {
      if (taken[first]) continue;
      std::vector<size_t> group{first};
      taken[first] = true;
      for (size_t next = 0; next < group.size(); ++next) {
        for (size_t other = first; other < ranks.size(); ++other) {
          if (taken[other] || !related(ranks[group[next]], ranks[other])) continue;
          taken[other] = true;
          group.push_back(other);
        }
      }
      std::sort(group.begin(), group.end());
      for (size_t& index : group) index = ranks[index];
      groups.push_back(std::move(group));
    }
    return groups;
  }

  Step Compose(Step::Kind kind, const std::vector<std::vector<size_t>>& groups) {
    Step step{.kind = kind};
    for (const auto& group : groups) step.steps.push_back(Shape(group));
    return step;
  }

  Step Shape(const std::vector<size_t>& ranks) {
    if (ranks.size() == 1) return {.kind = Step::Kind::kRank, .work = {.rank = ranks.front()}};
    const Related ordered = [this](size_t a, size_t b) {
      return order_.IsBefore(a, b) || order_.IsBefore(b, a);
    };
    // Components that do not depend on each other.
    auto groups = Groups(ranks, ordered);
    if (groups.size() != 1) return Compose(Step::Kind::kParallel, groups);
    // Components of which each depends on the whole previous one. They are already in order,
    // because a rank only needs lower ones.
    groups = Groups(ranks, [&](size_t a, size_t b) { return !ordered(a, b); });
    if (PLANTED_BUG(needs_are_ignored)) return Compose(Step::Kind::kParallel, groups);
    if (groups.size() != 1) return Compose(Step::Kind::kSequence, groups);
    // Neither applies: ranks without dependencies in the set go first, and all others wait for all
    // of them.
    std::vector<size_t> first;
    std::vector<size_t> rest;
    for (const size_t rank : ranks) {
      const bool waits = std::any_of(ranks.begin(), ranks.end(),
                                     [&](size_t other) { return order_.IsBefore(other, rank); });
      (waits ? rest : first).push_back(rank);
    }
    for (const size_t rank : rest) {
      const bool late = std::any_of(first.begin(), first.end(),
                                    [&](size_t other) { return !order_.IsBefore(other, rank); });
      if (late) delayed_.push_back(rank);
    }
    return Compose(Step::Kind::kSequence, {first, rest});
  }

  // What a step needs to run without waiting, and the least that it can run with.
  Amount Wanted(const Step& step) const {
    Amount amount;
    if (step.kind == Step::Kind::kRank) {
      const Rank& rank = plan_.ranks[step.work.rank];
      amount = {static_cast<int64_t>(rank.extract.size()),
                static_cast<int64_t>(rank.transform.size()), 0};
      for (const Reference& script : rank.transform)
        amount.dpu += plan_.scripts.at(script.name).dpu;
    }
    for (const Step& part : step.steps) {
      amount = step.kind == Step::Kind::kParallel ? Sum(amount, Wanted(part))
                                                  : Most(amount, Wanted(part));
    }
    return amount;
  }
  Amount Least(const Step& step) const {
    Amount amount;
    if (step.kind == Step::Kind::kRank) {
      const Rank& rank = plan_.ranks[step.work.rank];
      amount = {rank.extract.empty() ? 0 : 1, rank.transform.empty() ? 0 : 1, 0};
      for (const Reference& script : rank.transform)
        amount.dpu = std::max(amount.dpu, plan_.scripts.at(script.name).dpu);
    }
    for (const Step& part : step.steps) {
      amount =
          step.kind == Step::Kind::kParallel ? Sum(amount, Least(part)) : Most(amount, Least(part));
    }
    return amount;
  }

  // Divides the available amount among the parts of a step, and a phase into lanes.
  void Share(Step& step, const Amount& budget) {
    if (step.kind == Step::Kind::kRank) return MakeLanes(step.work, budget);
    if (step.kind == Step::Kind::kParallel && !Least(step).FitsInto(budget)) {
      step.kind = Step::Kind::kSequence;
      for (size_t i = 1; i < step.steps.size(); ++i) CollectRanks(step.steps[i], delayed_);
    }
    if (step.kind == Step::Kind::kSequence) {
      for (Step& part : step.steps) Share(part, budget);
      return;
    }
    const Amount least = Least(step);
    Amount spare{budget.flows - least.flows, budget.jobs - least.jobs, budget.dpu - least.dpu};
    for (Step& part : step.steps) {
      // First come, first served; each part gets at least its minimum.
      const Amount own = Least(part);
      const Amount wanted = Wanted(part);
      const Amount more{std::min(spare.flows, wanted.flows - own.flows),
                        std::min(spare.jobs, wanted.jobs - own.jobs),
                        std::min(spare.dpu, wanted.dpu - own.dpu)};
      spare = {spare.flows - more.flows, spare.jobs - more.jobs, spare.dpu - more.dpu};
      Share(part, Sum(own, more));
    }
  }

  static void CollectRanks(const Step& step, std::vector<size_t>& ranks) {
    if (step.kind == Step::Kind::kRank) ranks.push_back(step.work.rank);
    for (const Step& part : step.steps) CollectRanks(part, ranks);
  }

  struct Load {
    std::string name;
    double time_s = 0;
    int64_t dpu = 0;
  };

  void MakeLanes(RankWork& work, const Amount& budget) const {
    const Rank& rank = plan_.ranks[work.rank];
    std::vector<Load> flows;
    for (const Reference& object : rank.extract)
      flows.push_back({object.name, EstimateExtract(plan_, plan_.objects.at(object.name)).max});
    work.extract = Pack(std::move(flows), budget.flows, kUnlimited);
    std::vector<Load> jobs;
    for (const Reference& script : rank.transform) {
      const TransformTask& task = plan_.scripts.at(script.name);
      jobs.push_back(
          {task.name, EstimateTransform(plan_, rank, task, StagingFormat::kJson).max, task.dpu});
    }
    work.transform = Pack(std::move(jobs), budget.jobs, budget.dpu);
  }

  // Longest task first, each on the lane that is free earliest. A lane reserves the DPU of its
  // largest task.
  static std::vector<Lane> Pack(std::vector<Load> loads, int64_t lanes, int64_t dpu) {
    struct Filling {
      Lane lane;
      double time_s = 0;
      int64_t dpu = 0;
    };
    const int64_t total = static_cast<int64_t>(loads.size());
    int64_t wanted = 0;
    for (const Load& load : loads) wanted += load.dpu;
    const bool narrow = total > lanes || wanted > dpu;
    if (narrow) {
      std::stable_sort(loads.begin(), loads.end(), [](const Load& a, const Load& b) {
        return std::pair(a.dpu, a.time_s) > std::pair(b.dpu, b.time_s);
      });
    }
    std::vector<Filling> filled;
    int64_t used = 0;
    for (Load& load : loads) {
      const bool room = static_cast<int64_t>(filled.size()) < lanes && used + load.dpu <= dpu;
      if (room) {
        filled.push_back({{std::move(load.name)}, load.time_s, load.dpu});
        used += load.dpu;
        continue;
      }
      // Earlier tasks took at least as many DPU, so any lane is wide enough.
      const auto free =
          std::min_element(filled.begin(), filled.end(),
                           [](const Filling& a, const Filling& b) { return a.time_s < b.time_s; });
      free->lane.push_back(std::move(load.name));
      free->time_s += load.time_s;
    }
    std::vector<Lane> result;
    for (Filling& filling : filled) result.push_back(std::move(filling.lane));
    return result;
  }

  const Plan& plan_;
  const Order& order_;
  std::vector<size_t> delayed_;
};

}  // namespace

Arrangement Arrange(const Plan& plan, const Order& order) {
  return Arranger(plan, order).Arrange();
}

}  // namespace muster::plan
