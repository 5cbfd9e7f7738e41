#include "report.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "core/json.h"

namespace muster::bench {
namespace {

constexpr double kLeastRatio = 0.85;
constexpr double kLeastRatioOfServices = 0.70;  // they search for what others do in one step
constexpr int kMostOfServices = 10;             // records of a claim, for a bar to count
constexpr double kMostCost = 1.5;
constexpr double kMostStartUpMs = 20;
constexpr double kMostIdleMib = 20;

std::string Fixed(double value, int digits) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(digits) << value;
  return text.str();
}

bool IsService(const Throughput& row) {
  return row.backend == "opensearch" || row.backend == "dynamodb";
}

double LeastRatio(const Throughput& row) {
  return IsService(row) ? kLeastRatioOfServices : kLeastRatio;
}

}  // namespace

std::vector<Bar> BarsOf(const Report& report) {
  std::vector<Bar> bars;
  const Throughput* worst = nullptr;
  for (const Throughput& row : report.throughput) {
    if (IsService(row) && row.batch > kMostOfServices) continue;
    if (worst == nullptr || row.ratio / LeastRatio(row) < worst->ratio / LeastRatio(*worst)) {
      worst = &row;
    }
  }
  if (worst != nullptr) {
    bars.push_back(
        {"claim + complete at least " + Fixed(kLeastRatio, 2) +
             " of the raw limit, on OpenSearch and DynamoDB " + Fixed(kLeastRatioOfServices, 2) +
             " up to batch " + std::to_string(kMostOfServices),
         Fixed(worst->ratio, 2) + " (" + worst->backend + ", " + std::to_string(worst->workers) +
             " workers, batch " + std::to_string(worst->batch) + ")",
         worst->ratio >= LeastRatio(*worst)});
  }
  for (const FinishedCost& row : report.finished_cost) {
    bars.push_back({"a claim on " + row.backend + " beside " + std::to_string(row.finished) +
                        " finished records at most " + Fixed(kMostCost, 1) + " x one beside none",
                    Fixed(row.cost.ratio(), 2) + " x", row.cost.ratio() <= kMostCost});
  }
  if (!report.collisions.empty()) {
    const Collisions& most =
        *std::max_element(report.collisions.begin(), report.collisions.end(),
                          [](const auto& a, const auto& b) { return a.conflicts < b.conflicts; });
    bars.push_back({std::to_string(most.workers) + " workers that claim as many items on " +
                        most.backend + " under " + std::to_string(2 * most.workers) + " conflicts",
                    std::to_string(most.conflicts) + " in the worst of " +
                        std::to_string(report.collisions.size()) + " rounds",
                    most.conflicts < 2 * most.workers});
  }
  if (report.start_up_ms) {
    bars.push_back({"muster --version under " + Fixed(kMostStartUpMs, 0) + " ms",
                    Fixed(*report.start_up_ms, 1) + " ms", *report.start_up_ms < kMostStartUpMs});
  }
  bars.push_back({"an idle worker on SQLite under " + Fixed(kMostIdleMib, 0) + " MiB",
                  Fixed(report.idle_worker_mib, 1) + " MiB",
                  report.idle_worker_mib < kMostIdleMib});
  return bars;
}

void PrintText(const Report& report, std::ostream& out) {
  out << "claim + complete, records a second\n"
         "store       workers  batch      ours       raw  ratio\n";
  for (const Throughput& row : report.throughput) {
    out << std::left << std::setw(12) << row.backend << std::right << std::setw(7) << row.workers
        << std::setw(7) << row.batch << std::setw(10) << Fixed(row.ours, 0) << std::setw(10)
        << Fixed(row.raw, 0) << std::setw(7) << Fixed(row.ratio, 2) << "\n";
  }
  out << "\na claim beside finished records, microseconds\n"
         "store        finished  beside none  beside them  ratio\n";
  for (const FinishedCost& row : report.finished_cost) {
    out << std::left << std::setw(12) << row.backend << std::right << std::setw(9) << row.finished
        << std::setw(13) << Fixed(row.cost.alone.count(), 0) << std::setw(13)
        << Fixed(row.cost.beside.count(), 0) << std::setw(7) << Fixed(row.cost.ratio(), 2) << "\n";
  }
  out << "\n";
  for (const Bar& bar : BarsOf(report)) {
    out << (bar.holds ? "holds   " : "FAILS   ") << bar.promise << ": " << bar.measured << "\n";
  }
}

void PrintJson(const Report& report, std::ostream& out) {
  Json json;
  for (const Throughput& row : report.throughput) {
    json["throughput"].push_back({{"store", row.backend},
                                  {"workers", row.workers},
                                  {"batch", row.batch},
                                  {"ours_per_second", row.ours},
                                  {"raw_per_second", row.raw},
                                  {"ratio", row.ratio}});
  }
  for (const FinishedCost& row : report.finished_cost) {
    json["finished_cost"].push_back({{"store", row.backend},
                                     {"finished", row.finished},
                                     {"alone_us", row.cost.alone.count()},
                                     {"beside_us", row.cost.beside.count()},
                                     {"ratio", row.cost.ratio()}});
  }
  for (const Collisions& row : report.collisions) {
    json["collisions"].push_back(
        {{"store", row.backend}, {"workers", row.workers}, {"conflicts", row.conflicts}});
  }
  json["start_up_ms"] = report.start_up_ms ? Json(*report.start_up_ms) : Json(nullptr);
  json["idle_worker_mib"] = report.idle_worker_mib;
  for (const Bar& bar : BarsOf(report)) {
    json["bars"].push_back(
        {{"promise", bar.promise}, {"measured", bar.measured}, {"holds", bar.holds}});
  }
  out << json.dump(2) << "\n";
}

}  // namespace muster::bench
