#include "pipeline/table/own_tables.h"

#include <algorithm>
#include <array>

namespace muster::pipeline {
namespace {

constexpr std::string_view kSpace = "muster_";
constexpr std::string_view kProgress = "progress";
constexpr std::array<std::string_view, 12> kOwn{
    // a store
    "records",
    "schema",
    // an event log
    "event_log",
    "event_log_schema",
    "events",
    // read models
    "checkpoints",
    "checkpoints_schema",
    "parked_events",
    "parked_streams",
    // a target: of items, of a plan's statements and of its scripts
    kProgress,
    "task",
    "transform",
};

}  // namespace

bool IsOwnTable(std::string_view name) {
  return name.starts_with(kSpace) &&
         std::find(kOwn.begin(), kOwn.end(), name.substr(kSpace.size())) != kOwn.end();
}

std::vector<LeftOut> OwnTablesOf(const std::vector<std::string>& names) {
  std::vector<LeftOut> own;
  for (const std::string& name : names) {
    if (!IsOwnTable(name) || name.substr(kSpace.size()) == kProgress) continue;
    own.push_back({name, "a table of Muster: name it at the end of the source's URL"});
  }
  return own;
}

}  // namespace muster::pipeline
