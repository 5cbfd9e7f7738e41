#include "pipeline/table/own_tables.h"

#include <algorithm>
#include <array>
#include <optional>

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

// Tables that are made together. With a namespace they have its prefix, or are alone in its schema.
struct Group {
  std::string_view main;
  std::vector<std::string_view> columns;  // of the main table; a later version may have more
  std::vector<std::string_view> others;   // one at least is there
};

const std::vector<Group>& Groups() {
  static const std::vector<Group> kGroups{
      {"records",
       {"kind", "queue", "key", "version", "due", "owner", "epoch", "attempt", "claim_id", "body"},
       {"schema", "schema_version"}},
      {"events",
       {"position", "stream", "version", "slot", "id", "type", "payload", "metadata", "time"},
       {"event_log", "event_log_schema", "event_log_version"}},
      {"checkpoints",
       {"replica_set", "projection", "version", "slot", "generation", "position"},
       {"checkpoints_schema", "checkpoints_version", "parked_events", "parked_streams"}},
  };
  return kGroups;
}

bool HasAll(const std::vector<std::string>& columns, const std::vector<std::string_view>& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](std::string_view column) {
    return std::find(columns.begin(), columns.end(), column) != columns.end();
  });
}

// "team_" of "team_records", empty of "records"; none: another name.
std::optional<std::string> PrefixOf(const std::string& name, std::string_view main) {
  if (!name.ends_with(main)) return std::nullopt;
  const std::string prefix = name.substr(0, name.size() - main.size());
  if (!prefix.empty() && !prefix.ends_with('_')) return std::nullopt;
  return prefix;
}

}  // namespace

bool IsOwnTable(std::string_view name) {
  return name.starts_with(kSpace) &&
         std::find(kOwn.begin(), kOwn.end(), name.substr(kSpace.size())) != kOwn.end();
}

Result<std::set<std::string>> OwnTablesAmong(const std::vector<std::string>& names,
                                             const ColumnsOf& columns_of) {
  const std::set<std::string> all(names.begin(), names.end());
  std::set<std::string> own;
  for (const std::string& name : names) {
    if (IsOwnTable(name)) own.insert(name);
    for (const Group& group : Groups()) {
      const auto prefix = PrefixOf(name, group.main);
      if (!prefix) continue;
      std::vector<std::string> others;
      for (const std::string_view other : group.others) {
        if (all.contains(*prefix + std::string(other))) others.emplace_back(*prefix).append(other);
      }
      if (others.empty()) continue;
      MUSTER_ASSIGN(const std::vector<std::string> columns, columns_of(name));
      if (!HasAll(columns, group.columns)) continue;
      own.insert(name);
      own.insert(others.begin(), others.end());
    }
  }
  return own;
}

std::vector<LeftOut> ReportOwnTables(const std::set<std::string>& own) {
  std::vector<LeftOut> report;
  for (const std::string& name : own) {
    if (IsOwnTable(name) && name.substr(kSpace.size()) == kProgress) continue;
    report.push_back({name, "a table of Muster: name it at the end of the source's URL"});
  }
  return report;
}

}  // namespace muster::pipeline
