#pragma once

#include <map>
#include <string>

#include "core/json.h"
#include "muster/result.h"
#include "serve/dead_letter_index.h"
#include "serve/failures.h"
#include "serve/jobs.h"
#include "serve/migration_view.h"
#include "serve/replica_view.h"
#include "serve/run_tally.h"
#include "serve/site.h"

namespace muster::serve {

// Views across all stores. Thread-safe.
class Overview {
 public:
  Overview(const Site& site, MigrationViews& migrations, ReplicaViews& replicas,
           DeadLetterIndex& letters, const Jobs& jobs)
      : site_(site), migrations_(migrations), replicas_(replicas), letters_(letters), jobs_(jobs) {
    for (const SiteStore& store : site.stores()) tallies_[store.number];
  }

  // Everything in brief. A store that does not answer is reported as unreachable; the others are
  // shown.
  Json All();
  Json Stores();
  Json Failures();
  Result<Json> DeadLetterFiles();

 private:
  // Also fills in the summaries of runs, which come from the same items as their failures.
  FailureGroups Collect(Json& work);
  Status CollectMigrations(const SiteStore& store, FailureGroups& groups);
  Status CollectReplicas(const SiteStore& store, FailureGroups& groups);
  void CollectLetters(const Json& work, FailureGroups& groups);

  const Site& site_;
  MigrationViews& migrations_;
  ReplicaViews& replicas_;
  DeadLetterIndex& letters_;
  const Jobs& jobs_;
  std::map<std::string, RunTallies> tallies_;  // by the store's number
};

// The name of the job that redrives a dead-letter file.
std::string RedriveJob(const std::string& file);

// The run that a dead-letter file belongs to, and the store with that run.
struct LetterRun {
  const SiteStore* store = nullptr;
  std::string sink = {};
  bool removing = false;
};
LetterRun FindLetterRun(const Site& site, const LetterFile& file);

}  // namespace muster::serve
