// How fast CSV goes into PostgreSQL, beside psql's \copy of the same file and pgloader.
// docs/internals/benchmarks.md says how to read what it prints.

#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <functional>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "median.h"
#include "muster/migrate.h"
#include "support/postgres_server.h"
#include "support/temporary_folder.h"

namespace muster::bench {
namespace {

using testing::PostgresServer;
using testing::TemporaryFolder;

struct Options {
  int64_t rows = 2'000'000;
  int rounds = 5;
  size_t batch = 10'000;
  bool smoke = false;
};

constexpr const char* kColumns =
    "id bigint, customer integer, name text, email text, city text, price numeric, quantity "
    "integer,"
    " paid boolean, created timestamp, note text";

void WriteCsv(const std::string& path, int64_t rows) {
  std::ofstream file(path);
  file << "id,customer,name,email,city,price,quantity,paid,created,note\n";
  for (int64_t i = 0; i < rows; ++i) {
    file << i << ',' << i % 9973 << ",Customer " << i % 1000 << ",customer" << i % 1000
         << "@example.com,City " << i % 77 << ',' << i % 1000 << '.' << i % 90 + 10 << ',' << i % 12
         << ',' << (i % 3 == 0 ? "true" : "false") << ",2024-02-" << i % 18 + 10
         << " 12:34:56,a note of some length for order " << i << '\n';
  }
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

struct Cost {
  double seconds = 0;
  double cpu_seconds = 0;  // of the client
};

double CpuSeconds(int who) {
  rusage usage{};
  getrusage(who, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Cost Measure(int who, const std::function<void()>& work) {
  const double cpu = CpuSeconds(who);
  const auto start = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  return {passed.count(), CpuSeconds(who) - cpu};
}

void RunShell(const std::string& command) {
  const int status = std::system(command.c_str());
  if (status != 0) throw std::runtime_error("failed: " + command);
}

class Quiet final : public MigrationObserver {
 public:
  void Prepared(const std::vector<TargetChange>&) override {}
  void CollectionStarted(const std::string&, const std::vector<Partition>&) override {}
  void Advanced(const Partition&, const Progress&) override {}
  void CollectionEnded(const std::string&, const Counts&) override {}
};

template <class T>
T Check(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().ToString());
  return *std::move(result);
}

void Migrate(const std::string& from, const std::string& to, const std::string& letters,
             size_t batch) {
  Env& env = RealEnv();
  const auto source = Check(OpenSource(from, env));
  const auto sink = Check(OpenSink(to, env));
  const auto transforms = Check(ParseTransforms("", ""));
  const auto dead_letters = Check(OpenDeadLetters(letters, "bench"));
  Throttle throttle(env);
  Pipeline pipeline{env, *source, *transforms, *sink, *dead_letters, throttle, {}};
  pipeline.options.limits.max_docs = batch;
  Quiet quiet;
  const Counts counts = Check(MigrateAll(pipeline, {}, quiet, {}));
  if (counts.failed != 0) throw std::runtime_error("documents were refused");
}

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options) {
    WriteCsv(csv_, options.rows);
    server_.Exec(std::string("CREATE TABLE orders (") + kColumns + ")");
  }

  void Run() {
    // In turn, so that what else the machine does hits all of them alike.
    std::vector<std::vector<Cost>> costs(3);
    const bool has_pgloader = std::system("command -v pgloader > /dev/null") == 0;
    for (int round = 0; round < options_.rounds; ++round) {
      costs[0].push_back(Loaded(RUSAGE_CHILDREN, [&] {
        RunShell("psql -qX '" + server_.Url() + "' -c \"\\copy orders from '" + csv_ +
                 "' with (format csv, header)\"");
      }));
      costs[1].push_back(Loaded(RUSAGE_SELF, [&] {
        Migrate("csv:" + csv_, server_.Url() + "#orders", folder_.At("dead.jsonl"), options_.batch);
      }));
      if (!has_pgloader) continue;
      costs[2].push_back(Loaded(RUSAGE_CHILDREN, [&] {
        RunShell("pgloader --quiet --root-dir '" + folder_.path() +
                 "' --type csv --with 'skip header = 1' --with \"fields terminated by ','\" '" +
                 csv_ + "' '" + server_.Url() + "?tablename=orders' > /dev/null");
      }));
    }
    std::printf("%-12s %10s %12s %14s\n", "", "SECONDS", "ROWS/S", "CLIENT µs/ROW");
    const char* const names[] = {"psql \\copy", "muster", "pgloader"};
    std::vector<double> medians;
    for (size_t i = 0; i < costs.size(); ++i) {
      if (costs[i].empty()) continue;
      const double seconds = Median(costs[i], &Cost::seconds);
      medians.push_back(seconds);
      const auto rows = static_cast<double>(options_.rows);
      std::printf("%-12s %10.3f %12.0f %13.2f\n", names[i], seconds, rows / seconds,
                  Median(costs[i], &Cost::cpu_seconds) / rows * 1e6);
    }
    std::printf("muster / psql \\copy: %.0f %%\n", 100 * medians[0] / medians[1]);
    if (medians.size() > 2) {
      std::printf("muster / pgloader: %.1f x\n", medians[2] / medians[1]);
    } else {
      std::printf("pgloader is not installed: apt-get install pgloader\n");
    }
  }

 private:
  // Into an empty table, from a server that has nothing left to write from before.
  Cost Loaded(int who, const std::function<void()>& load) {
    server_.Exec("TRUNCATE orders");
    server_.Exec("CHECKPOINT");
    const Cost cost = Measure(who, load);
    if (server_.Exec("SELECT count(*) FROM orders") != std::to_string(options_.rows)) {
      throw std::runtime_error("rows are missing");
    }
    return cost;
  }

  static double Median(const std::vector<Cost>& costs, double Cost::*part) {
    std::vector<double> values;
    for (const Cost& cost : costs) values.push_back(cost.*part);
    return MedianOf(std::move(values));
  }

  const Options options_;
  const TemporaryFolder folder_;
  const std::string csv_ = folder_.At("orders.csv");
  PostgresServer server_{{.durable = true}};
};

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("CSV into PostgreSQL, beside psql \\copy and pgloader");
  app.add_option("--rows", options.rows, "Rows of ten columns, 150 bytes each");
  app.add_option("--rounds", options.rounds, "How often each is measured; the median counts");
  app.add_option("--batch", options.batch, "Documents of a batch");
  app.add_flag("--smoke", options.smoke, "Only see that it works");
  CLI11_PARSE(app, argc, argv);
  if (options.smoke) {
    options.rows = 5'000;
    options.rounds = 1;
    options.batch = 1'000;
  }
  if (const std::string reason = PostgresServer::Unavailable(); !reason.empty()) {
    std::cerr << "skipped: " << reason << "\n";
    return 77;
  }
  Bench(options).Run();
  return 0;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  try {
    return muster::bench::Main(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
