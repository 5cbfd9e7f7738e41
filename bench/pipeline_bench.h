#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bars.h"

namespace muster::bench {

struct PipelineBenchOptions {
  int rounds = 5;
  uint64_t megabytes = 500;                                  // of JSONL that is copied in a round
  std::vector<uint64_t> memory_megabytes = {1'000, 10'000};  // migrated to see the memory
  int64_t rows = 2'000'000;                                  // of CSV that is loaded in a round
  uint64_t bulk_megabytes = 200;                             // of JSONL that is indexed in a round
  bool smoke = false;
};

// JSONL to JSONL with a rename, beside a loop that parses the same lines with simdjson and copies
// them; and the memory that `muster migrate` takes for it.
void BenchJsonl(const PipelineBenchOptions& options, Bars& bars);

// CSV into PostgreSQL, beside psql's \copy of the same file and pgloader.
void BenchPostgres(const PipelineBenchOptions& options, Bars& bars);

// JSONL into OpenSearch, beside a bare loop over _bulk with the same batches and elasticdump.
void BenchOpenSearch(const PipelineBenchOptions& options, Bars& bars);

// One index into another, beside _reindex from remote and elasticdump.
void BenchClusters(const PipelineBenchOptions& options, Bars& bars);

}  // namespace muster::bench
