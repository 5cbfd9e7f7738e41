#include "plan/explain/explain.h"

#include <algorithm>
#include <cmath>

#include "core/enum_names.h"

namespace muster::plan {
namespace {

constexpr EnumNames<AdviceKind, 5> kAdviceKinds{{{
    {AdviceKind::kParallel, "parallel"},
    {AdviceKind::kDpu, "dpu"},
    {AdviceKind::kStaging, "staging"},
    {AdviceKind::kMerge, "merge"},
    {AdviceKind::kWarning, "warning"},
}}};

double Cents(double amount) { return std::round(amount * 100) / 100; }

Json RangeJson(double min, double max) { return {{"min_s", min}, {"max_s", max}}; }

// When ranks of one kind start and end in a schedule, and their longest task.
struct Span {
  double start_s = -1;
  double end_s = 0;
  const TaskTime* longest = nullptr;

  double length_s() const { return start_s < 0 ? 0 : end_s - start_s; }
};

template <class Wanted>
Span SpanOf(const Schedule& schedule, Wanted wanted) {
  Span span;
  for (const TaskTime& task : schedule.tasks) {
    if (!wanted(task.rank)) continue;
    if (span.start_s < 0 || task.start_s < span.start_s) span.start_s = task.start_s;
    span.end_s = std::max(span.end_s, task.end_s);
    if (span.longest == nullptr || task.length_s() > span.longest->length_s()) span.longest = &task;
  }
  return span;
}

Json Bottleneck(const Plan& plan, const Span& slow) {
  if (slow.longest == nullptr) return nullptr;
  return {{"rank", plan.ranks[slow.longest->rank].number},
          {"phase", NameOf(slow.longest->phase)},
          {"task", slow.longest->name},
          {"max_s", slow.longest->length_s()}};
}

Json RankJson(const Outlook& outlook, size_t index) {
  const Rank& rank = outlook.plan.ranks[index];
  const auto mine = [index](size_t other) { return other == index; };
  const Span quick = SpanOf(outlook.quick, mine);
  const Span slow = SpanOf(outlook.slow, mine);
  int64_t dpu = 0;
  for (const Reference& script : rank.transform) dpu += outlook.plan.scripts.at(script.name).dpu;
  return {{"rank", rank.number},
          {"name", rank.name},
          {"group", rank.group},
          {"needs", rank.needs},
          {"objects", rank.extract.size()},
          {"scripts", rank.transform.size()},
          {"dpu", dpu},
          {"starts", RangeJson(std::max(0.0, quick.start_s), std::max(0.0, slow.start_s))},
          {"time", RangeJson(quick.length_s(), slow.length_s())},
          {"bottleneck", Bottleneck(outlook.plan, slow)}};
}

Json GroupsJson(const Outlook& outlook) {
  std::vector<std::string> groups;
  for (const Rank& rank : outlook.plan.ranks) {
    if (!rank.external && std::find(groups.begin(), groups.end(), rank.group) == groups.end())
      groups.push_back(rank.group);
  }
  Json list = Json::array();
  for (const std::string& group : groups) {
    const auto mine = [&](size_t i) {
      return !outlook.plan.ranks[i].external && outlook.plan.ranks[i].group == group;
    };
    Json numbers = Json::array();
    size_t objects = 0;
    size_t scripts = 0;
    for (size_t i = 0; i < outlook.plan.ranks.size(); ++i) {
      if (!mine(i)) continue;
      numbers.push_back(outlook.plan.ranks[i].number);
      objects += outlook.plan.ranks[i].extract.size();
      scripts += outlook.plan.ranks[i].transform.size();
    }
    const Span slow = SpanOf(outlook.slow, mine);
    list.push_back({{"group", group},
                    {"ranks", numbers},
                    {"objects", objects},
                    {"scripts", scripts},
                    {"time", RangeJson(SpanOf(outlook.quick, mine).length_s(), slow.length_s())},
                    {"bottleneck", Bottleneck(outlook.plan, slow)}});
  }
  return list;
}

// [200, 300, [[1400], [1500, 1510]]]: nested lists run in parallel.
Json OrderJson(const Plan& plan, const Step& step) {
  if (step.kind == Step::Kind::kRank) return Json::array({plan.ranks[step.work.rank].number});
  Json list = Json::array();
  for (const Step& part : step.steps) {
    Json inner = OrderJson(plan, part);
    if (step.kind == Step::Kind::kParallel || part.kind == Step::Kind::kParallel) {
      list.push_back(std::move(inner));
    } else {
      for (Json& each : inner) list.push_back(std::move(each));
    }
  }
  return list;
}

Json PeakJson(const Outlook& outlook) {
  const auto most = [](const Peak& a, const Peak& b) { return a.most > b.most ? a : b; };
  const Peak flows = most(outlook.slow.flows, outlook.quick.flows);
  const Peak jobs = most(outlook.slow.jobs, outlook.quick.jobs);
  const Peak dpu = most(outlook.slow.dpu, outlook.quick.dpu);
  const auto rank = [&](const Peak& peak) { return outlook.plan.ranks[peak.rank].number; };
  return {{"flows", flows.most},
          {"jobs", jobs.most},
          {"dpu", dpu.most},
          {"rank", {{"flows", rank(flows)}, {"jobs", rank(jobs)}, {"dpu", rank(dpu)}}}};
}

Json CostJson(const Outlook& outlook) {
  const Cost quick = CostOf(outlook, false);
  const Cost slow = CostOf(outlook, true);
  const auto range = [](double min, double max) {
    return Json{{"min", Cents(min)}, {"max", Cents(max)}};
  };
  return {{"currency", "USD"},
          {"appflow", range(quick.appflow, slow.appflow)},
          {"glue", range(quick.glue, slow.glue)},
          {"step_functions", range(quick.step_functions, slow.step_functions)},
          {"total", range(quick.total(), slow.total())}};
}

// The longest delay that retries can add to one task.
double WorstDelay(const RetryRule& rule) {
  double delay = 0;
  for (int64_t i = 0; i < rule.attempts; ++i)
    delay += static_cast<double>(rule.interval_s) * std::pow(rule.backoff, static_cast<double>(i));
  return delay;
}

Json RetriesJson(const Plan& plan) {
  double extract = 0;
  double transform = 0;
  for (const auto& [name, task] : plan.objects)
    extract = std::max(extract, WorstDelay(task.rules.retry));
  for (const auto& [name, task] : plan.scripts)
    transform = std::max(transform, WorstDelay(task.rules.retry));
  return {{"extract_s", extract}, {"transform_s", transform}};
}

// What AWS alone counts and charges for.
void LeaveOutAws(Json& json) {
  for (const char* field : {"dpu_total", "cost", "transitions", "events", "executions"})
    json.erase(field);
  json["peak"].erase("dpu");
  json["peak"]["rank"].erase("dpu");
  for (Json& rank : json["by_rank"]) rank.erase("dpu");
}

}  // namespace

int64_t Outlook::Rows() const {
  int64_t rows = 0;
  for (const auto& [name, object] : plan.objects) rows += object.rows;
  return rows;
}

int64_t Outlook::DpuTotal() const {
  int64_t dpu = 0;
  for (const auto& [name, script] : plan.scripts) dpu += script.dpu;
  return dpu;
}

StateCount Outlook::Transitions(bool slowest) const {
  CountRange all = compiled.main.count;
  for (const RankMachine& rank : compiled.ranks) all.Add(rank.machine.count);
  return slowest ? all.slow : all.quick;
}

int64_t Outlook::MostEvents() const {
  int64_t most = compiled.main.count.slow.events;
  for (const RankMachine& rank : compiled.ranks)
    most = std::max(most, rank.machine.count.slow.events);
  return most;
}

Outlook MakeOutlook(Plan plan, Profile profile) {
  Outlook outlook{.plan = std::move(plan), .profile = std::move(profile)};
  outlook.arrangement = Arrange(outlook.plan, Order(outlook.plan));
  const Step& root = outlook.arrangement.root;
  // After the arrangement, which does not depend on the profile.
  outlook.plan.rates = RatesOf(outlook.plan, outlook.profile.kind);
  outlook.quick = MakeSchedule(outlook.plan, root, outlook.profile.format, false);
  outlook.slow = MakeSchedule(outlook.plan, root, outlook.profile.format, true);
  outlook.compiled = Compile(outlook.plan, outlook.profile, outlook.arrangement);
  return outlook;
}

Cost CostOf(const Outlook& outlook, bool slowest) {
  const Prices& prices = outlook.plan.prices;
  const Schedule& schedule = slowest ? outlook.slow : outlook.quick;
  return {static_cast<double>(outlook.Rows()) * prices.per_row,
          schedule.dpu_seconds / 3'600 * prices.per_dpu_hour,
          static_cast<double>(outlook.Transitions(slowest).transitions) / 1'000 *
              prices.per_thousand_transitions};
}

Json ToJson(const Outlook& outlook) {
  const Plan& plan = outlook.plan;
  Json ranks = Json::array();
  for (size_t i = 0; i < plan.ranks.size(); ++i) {
    if (!plan.ranks[i].external) ranks.push_back(RankJson(outlook, i));
  }
  Json critical = Json::array();
  for (const size_t place : outlook.slow.critical) {
    const TaskTime& task = outlook.slow.tasks[place];
    critical.push_back({{"rank", plan.ranks[task.rank].number},
                        {"phase", NameOf(task.phase)},
                        {"task", task.name},
                        {"max_s", task.length_s()}});
  }
  Json delayed = Json::array();
  for (const size_t rank : outlook.arrangement.delayed) delayed.push_back(plan.ranks[rank].number);
  Json advice = Json::array();
  for (const Advice& one : AdviseOn(outlook)) {
    Json entry{{"kind", kAdviceKinds.NameOf(one.kind)}, {"text", one.text}};
    if (!one.what_if.empty()) entry["what_if"] = one.what_if;
    if (one.saves.max > 0) entry["saves"] = RangeJson(one.saves.min, one.saves.max);
    advice.push_back(std::move(entry));
  }
  const StateCount quick = outlook.Transitions(false);
  const StateCount slow = outlook.Transitions(true);
  Json json{{"plan", plan.name},
            {"profile", outlook.profile.name},
            {"ranks", ranks.size()},
            {"objects", plan.objects.size()},
            {"scripts", plan.scripts.size()},
            {"rows", outlook.Rows()},
            {"order", outlook.arrangement.root.kind == Step::Kind::kParallel
                          ? Json::array({OrderJson(plan, outlook.arrangement.root)})
                          : OrderJson(plan, outlook.arrangement.root)},
            {"peak", PeakJson(outlook)},
            {"dpu_total", outlook.DpuTotal()},
            {"time", RangeJson(outlook.quick.total_s, outlook.slow.total_s)},
            {"cost", CostJson(outlook)},
            {"critical_path", std::move(critical)},
            {"by_rank", std::move(ranks)},
            {"by_group", GroupsJson(outlook)},
            {"delayed", std::move(delayed)},
            {"transitions", {{"min", quick.transitions}, {"max", slow.transitions}}},
            {"events",
             {{"min", quick.events}, {"max", slow.events}, {"most_in_one", outlook.MostEvents()}}},
            {"executions", outlook.compiled.ranks.size() + 1},
            {"retries_add_at_most", RetriesJson(plan)},
            {"advice", std::move(advice)}};
  if (!outlook.IsAws()) LeaveOutAws(json);
  return json;
}

}  // namespace muster::plan
