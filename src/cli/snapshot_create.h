#pragma once

#include <string>
#include <vector>

#include "cli/context.h"
#include "muster/result.h"

namespace muster::cli {

struct SnapshotCreateOptions {
  std::string cluster;     // opensearch+http(s)://…
  std::string location;    // a folder of the cluster's machines, or s3://BUCKET/PREFIX
  std::string name;        // of the snapshot
  std::string repository;  // the cluster's name for the location; empty: see FindRepository
  std::vector<std::string> indices;  // names or patterns; empty: all
};

// Has a cluster take a snapshot and follows it to its end; an existing one is only followed. The
// cluster does the work, so the snapshot continues if this ends early. Returns the exit code.
Result<int> CreateSnapshot(const SnapshotCreateOptions& options, Context& context);

}  // namespace muster::cli
