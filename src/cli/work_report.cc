#include "cli/work_report.h"

#include <cmath>

#include "cli/failure_report.h"
#include "core/json_fields.h"
#include "core/timestamp.h"

namespace muster::cli {
namespace {

// A run that is stopped does not come nearer to its end.
std::optional<milliseconds> LeftOf(const work::RunInfo& run, const work::RunTotals& totals) {
  if (!run.stopped.empty()) return std::nullopt;
  return work::TimeLeft(totals, totals.docs_per_second);
}

}  // namespace

Json ItemJson(const work::ItemInfo& item) {
  Json json{{"item", item.name},
            {"state", work::ItemStateName(item.state)},
            {"holder", item.holder},
            {"why", work::WhyItem(item)},
            {"epoch", item.epoch},
            {"attempt", item.attempt},
            {"read", item.counts.read},
            {"added", item.counts.added},
            {"written", item.counts.written},
            {"skipped", item.counts.skipped},
            {"failed", item.counts.failed},
            {"docs_per_second", std::round(item.docs_per_second)},
            {"successors", item.successors}};
  if (item.fraction) json["fraction"] = *item.fraction;
  if (item.due_in) json["due_in_ms"] = item.due_in->count();
  if (const auto left = work::TimeLeft(item)) json["eta_s"] = left->count() / 1000;
  if (!item.error.empty()) json["error"] = item.error;
  if (!item.reasons.empty()) json["reasons"] = ReasonsJson(item.reasons);
  return json;
}

Json RunJson(const work::RunInfo& run, const work::RunTotals& totals) {
  Json json{{"run", run.name},
            {"state", work::RunStateName(work::RunStateOf(run, totals))},
            {"source", run.source},
            {"sink", run.sink},
            {"incarnation", run.incarnation},
            {"items", totals.items},
            {"done", totals.done},
            {"held", totals.held},
            {"waiting", totals.waiting},
            {"quarantined", totals.quarantined},
            {"read", totals.counts.read},
            {"added", totals.counts.added},
            {"written", totals.counts.written},
            {"skipped", totals.counts.skipped},
            {"failed", totals.counts.failed},
            {"max_failures", run.max_failures.ToString()},
            {"docs_per_second", std::round(totals.docs_per_second)}};
  if (!run.unreadable.empty()) json["error"] = run.unreadable;
  if (const std::string why = work::WhyRun(run, totals); !why.empty()) json["why"] = why;
  if (!run.stopped.empty()) json["stopped"] = run.stopped;
  if (!totals.reasons.empty()) json["reasons"] = ReasonsJson(totals.reasons);
  if (totals.unreadable > 0) json["unreadable"] = totals.unreadable;
  if (totals.documents) json["documents"] = std::llround(*totals.documents);
  if (const auto left = LeftOf(run, totals)) json["eta_s"] = left->count() / 1000;
  return json;
}

Table RunTable() {
  return Table({{"RUN"},
                {"STATE"},
                {"ITEMS", Table::Align::kRight},
                {"DONE", Table::Align::kRight},
                {"HELD", Table::Align::kRight},
                {"WAIT", Table::Align::kRight},
                {"QUARANTINED", Table::Align::kRight},
                {"DOCUMENTS", Table::Align::kRight},
                {"FAILED", Table::Align::kRight},
                {"DOCS/S", Table::Align::kRight},
                {"ETA", Table::Align::kRight}});
}

void AddRun(const work::RunInfo& run, const work::RunTotals& totals, Table& table) {
  const auto left = LeftOf(run, totals);
  table.AddRow(
      {{run.name},
       {std::string(work::RunStateName(work::RunStateOf(run, totals))),
        run.unreadable.empty() && run.stopped.empty() ? Style::kNone : Style::kBad},
       {std::to_string(totals.items)},
       {std::to_string(totals.done)},
       {std::to_string(totals.held)},
       {std::to_string(totals.waiting)},
       {std::to_string(totals.quarantined), totals.quarantined > 0 ? Style::kBad : Style::kNone},
       {std::to_string(totals.counts.read)},
       {std::to_string(totals.counts.failed),
        totals.counts.failed > 0 ? Style::kWarn : Style::kNone},
       {std::to_string(static_cast<int64_t>(totals.docs_per_second))},
       {left ? FormatSpan(*left) : ""}});
}

void PrintMembers(std::ostream& out, const Json& json,
                  const std::vector<work::FailureReason>& reasons, bool color) {
  Table table({{"FIELD"}, {"VALUE"}});
  for (const auto& [name, value] : json.items()) {
    if (name == "reasons") continue;
    table.AddRow({{name}, {value.is_string() ? value.get<std::string>() : value.dump()}});
  }
  table.Print(out, color);
  PrintReasons(out, reasons, color);
  int64_t listed = 0;
  for (const work::FailureReason& reason : reasons) listed += reason.count;
  const int64_t redriven = listed - NumberIn(json, "failed");
  if (redriven > 0 && listed > 0) {
    out << redriven << (redriven == 1 ? " of these documents has" : " of these documents have")
        << " been redriven since; the reasons are those of all\n";
  }
}

}  // namespace muster::cli
