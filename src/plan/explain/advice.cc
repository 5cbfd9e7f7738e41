#include <algorithm>
#include <cmath>
#include <set>

#include "plan/explain/explain.h"
#include "plan/explain/what_if.h"
#include "plan/model/order.h"

namespace muster::plan {
namespace {

constexpr int64_t kEventLimit = 25'000;  // of an execution on AWS
constexpr double kWorthIt = 0.01;        // share of the total time below which advice is not given
constexpr int64_t kMoreDpu = 5;
constexpr size_t kMostAdvice = 12;
// Beyond this, trying out every change takes longer than the advice is worth.
constexpr size_t kMostTasksToTry = 500;

class Adviser {
 public:
  explicit Adviser(const Outlook& outlook) : outlook_(outlook), plan_(outlook.plan) {}

  std::vector<Advice> Advise() {
    Warn();
    if (outlook_.slow.tasks.size() <= kMostTasksToTry) {
      TryParallel();
      if (outlook_.IsAws()) TryDpu();
      TryParquet();
      FindMerges();
    }
    std::stable_sort(advice_.begin(), advice_.end(), [](const Advice& a, const Advice& b) {
      const bool first_warns = a.kind == AdviceKind::kWarning;
      const bool second_warns = b.kind == AdviceKind::kWarning;
      if (first_warns != second_warns) return first_warns;
      return a.saves.max > b.saves.max;
    });
    if (advice_.size() > kMostAdvice) advice_.resize(kMostAdvice);
    return std::move(advice_);
  }

 private:
  // The time a change saves; none: it cannot be made.
  std::optional<SecondsRange> Try(const std::string& change) const {
    Plan plan = plan_;
    StagingFormat format = outlook_.profile.format;
    if (!ApplyWhatIf(plan, format, change)) return std::nullopt;
    const Arrangement arrangement = Arrange(plan, Order(plan));
    return SecondsRange{
        outlook_.quick.total_s - MakeSchedule(plan, arrangement.root, format, false).total_s,
        outlook_.slow.total_s - MakeSchedule(plan, arrangement.root, format, true).total_s};
  }

  void Add(AdviceKind kind, const std::string& text, const std::string& change) {
    const auto saves = Try(change);
    if (!saves || saves->max < outlook_.slow.total_s * kWorthIt) return;
    const double percent = std::round(100 * saves->max / outlook_.slow.total_s);
    advice_.push_back(
        {kind, text + ": " + std::to_string(static_cast<int64_t>(percent)) + " % of the total time",
         change, *saves});
  }

  void Warn() {
    if (outlook_.IsAws() && outlook_.MostEvents() > kEventLimit) {
      advice_.push_back({AdviceKind::kWarning,
                         "an execution writes up to " + std::to_string(outlook_.MostEvents()) +
                             " events, and AWS ends it at 25,000: raise poll, or "
                             "split the rank"});
    }
    for (const size_t rank : outlook_.arrangement.delayed) {
      advice_.push_back(
          {AdviceKind::kWarning, "rank " + std::to_string(plan_.ranks[rank].number) +
                                     " starts later than its needs require: branches of a "
                                     "state machine cannot wait for each other"});
    }
  }

  void TryParallel() {
    for (const Rank& second : plan_.ranks) {
      if (second.external) continue;
      for (const int64_t number : second.needs) {
        const Rank& first = plan_.ranks[*plan_.FindRank(number)];
        if (first.external || !CouldRunBeside(plan_, first, second)) continue;
        const std::string a = std::to_string(first.number);
        const std::string b = std::to_string(second.number);
        Add(AdviceKind::kParallel,
            "rank " + b + " refers to nothing of rank " + a + " and could run beside it",
            "parallel=" + a + "," + b);
      }
    }
  }

  void TryDpu() {
    for (const size_t place : outlook_.slow.critical) {
      const TaskTime& task = outlook_.slow.tasks[place];
      if (task.phase != Phase::kTransform) continue;
      const int64_t more = task.dpu + kMoreDpu;
      const double shorter = 1 - std::pow(static_cast<double>(task.dpu) / static_cast<double>(more),
                                          plan_.rates.dpu_exponent);
      Add(AdviceKind::kDpu,
          task.name + " with " + std::to_string(more) + " DPU instead of " +
              std::to_string(task.dpu) + " takes " +
              std::to_string(static_cast<int64_t>(std::round(100 * shorter))) + " % less",
          "dpu." + task.name + "=" + std::to_string(more));
    }
  }

  void TryParquet() {
    if (outlook_.profile.format == StagingFormat::kParquet) return;
    const auto smaller = static_cast<int64_t>(std::round(100 * (1 - plan_.rates.parquet_size)));
    Add(AdviceKind::kStaging,
        "staging in Parquet takes " + std::to_string(smaller) +
            " % less space and is read faster; JSON is easier to inspect",
        "staging=parquet");
  }

  // Ranks with the same needs and the same dependents are one rank split in two.
  void FindMerges() {
    for (size_t i = 0; i < plan_.ranks.size(); ++i) {
      for (size_t j = i + 1; j < plan_.ranks.size(); ++j) {
        const Rank& a = plan_.ranks[i];
        const Rank& b = plan_.ranks[j];
        if (a.external || b.external ||
            std::set(a.needs.begin(), a.needs.end()) != std::set(b.needs.begin(), b.needs.end()))
          continue;
        const std::string numbers = std::to_string(a.number) + "," + std::to_string(b.number);
        const auto saves = Try("merge=" + numbers);
        if (!saves || saves->max < 0) continue;
        advice_.push_back({AdviceKind::kMerge,
                           "ranks " + std::to_string(a.number) + " and " +
                               std::to_string(b.number) + " have the same needs and could be one",
                           "merge=" + numbers, *saves});
      }
    }
  }

  const Outlook& outlook_;
  const Plan& plan_;
  std::vector<Advice> advice_;
};

}  // namespace

std::vector<Advice> AdviseOn(const Outlook& outlook) { return Adviser(outlook).Advise(); }

}  // namespace muster::plan
