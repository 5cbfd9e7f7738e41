#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "core/metrics.h"
#include "muster/result.h"
#include "serve/dead_letter_index.h"
#include "serve/jobs.h"
#include "serve/migration_view.h"
#include "serve/overview.h"
#include "serve/replica_view.h"
#include "serve/series.h"
#include "serve/site.h"

namespace muster::serve {

using Names = std::vector<std::string>;  // the values in a path

// The resources of docs/api/openapi.yaml, each as its route names it. Nothing here writes to a
// store. kNotFound: no such resource. Thread-safe.
class Views {
 public:
  // `metrics` are this process'. All must outlive it.
  Views(const Site& site, DeadLetterIndex& letters, const Jobs& jobs, const Metrics& metrics)
      : site_(site), metrics_(metrics), overview_(site, migrations_, replicas_, letters, jobs) {}

  Result<Json> ReadOverview(const Names& names);
  Result<Json> ReadFailures(const Names& names);
  Result<Json> ReadDeadLetterFiles(const Names& names);
  Result<Json> ReadMigration(const Names& names);
  Result<Json> ReadTask(const Names& names);
  Result<Json> ReadWork(const Names& names);
  Result<Json> ReadItems(const Names& names);
  Result<Json> ReadItem(const Names& names);
  Result<Json> ReadReplicaSet(const Names& names);

  Json Stores() { return overview_.Stores(); }

 private:
  const Site& site_;
  const Metrics& metrics_;
  SeriesBook series_;
  MigrationViews migrations_;
  ReplicaViews replicas_;
  Overview overview_;
};

}  // namespace muster::serve
