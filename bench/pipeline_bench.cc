// How fast documents pass through `muster migrate`, each time beside its peer or raw limit, and how
// much memory that takes. docs/internals/benchmarks.md says how to read what it prints.

#include "pipeline_bench.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "arguments.h"

namespace muster::bench {

namespace {

int Main(int argc, char** argv) {
  PipelineBenchOptions options;
  std::string folder;
  std::vector<std::string> only = {"jsonl", "postgresql", "opensearch", "clusters"};
  Arguments arguments(
      "muster migrate beside its peers and raw limits. Exit code 1: a bar does not hold.");
  arguments.AddText("--folder", folder, "where files are written; twice the largest size");
  arguments.AddChoices("--only", only, "what is measured");
  arguments.AddNumber("--rounds", options.rounds, "rounds of each side; medians count", 1);
  arguments.AddNumber("--mb", options.megabytes, "JSONL that is copied in a round");
  arguments.AddNumbers("--memory-mb", options.memory_megabytes,
                       "how much is migrated to see the memory");
  arguments.AddNumber("--rows", options.rows, "rows that go into PostgreSQL in a round");
  arguments.AddNumber("--bulk-mb", options.bulk_megabytes,
                      "JSONL that goes into OpenSearch in a round");
  arguments.AddFlag("--smoke", options.smoke, "one tiny round of everything; no bar counts");
  arguments.Parse(argc, argv);
  if (options.smoke) {
    options = {.rounds = 1,
               .megabytes = 2,
               .memory_megabytes = {2},
               .rows = 5'000,
               .bulk_megabytes = 1,
               .smoke = true};
  }
  if (!folder.empty()) setenv("TMPDIR", folder.c_str(), 1);
  const auto wanted = [&](const char* name) {
    return std::find(only.begin(), only.end(), name) != only.end();
  };
  Bars bars;
  if (wanted("jsonl")) BenchJsonl(options, bars);
  if (wanted("postgresql")) BenchPostgres(options, bars);
  if (wanted("opensearch")) BenchOpenSearch(options, bars);
  if (wanted("clusters")) BenchClusters(options, bars);
  return bars.hold() || options.smoke ? 0 : 1;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  try {
    return muster::bench::Main(argc, argv);
  } catch (const std::exception& failure) {
    std::cerr << "pipeline_bench: " << failure.what() << "\n";
    return 1;
  }
}
