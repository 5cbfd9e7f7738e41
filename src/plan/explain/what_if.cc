#include "plan/explain/what_if.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "plan/model/fields.h"
#include "plan/model/order.h"

namespace muster::plan {
namespace {

Error Bad(const std::string& change, const std::string& why, const std::string& hint = "") {
  return {Code::kInvalid, "what if " + change + ": " + why, hint};
}

Result<int64_t> NumberOf(const std::string& change, std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 1)
    return Bad(change, "'" + std::string(text) + "' is not a number above 0");
  return number;
}

void Scale(std::optional<SecondsRange>& time, double factor) {
  if (time) time = SecondsRange{time->min * factor, time->max * factor};
}

Status ChangeDpu(Plan& plan, const std::string& change, const std::string& name, int64_t dpu) {
  const auto found = plan.scripts.find(name);
  if (found == plan.scripts.end())
    return Bad(change, "no script '" + name + "'", SuggestName(name, NamesIn(plan.scripts)));
  if (plan.pools.dpu && dpu > *plan.pools.dpu)
    return Bad(change, "the pool has " + std::to_string(*plan.pools.dpu) + " DPU");
  TransformTask& task = found->second;
  const double ratio = static_cast<double>(task.dpu) / static_cast<double>(dpu);
  Scale(task.time, std::pow(ratio, plan.rates.dpu_exponent));
  task.dpu = dpu;
  return {};
}

Status ChangeRows(Plan& plan, const std::string& change, const std::string& name, int64_t rows) {
  const auto found = plan.objects.find(name);
  if (found == plan.objects.end())
    return Bad(change, "no object '" + name + "'", SuggestName(name, NamesIn(plan.objects)));
  ExtractTask& object = found->second;
  const auto rows_of = [&plan](const std::vector<std::string>& names) {
    double sum = 0;
    for (const std::string& one : names) sum += static_cast<double>(plan.objects.at(one).rows);
    return sum;
  };
  std::map<std::string, double> before;
  for (const Rank& rank : plan.ranks) {
    for (const Reference& script : rank.transform)
      before[script.name] = rows_of(plan.ReadBy(plan.scripts.at(script.name), rank));
  }
  if (object.rows > 0)
    Scale(object.time, static_cast<double>(rows) / static_cast<double>(object.rows));
  object.rows = rows;
  for (const Rank& rank : plan.ranks) {
    for (const Reference& script : rank.transform) {
      TransformTask& task = plan.scripts.at(script.name);
      const double old = before[script.name];
      if (old > 0) Scale(task.time, rows_of(plan.ReadBy(task, rank)) / old);
    }
  }
  return {};
}

struct TwoRanks {
  size_t first;
  size_t second;
};

Result<TwoRanks> RanksOf(const Plan& plan, const std::string& change, std::string_view value) {
  const size_t comma = value.find(',');
  if (comma == value.npos)
    return Bad(change, "two ranks are needed", change.substr(0, change.find('=')) + "=1400,1500");
  MUSTER_ASSIGN(int64_t first, NumberOf(change, value.substr(0, comma)));
  MUSTER_ASSIGN(int64_t second, NumberOf(change, value.substr(comma + 1)));
  if (first > second) std::swap(first, second);
  if (first == second) return Bad(change, "both are rank " + std::to_string(first));
  const auto a = plan.FindRank(first);
  const auto b = plan.FindRank(second);
  if (!a || !b) return Bad(change, "no rank " + std::to_string(a ? second : first));
  return TwoRanks{*a, *b};
}

Status CheckIndependent(const Plan& plan, const std::string& change, const Rank& first,
                        const Rank& second) {
  if (CouldRunBeside(plan, first, second)) return {};
  return Bad(change, "rank " + std::to_string(second.number) + " refers to what rank " +
                         std::to_string(first.number) + " loads or extracts");
}

Error NeedsThrough(const std::string& change, const Rank& first, const Rank& second) {
  return Bad(change, "rank " + std::to_string(second.number) + " needs another that needs rank " +
                         std::to_string(first.number));
}

void AddNeed(Rank& rank, int64_t need) {
  if (std::find(rank.needs.begin(), rank.needs.end(), need) == rank.needs.end())
    rank.needs.push_back(need);
}

Status RunBeside(Plan& plan, const std::string& change, std::string_view value) {
  MUSTER_ASSIGN(const TwoRanks ranks, RanksOf(plan, change, value));
  const Rank& first = plan.ranks[ranks.first];
  Rank& later = plan.ranks[ranks.second];
  std::erase(later.needs, first.number);
  if (Order(plan).IsBefore(ranks.first, ranks.second)) return NeedsThrough(change, first, later);
  MUSTER_TRY(CheckIndependent(plan, change, first, later));
  for (const int64_t need : first.needs) AddNeed(later, need);
  // A rank that waited for both through the second still does.
  for (Rank& rank : plan.ranks) {
    const bool waits =
        std::find(rank.needs.begin(), rank.needs.end(), later.number) != rank.needs.end();
    if (waits) AddNeed(rank, first.number);
  }
  return {};
}

// The first rank takes over the tasks of the second.
Status Merge(Plan& plan, const std::string& change, std::string_view value) {
  MUSTER_ASSIGN(const TwoRanks ranks, RanksOf(plan, change, value));
  Rank& kept = plan.ranks[ranks.first];
  Rank& gone = plan.ranks[ranks.second];
  if (kept.external || gone.external)
    return Bad(change, "a rank that is done elsewhere cannot be merged");
  std::erase(gone.needs, kept.number);
  const Order order(plan);
  if (order.IsBefore(ranks.first, ranks.second)) return NeedsThrough(change, kept, gone);
  MUSTER_TRY(CheckIndependent(plan, change, kept, gone));
  for (const int64_t need : gone.needs) {
    const auto needed = plan.FindRank(need);
    if (needed && !order.IsBefore(*needed, ranks.first))
      return Bad(change, "rank " + std::to_string(kept.number) + " would wait for rank " +
                             std::to_string(need) + ", which it does not need");
    AddNeed(kept, need);
  }
  std::move(gone.extract.begin(), gone.extract.end(), std::back_inserter(kept.extract));
  std::move(gone.transform.begin(), gone.transform.end(), std::back_inserter(kept.transform));
  const int64_t number = gone.number;
  const int64_t into = kept.number;
  plan.ranks.erase(plan.ranks.begin() + static_cast<std::ptrdiff_t>(ranks.second));
  for (Rank& rank : plan.ranks) {
    if (std::erase(rank.needs, number) > 0) AddNeed(rank, into);
  }
  return {};
}

}  // namespace

bool CouldRunBeside(const Plan& plan, const Rank& first, const Rank& second) {
  for (const Reference& reference : second.transform) {
    const TransformTask& script = plan.scripts.at(reference.name);
    if (!script.refers) return false;
    for (const std::string& object : plan.ReadBy(script, second)) {
      for (const Reference& extracted : first.extract) {
        if (extracted.name == object) return false;
      }
    }
    for (const Reference& table : *script.refers) {
      for (const Reference& loading : first.transform) {
        if (plan.scripts.at(loading.name).Target() == table.name) return false;
      }
    }
  }
  return true;
}

Status ApplyWhatIf(Plan& plan, StagingFormat& format, const std::string& change) {
  const size_t equals = change.find('=');
  const std::string key = change.substr(0, equals);
  const std::string value = equals == change.npos ? "" : change.substr(equals + 1);
  if (key == "parallel") return RunBeside(plan, change, value);
  if (key == "merge") return Merge(plan, change, value);
  if (key == "staging") {
    if (value != "parquet" && value != "json") return Bad(change, "staging is json or parquet");
    format = value == "parquet" ? StagingFormat::kParquet : StagingFormat::kJson;
    return {};
  }
  const size_t dot = key.find('.');
  const std::string kind = key.substr(0, dot);
  const std::string name = dot == key.npos ? "" : key.substr(dot + 1);
  if (kind != "dpu" && kind != "rows" && kind != "pool")
    return Bad(change, "unknown change '" + kind + "'",
               "dpu.SCRIPT=N, rows.OBJECT=N, parallel=RANK,RANK, merge=RANK,RANK, staging=parquet, "
               "pool.flows=N");
  MUSTER_ASSIGN(const int64_t number, NumberOf(change, value));
  if (kind == "dpu") return ChangeDpu(plan, change, name, number);
  if (kind == "rows") return ChangeRows(plan, change, name, number);
  if (name == "flows") {
    plan.pools.flows = number;
  } else if (name == "jobs") {
    plan.pools.jobs = number;
  } else if (name == "dpu") {
    for (const auto& [script, task] : plan.scripts) {
      if (task.dpu > number)
        return Bad(change, script + " takes " + std::to_string(task.dpu) + " DPU");
    }
    plan.pools.dpu = number;
  } else {
    return Bad(change, "no pool '" + name + "'", SuggestName(name, {"flows", "jobs", "dpu"}));
  }
  return {};
}

}  // namespace muster::plan
