// How fast documents pass through `muster migrate`, each time beside its peer or raw limit, and how
// much memory that takes. docs/internals/benchmarks.md says how to read what it prints.

#include "pipeline_bench.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>

namespace muster::bench {

namespace {

int Main(int argc, char** argv) {
  PipelineBenchOptions options;
  std::string folder;
  std::vector<std::string> only = {"jsonl", "postgresql", "opensearch"};
  CLI::App app{"muster migrate beside its peers and raw limits. Exit code 1: a bar does not hold.",
               "pipeline_bench"};
  app.add_option("--folder", folder, "where files are written; twice the largest size");
  app.add_option("--only", only, "jsonl, postgresql, opensearch (all)")->check(CLI::IsMember(only));
  app.add_option("--rounds", options.rounds, "rounds of each side; medians count")
      ->capture_default_str();
  app.add_option("--mb", options.megabytes, "JSONL that is copied in a round")
      ->capture_default_str();
  app.add_option("--memory-mb", options.memory_megabytes,
                 "how much is migrated to see the memory (1000 10000)");
  app.add_option("--rows", options.rows, "rows that go into PostgreSQL in a round")
      ->capture_default_str();
  app.add_option("--bulk-mb", options.bulk_megabytes, "JSONL that goes into OpenSearch in a round")
      ->capture_default_str();
  app.add_flag("--smoke", options.smoke, "one tiny round of everything; no bar counts");
  CLI11_PARSE(app, argc, argv);
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
