#include "cli/plan_report.h"

#include <cmath>
#include <cstdio>

#include "cli/table.h"

namespace muster::cli {
namespace {

std::string RangeText(const Json& range) {
  const double min = range["min_s"].get<double>();
  const double max = range["max_s"].get<double>();
  const std::string text = ForPeople(min);
  return min == max ? text : text + " to " + ForPeople(max);
}

std::string Dollars(double amount) {
  char text[64];
  std::snprintf(text, sizeof text, "$%.2f", amount);
  return text;
}

std::string DollarRange(const Json& range) {
  const double min = range["min"].get<double>();
  const double max = range["max"].get<double>();
  return min == max ? Dollars(min) : Dollars(min) + " to " + Dollars(max);
}

std::string Number(const Json& json) { return std::to_string(json.get<int64_t>()); }

std::string BottleneckText(const Json& bottleneck) {
  if (bottleneck.is_null()) return "";
  return bottleneck["phase"].get<std::string>() + " " + bottleneck["task"].get<std::string>();
}

// Where times and rows come from, if not from the plan alone.
std::string PastText(const Json& outlook) {
  if (!outlook.contains("past")) return "";
  const Json& past = outlook["past"];
  std::string text = "Past runs  give the time of " + Number(past["times"]) +
                     " tasks and the rows of " + Number(past["rows"]) + " objects:";
  for (const Json& run : past["runs"]) text += " " + run.get<std::string>();
  return text + "\n";
}

std::string PeakText(const Json& peak, const char* thing, const std::string& word) {
  return Number(peak[thing]) + " " + word + " (rank " + Number(peak["rank"][thing]) + ")";
}

// Local runs have neither DPUs nor a price.
std::string HereText(const Json& outlook) {
  const Json& peak = outlook["peak"];
  return "Peak       " + PeakText(peak, "flows", "extractions") + ", " +
         PeakText(peak, "jobs", "transforms") + " at a time\n";
}

std::string OnAwsText(const Json& outlook) {
  const Json& peak = outlook["peak"];
  const Json& cost = outlook["cost"];
  return "Peak       " + PeakText(peak, "flows", "flows") + ", " + PeakText(peak, "jobs", "jobs") +
         ", " + PeakText(peak, "dpu", "DPU") + "; " + Number(outlook["dpu_total"]) +
         " DPU if all ran at once\nCost       AppFlow " + DollarRange(cost["appflow"]) + ", Glue " +
         DollarRange(cost["glue"]) + ", Step Functions " + DollarRange(cost["step_functions"]) +
         ", total " + DollarRange(cost["total"]) + "\nOn AWS     " +
         Number(outlook["transitions"]["max"]) + " transitions and " +
         Number(outlook["events"]["max"]) + " events at most, in " + Number(outlook["executions"]) +
         " executions of up to " + Number(outlook["events"]["most_in_one"]) + " events\n";
}

void PrintParts(std::ostream& out, const Json& parts, const char* title, bool color) {
  Table table({{title},
               {"NAME"},
               {"OBJECTS", Table::Align::kRight},
               {"SCRIPTS", Table::Align::kRight},
               {"TIME"},
               {"BOTTLENECK"}});
  for (const Json& part : parts) {
    const bool is_group = part.contains("ranks");
    std::string label;
    std::string name;
    if (is_group) {
      label = Number(part["ranks"].front());
      if (part["ranks"].size() > 1) label += "-" + Number(part["ranks"].back());
      name = part["group"].get<std::string>();
    } else {
      label = Number(part["rank"]);
      name = part["name"].get<std::string>();
    }
    table.AddRow({{label},
                  {name},
                  {Number(part["objects"])},
                  {Number(part["scripts"])},
                  {RangeText(part["time"])},
                  {BottleneckText(part["bottleneck"])}});
  }
  table.Print(out, color);
}

}  // namespace

std::string ForPeople(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 120) return std::to_string(whole) + " s";
  const int64_t minutes = (whole + 30) / 60;
  if (minutes < 60) return std::to_string(minutes) + " min";
  std::string text = std::to_string(minutes / 60) + " h";
  if (minutes % 60 > 0) text += " " + std::to_string(minutes % 60) + " min";
  return text;
}

void PrintOutlook(std::ostream& out, const Json& outlook, bool color) {
  PrintParts(out, outlook["by_rank"], "RANK", color);
  out << '\n';
  PrintParts(out, outlook["by_group"], "RANKS", color);
  out << "\nIn all     " << Number(outlook["ranks"]) << " ranks, " << Number(outlook["objects"])
      << " objects, " << Number(outlook["scripts"]) << " scripts, " << Number(outlook["rows"])
      << " rows\n"
      << "Time       " << RangeText(outlook["time"]) << '\n'
      << (outlook.contains("cost") ? OnAwsText(outlook) : HereText(outlook))
      << "Retries    add at most "
      << ForPeople(outlook["retries_add_at_most"]["extract_s"].get<double>())
      << " to an extraction, "
      << ForPeople(outlook["retries_add_at_most"]["transform_s"].get<double>())
      << " to a transform\n"
      << PastText(outlook) << "Critical  ";
  for (const Json& task : outlook["critical_path"])
    out << ' ' << task["task"].get<std::string>()
        << (&task == &outlook["critical_path"].back() ? "" : ",");
  out << '\n';
  if (outlook["advice"].empty()) return;
  out << "\nAdvice\n";
  for (const Json& advice : outlook["advice"]) {
    out << "  " << advice["text"].get<std::string>();
    if (advice.contains("what_if"))
      out << "\n    --what-if " << advice["what_if"].get<std::string>();
    out << '\n';
  }
}

void PrintChange(std::ostream& out, const Json& before, const Json& after, bool color) {
  Table table({{""}, {"NOW"}, {"THEN"}});
  table.AddRow({{"Time"}, {RangeText(before["time"])}, {RangeText(after["time"])}});
  for (const char* thing : {"flows", "jobs", "dpu"}) {
    if (!before["peak"].contains(thing)) continue;
    table.AddRow({{std::string("Peak ") + thing},
                  {Number(before["peak"][thing])},
                  {Number(after["peak"][thing])}});
  }
  if (before.contains("cost")) {
    table.AddRow({{"DPU in all"}, {Number(before["dpu_total"])}, {Number(after["dpu_total"])}});
    table.AddRow(
        {{"Cost"}, {DollarRange(before["cost"]["total"])}, {DollarRange(after["cost"]["total"])}});
  }
  table.Print(out, color);
  out << PastText(after);
  const double old_time = before["time"]["max_s"].get<double>();
  const double saved = old_time - after["time"]["max_s"].get<double>();
  if (old_time > 0) {
    out << (saved >= 0 ? "It saves " : "It takes ") << ForPeople(std::abs(saved))
        << (saved >= 0 ? "" : " more") << " at most, "
        << std::llround(100 * std::abs(saved) / old_time) << " %\n";
  }
}

}  // namespace muster::cli
