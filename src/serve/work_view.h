#pragma once

#include <string>

#include "core/json.h"
#include "core/metrics.h"
#include "muster/result.h"
#include "serve/failures.h"
#include "serve/run_tally.h"
#include "serve/series.h"
#include "serve/site.h"

namespace muster::serve {

// Migrations shared by workers, as docs/api/openapi.yaml describes them, read as the commands under
// `muster work` read them.

// The runs of a store by "STORE/RUN", and their items that have failed.
Status AddWorkSummaries(const SiteStore& store, RunTallies& tallies, Json& into,
                        FailureGroups& failures);

// `metrics` are this process': if it is a worker of the run, they have the latency of its writes.
Result<Json> WorkDetail(const SiteStore& store, const std::string& run, SeriesBook& series,
                        const Metrics& metrics);
Result<Json> WorkItems(const SiteStore& store, const std::string& run);
Result<Json> WorkItemDetail(const SiteStore& store, const std::string& run,
                            const std::string& item);

}  // namespace muster::serve
