// How fast the store is, beside what its database can do at best. docs/internals/benchmarks.md says
// how to read what it prints.

#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "arguments.h"
#include "bench_server.h"
#include "collisions.h"
#include "median.h"
#include "ours.h"
#include "process_cost.h"
#include "raw_dynamodb.h"
#include "raw_opensearch.h"
#include "raw_postgres.h"
#include "raw_sqlite.h"
#include "report.h"
#include "support/shared_server.h"
#include "support/temporary_folder.h"
#include "table.h"

namespace muster::bench {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::vector<std::string> stores = {"sqlite", "postgresql", "opensearch", "dynamodb"};
  std::vector<int> workers = {1, 4, 16};
  std::vector<int> batches = {1, 10, 100};
  int rounds = 15;
  double seconds = 0.25;
  int64_t finished = 10'000'000;
  int samples = 300;
  bool smoke = false;
  bool json = false;
};

// One database system, empty at first; every namespace has a store and its table.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::unique_ptr<store::Store> Open(const std::string& space) = 0;
  virtual std::unique_ptr<Table> TableOf(const std::string& space) = 0;
  virtual std::unique_ptr<Side> RawSide(const std::string& space, Table& table) = 0;

  // How many times longer a round has to be, and how many fewer there are.
  virtual int LongerRounds() const { return 1; }

  // For the cost of a claim beside finished records: how many of those at most, and how many that
  // are due.
  virtual int64_t MostFinished() const { return std::numeric_limits<int64_t>::max(); }
  virtual int Due() const { return 10; }

  // See MeasureCollisions; empty where a database locks what is being claimed.
  virtual std::vector<int> Collisions(int /*workers*/, int /*rounds*/) { return {}; }
};

class SqliteBackend final : public Backend {
 public:
  std::unique_ptr<store::Store> Open(const std::string& space) override {
    return MustOpen("sqlite:" + File(space) + "?namespace=" + space);
  }
  std::unique_ptr<Table> TableOf(const std::string& space) override {
    return SqliteTable(File(space), space);
  }
  std::unique_ptr<Side> RawSide(const std::string& space, Table&) override {
    return RawSqlite(File(space), space);
  }

 private:
  // Each namespace in a file of its own: the pages of one are no business of the other.
  std::string File(const std::string& space) const { return folder_.path() + "/" + space + ".db"; }

  testing::TemporaryFolder folder_;
};

class PostgresBackend final : public Backend {
 public:
  explicit PostgresBackend(bool smoke) : server_(smoke, {.durable = true}) {}

  std::unique_ptr<store::Store> Open(const std::string& space) override {
    return MustOpen(server_->Url() + "?namespace=" + space);
  }
  std::unique_ptr<Table> TableOf(const std::string& space) override {
    return PostgresTable(*server_, space);
  }
  std::unique_ptr<Side> RawSide(const std::string& space, Table& table) override {
    return RawPostgres(*server_, space, table);
  }

 private:
  const BenchServer<testing::PostgresServer> server_;
};

class OpenSearchBackend final : public Backend {
 public:
  explicit OpenSearchBackend(bool smoke) : server_(smoke, {.heap_mib = 2048, .warm = true}) {}

  std::unique_ptr<store::Store> Open(const std::string& space) override {
    return MustOpen("opensearch+http://127.0.0.1:" + std::to_string(server_->port()) +
                    "?namespace=" + testing::UniqueName(space));
  }
  std::unique_ptr<Table> TableOf(const std::string& space) override {
    return OpenSearchTable(*server_, testing::UniqueName(space));
  }
  std::unique_ptr<Side> RawSide(const std::string& space, Table&) override {
    return RawOpenSearch(*server_, testing::UniqueName(space));
  }
  // A search proposes thousands of records: it counts too much in a round of hardly more.
  int LongerRounds() const override { return 6; }
  int64_t MostFinished() const override { return 1'000'000; }
  int Due() const override { return 1; }  // so that every claim has to search
  std::vector<int> Collisions(int workers, int rounds) override {
    return MeasureCollisions(*server_, workers, rounds);
  }

 private:
  const BenchServer<testing::OpenSearchServer> server_;
};

class DynamoDbBackend final : public Backend {
 public:
  explicit DynamoDbBackend(bool smoke) : server_(smoke, {.heap_mib = 3072, .warm = true}) {}

  std::unique_ptr<store::Store> Open(const std::string& space) override {
    return MustOpen(server_->Url(table_) + "&namespace=" + space);
  }
  std::unique_ptr<Table> TableOf(const std::string& space) override {
    return DynamoDbTable(*server_, table_, space);
  }
  std::unique_ptr<Side> RawSide(const std::string& space, Table&) override {
    return RawDynamoDb(*server_, table_, space);
  }
  int64_t MostFinished() const override { return 1'000'000; }
  int Due() const override { return 1; }  // so that every claim has to ask the index

 private:
  const std::string table_ = testing::UniqueName("bench");
  const BenchServer<testing::DynamoDbServer> server_;
};

std::unique_ptr<Backend> NewBackend(const std::string& name, bool smoke) {
  if (name == "opensearch") return std::make_unique<OpenSearchBackend>(smoke);
  if (name == "dynamodb") return std::make_unique<DynamoDbBackend>(smoke);
  if (name == "sqlite") return std::make_unique<SqliteBackend>();
  return std::make_unique<PostgresBackend>(smoke);
}

// A full run takes minutes: who waits sees it move.
void Say(const std::string& text) { std::cerr << text << std::endl; }

void SayRow(const Throughput& row) {
  Say(row.backend + ": " + std::to_string(row.workers) + " workers, batch " +
      std::to_string(row.batch) + ": " + std::to_string(std::lround(row.ours)) + " of " +
      std::to_string(std::lround(row.raw)) + " records a second");
}

double RoundOf(Side& side, Table& table, const Load& load) {
  // The rest is for turns that warm up, and for claims that come back short.
  table.Fill(0, load.records() + load.records() / 10 + int64_t{4} * load.workers * load.batch);
  const Outcome outcome = side.Run(load);
  if (outcome.completed < load.records() * 9 / 10) {
    throw std::runtime_error("only " + std::to_string(outcome.completed) + " of " +
                             std::to_string(load.records()) + " records were completed");
  }
  return outcome.per_second();
}

Throughput MeasureThroughput(const Options& options, const std::string& name, Table& table,
                             Side& ours, Side& raw, int longer, int workers, int batch) {
  Load load{.workers = workers, .batch = batch, .turns = options.smoke ? 2 : 3};
  if (!options.smoke) {
    const double rate = RoundOf(ours, table, load);  // as many turns as fill a round's time
    const double turns = rate * options.seconds * longer / (workers * batch);
    load.turns = std::max(3, static_cast<int>(turns));
  }
  const int rounds = std::max(std::min(5, options.rounds), options.rounds / longer);
  std::vector<double> ours_rates, raw_rates, ratios;
  for (int round = 0; round < rounds; ++round) {
    // Who goes first alternates, too, so that neither gains from a machine that gets faster.
    const bool ours_first = round % 2 == 0;
    const double first = RoundOf(ours_first ? ours : raw, table, load);
    const double second = RoundOf(ours_first ? raw : ours, table, load);
    ours_rates.push_back(ours_first ? first : second);
    raw_rates.push_back(ours_first ? second : first);
    ratios.push_back(ours_rates.back() / raw_rates.back());
  }
  return {name, workers, batch, MedianOf(ours_rates), MedianOf(raw_rates), MedianOf(ratios)};
}

FinishedCost MeasureFinishedCost(const Options& options, const std::string& name,
                                 Backend& backend) {
  const int64_t finished = std::min(options.finished, backend.MostFinished());
  const auto alone = backend.Open("alone");
  const auto beside = backend.Open("beside");
  backend.TableOf("alone")->Fill(0, backend.Due());
  const auto table = backend.TableOf("beside");
  table->Fill(finished, backend.Due());
  if (table->Finished() != finished) throw std::runtime_error("the table is not as filled");
  return {name, finished, MeasureClaimCost(*alone, *beside, options.samples)};
}

Report Measure(const Options& options) {
  Report report;
  for (const std::string& name : options.stores) {
    const auto backend = NewBackend(name, options.smoke);
    {
      const auto store = backend->Open("bench");
      const auto table = backend->TableOf("bench");
      const auto ours = Ours(*store);
      const auto raw = backend->RawSide("bench", *table);
      for (const int workers : options.workers) {
        for (const int batch : options.batches) {
          report.throughput.push_back(MeasureThroughput(options, name, *table, *ours, *raw,
                                                        backend->LongerRounds(), workers, batch));
          SayRow(report.throughput.back());
        }
      }
    }
    if (options.finished > 0) {
      Say(name + ": a claim beside finished records");
      report.finished_cost.push_back(MeasureFinishedCost(options, name, *backend));
    }
    constexpr int kCompeting = 40;
    for (const int conflicts : backend->Collisions(kCompeting, options.smoke ? 1 : 10)) {
      report.collisions.push_back({name, kCompeting, conflicts});
    }
  }
  const testing::TemporaryFolder folder;
  report.start_up_ms = StartUpMilliseconds(options.smoke ? 1 : 20);
  report.idle_worker_mib = IdleWorkerMebibytes("sqlite:" + folder.path() + "/idle.db");
  return report;
}

// Everything a full run has, as little of it as possible.
void MakeSmall(Options& options) {
  options.workers = {1, 4};
  options.batches = {1, 10};
  options.rounds = 1;
  options.finished = 1000;
  options.samples = 3;
}

int Main(int argc, char** argv) {
  Options options;
  Arguments arguments(
      "Claim + complete per second through the store, beside the raw limit of its database,\n"
      "in alternating rounds; the cost of a claim beside many finished records; start-up and\n"
      "memory. Exit code 1: a bar does not hold.");
  arguments.AddChoices("--store", options.stores, "which stores");
  arguments.AddNumbers("--workers", options.workers, "how many workers", 1, 64);
  arguments.AddNumbers("--batch", options.batches, "records of a claim", 1, store::kMaxBatch);
  arguments.AddNumber("--rounds", options.rounds, "rounds of each side", 1, 1000);
  arguments.AddNumber("--seconds", options.seconds, "how long a round is, about");
  arguments.AddNumber("--finished", options.finished, "finished records; 0: leave that part out");
  arguments.AddFlag("--smoke", options.smoke, "one tiny round of everything; no bar counts");
  arguments.AddFlag("--json", options.json, "print JSON");
  arguments.Parse(argc, argv);
  if (options.smoke) MakeSmall(options);

  const Report report = Measure(options);
  options.json ? PrintJson(report, std::cout) : PrintText(report, std::cout);
  const std::vector<Bar> bars = BarsOf(report);
  const bool all = std::all_of(bars.begin(), bars.end(), [](const Bar& bar) { return bar.holds; });
  return all || options.smoke ? 0 : 1;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  try {
    if (argc == 3 && std::string_view(argv[1]) == muster::bench::kIdleWorker) {
      muster::bench::RunIdleWorker(argv[2]);
      return 0;
    }
    return muster::bench::Main(argc, argv);
  } catch (const std::exception& failure) {
    std::cerr << "store_bench: " << failure.what() << "\n";
    return 1;
  }
}
