#pragma once

#include <map>
#include <string>

#include "core/json.h"
#include "core/mutex.h"
#include "muster/result.h"
#include "serve/site.h"

namespace muster::serve {

// Runs of plans, as docs/api/openapi.yaml describes them. Thread-safe.
class MigrationViews {
 public:
  // The runs of a store by "STORE/ID", up to 1,000; the answer is whether there are more.
  Result<bool> AddSummaries(const SiteStore& store, Json& into);

  static Result<Json> One(const SiteStore& store, const std::string& id);
  static Result<Json> Task(const SiteStore& store, const std::string& id, plan::Phase phase,
                           const std::string& task);

 private:
  Mutex mutex_;
  std::map<std::string, Json> ended_ GUARDED_BY(mutex_);  // summaries that will not change any more
};

// Why a run does not go on; empty: it does, or is completed.
std::string WhyRun(const plan::RunState& run);

}  // namespace muster::serve
