#include "cli/snapshot_indices.h"

#include <algorithm>
#include <utility>

#include "core/json.h"
#include "core/json_fields.h"

namespace muster::cli {
namespace {

Error OtherIndices(const std::string& snapshot, const std::string& why) {
  return Error{Code::kConflict, "snapshot '" + snapshot + "' already exists, " + why,
               "choose another name for the snapshot, or delete that one"};
}

// Clusters decide which system indices belong to a snapshot of everything.
bool IsNeeded(const std::string& index, const std::vector<std::string>& patterns) {
  return !patterns.empty() || !index.starts_with('.');
}

}  // namespace

Result<SnapshotIndices> SnapshotIndices::Of(net::OpenSearchClient& client,
                                            const std::vector<std::string>& patterns,
                                            std::stop_token stop) {
  std::string path;
  for (const std::string& pattern : patterns) {
    path += (path.empty() ? "/" : ",") + net::OpenSearchPath(pattern);
  }
  if (path.empty()) path = "/*";
  // Matches patterns as clusters do for snapshots.
  path += "/_settings/index.uuid,index.verified_before_close?expand_wildcards=all";
  MUSTER_ASSIGN(const Json found, client.SendForJson({.path = path}, std::move(stop)));
  SnapshotIndices indices;
  for (const auto& [name, about] : found.items()) {
    const Json& settings = MemberIn(MemberIn(about, "settings"), "index");
    const bool is_closed = TextIn(settings, "verified_before_close") == "true";
    (is_closed ? indices.closed : indices.open).insert(name);
  }
  return indices;
}

std::vector<NotInSnapshot> MissingIn(const std::vector<std::string>& has,
                                     const SnapshotIndices& wanted,
                                     const std::vector<std::string>& patterns) {
  const std::set<std::string> there(has.begin(), has.end());
  std::vector<NotInSnapshot> missing;
  const auto add = [&](const std::set<std::string>& names, const char* reason) {
    for (const std::string& name : names) {
      if (!there.contains(name)) missing.push_back({name, reason, IsNeeded(name, patterns)});
    }
  };
  add(wanted.closed, "closed: open it first");
  add(wanted.open, "left out by the cluster");
  return missing;
}

Status CheckSameIndices(net::OpenSearchClient& client, const std::string& snapshot,
                        const std::vector<std::string>& has, const SnapshotIndices& wanted,
                        const std::vector<std::string>& patterns, std::stop_token stop) {
  for (const NotInSnapshot& one : MissingIn(has, wanted, patterns)) {
    if (one.is_needed) return OtherIndices(snapshot, "without index " + one.index);
  }
  const std::set<std::string> there(has.begin(), has.end());
  const auto is_extra = [&](const std::string& name) { return !wanted.Contains(name); };
  if (patterns.empty() || std::none_of(there.begin(), there.end(), is_extra)) return {};
  // An index deleted since may have been selected then.
  MUSTER_ASSIGN(const SnapshotIndices all, SnapshotIndices::Of(client, {}, std::move(stop)));
  for (const std::string& name : there) {
    if (!is_extra(name) || !all.Contains(name)) continue;
    return OtherIndices(snapshot, "which also has index " + name);
  }
  return {};
}

}  // namespace muster::cli
