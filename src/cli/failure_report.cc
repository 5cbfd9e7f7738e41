#include "cli/failure_report.h"

#include "cli/table.h"

namespace muster::cli {

void PrintReasons(std::ostream& out, const std::vector<work::FailureReason>& reasons, bool color) {
  if (reasons.empty()) return;
  Table table({{"FAILED", Table::Align::kRight}, {"REASON"}, {"FOR EXAMPLE"}, {"ITS MESSAGE"}});
  for (const work::FailureReason& reason : reasons) {
    table.AddRow({{std::to_string(reason.count), Style::kWarn},
                  {reason.reason},
                  {reason.id},
                  {reason.message}});
  }
  out << '\n';
  table.Print(out, color);
}

Json ReasonsJson(const std::vector<work::FailureReason>& reasons) {
  Json list = Json::array();
  for (const work::FailureReason& reason : reasons) {
    list.push_back({{"reason", reason.reason},
                    {"count", reason.count},
                    {"id", reason.id},
                    {"message", reason.message}});
  }
  return list;
}

Json CountsJson(const pipeline::Counts& counts) {
  return {{"read", counts.read},       {"added", counts.added},   {"written", counts.written},
          {"skipped", counts.skipped}, {"failed", counts.failed}, {"bytes", counts.bytes}};
}

}  // namespace muster::cli
