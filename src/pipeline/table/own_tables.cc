#include "pipeline/table/own_tables.h"

#include <algorithm>
#include <array>

namespace muster::pipeline {
namespace {

constexpr char kOwnTable[] = "a table of Muster: name it at the end of the source's URL";
constexpr char kProgressTable[] = "muster_progress";

}  // namespace

bool IsOwnTable(std::string_view name) {
  static constexpr std::array<std::string_view, 12> kNames{
      // a store
      "muster_records",
      "muster_schema",
      // an event log, which a namespace may share with one
      "muster_event_log",
      "muster_event_log_schema",
      "muster_events",
      // read models
      "muster_checkpoints",
      "muster_checkpoints_schema",
      "muster_parked_events",
      "muster_parked_streams",
      // a target: of items, of a plan's scripts and of its statements
      kProgressTable,
      "muster_task",
      "muster_transform",
  };
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

std::vector<LeftOut> OwnTablesOf(const std::vector<std::string>& names) {
  std::vector<LeftOut> own;
  for (const std::string& name : names) {
    if (IsOwnTable(name) && name != kProgressTable) own.push_back({name, kOwnTable});
  }
  return own;
}

}  // namespace muster::pipeline
