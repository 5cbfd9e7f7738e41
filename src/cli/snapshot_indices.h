#pragma once

#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "muster/result.h"
#include "net/opensearch.h"

namespace muster::cli {

// The names of the indices that a snapshot should have, including those behind aliases and data
// streams.
struct SnapshotIndices {
  std::set<std::string> open;
  std::set<std::string> closed;

  bool empty() const { return open.empty() && closed.empty(); }
  bool Contains(const std::string& index) const {
    return open.contains(index) || closed.contains(index);
  }

  // The cluster's current indices that `patterns` select; without patterns all, including hidden
  // ones.
  static Result<SnapshotIndices> Of(net::OpenSearchClient& client,
                                    const std::vector<std::string>& patterns, std::stop_token stop);
};

// An index that is not in a snapshot, and why.
struct NotInSnapshot {
  std::string index;
  std::string reason;
  bool is_needed = true;  // false for system indices: clusters decide which of those belong to it
};

// The indices in `wanted`, selected by `patterns`, that a finished snapshot with the indices `has`
// lacks.
std::vector<NotInSnapshot> MissingIn(const std::vector<std::string>& has,
                                     const SnapshotIndices& wanted,
                                     const std::vector<std::string>& patterns);

// kConflict: a snapshot of that name exists with other indices than `wanted`, which `patterns`
// select.
Status CheckSameIndices(net::OpenSearchClient& client, const std::string& snapshot,
                        const std::vector<std::string>& has, const SnapshotIndices& wanted,
                        const std::vector<std::string>& patterns, std::stop_token stop);

}  // namespace muster::cli
