#include "plan/compile/schedule.h"

#include <algorithm>

#include "plan/explain/estimate.h"

namespace muster::plan {
namespace {

// When something that started at a given time ends, and the tasks that determine it.
struct Ending {
  double end_s = 0;
  std::vector<size_t> critical = {};
};

class Scheduler {
 public:
  Scheduler(const Plan& plan, StagingFormat format, bool slowest)
      : plan_(plan), format_(format), slowest_(slowest) {}

  Schedule Run(const Step& root) {
    Ending ending = Place(root, 0);
    schedule_.total_s = ending.end_s;
    schedule_.critical = std::move(ending.critical);
    for (const TaskTime& task : schedule_.tasks)
      schedule_.dpu_seconds += static_cast<double>(task.dpu) * task.length_s();
    FindPeaks();
    return std::move(schedule_);
  }

 private:
  Ending Place(const Step& step, double start_s) {
    if (step.kind == Step::Kind::kRank) {
      const Ending extracted =
          PlacePhase(step.work.rank, Phase::kExtract, step.work.extract, start_s);
      return Then(extracted, PlacePhase(step.work.rank, Phase::kTransform, step.work.transform,
                                        extracted.end_s));
    }
    Ending ending{start_s};
    for (const Step& part : step.steps) {
      if (step.kind == Step::Kind::kSequence) {
        ending = Then(ending, Place(part, ending.end_s));
      } else if (Ending one = Place(part, start_s); one.end_s > ending.end_s) {
        ending = std::move(one);
      }
    }
    return ending;
  }

  static Ending Then(const Ending& first, Ending second) {
    second.critical.insert(second.critical.begin(), first.critical.begin(), first.critical.end());
    return second;
  }

  Ending PlacePhase(size_t rank, Phase phase, const std::vector<Lane>& lanes, double start_s) {
    Ending ending{start_s};
    for (const Lane& lane : lanes) {
      Ending one{start_s};
      for (const std::string& name : lane) {
        TaskTime task{.rank = rank, .phase = phase, .name = name, .start_s = one.end_s};
        task.end_s = task.start_s + LengthOf(task);
        if (phase == Phase::kTransform) task.dpu = plan_.scripts.at(name).dpu;
        one.end_s = task.end_s;
        one.critical.push_back(schedule_.tasks.size());
        schedule_.tasks.push_back(std::move(task));
      }
      if (one.end_s > ending.end_s) ending = std::move(one);
    }
    return ending;
  }

  double LengthOf(const TaskTime& task) const {
    const SecondsRange range = task.phase == Phase::kExtract
                                   ? EstimateExtract(plan_, plan_.objects.at(task.name))
                                   : EstimateTransform(plan_, plan_.ranks[task.rank],
                                                       plan_.scripts.at(task.name), format_);
    return slowest_ ? range.max : range.min;
  }

  // Visits starts and ends in time order; an end frees capacity for a start at the same moment.
  void FindPeaks() {
    struct Moment {
      double time_s;
      int64_t sign;
      const TaskTime* task;
    };
    std::vector<Moment> moments;
    for (const TaskTime& task : schedule_.tasks) {
      if (task.length_s() <= 0) continue;
      moments.push_back({task.start_s, 1, &task});
      moments.push_back({task.end_s, -1, &task});
    }
    std::stable_sort(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) {
      return std::pair(a.time_s, a.sign) < std::pair(b.time_s, b.sign);
    });
    int64_t flows = 0;
    int64_t jobs = 0;
    int64_t dpu = 0;
    for (const Moment& moment : moments) {
      (moment.task->phase == Phase::kExtract ? flows : jobs) += moment.sign;
      dpu += moment.sign * moment.task->dpu;
      Raise(schedule_.flows, flows, *moment.task);
      Raise(schedule_.jobs, jobs, *moment.task);
      Raise(schedule_.dpu, dpu, *moment.task);
    }
  }

  static void Raise(Peak& peak, int64_t now, const TaskTime& task) {
    if (now > peak.most) peak = {now, task.rank};
  }

  const Plan& plan_;
  const StagingFormat format_;
  const bool slowest_;
  Schedule schedule_;
};

}  // namespace

Schedule MakeSchedule(const Plan& plan, const Step& root, StagingFormat format, bool slowest) {
  return Scheduler(plan, format, slowest).Run(root);
}

}  // namespace muster::plan
