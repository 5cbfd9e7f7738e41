#include <cstdio>
#include <fstream>
#include <stdexcept>

#include "bench_server.h"
#include "median.h"
#include "pipeline_bench.h"
#include "program_cost.h"
#include "support/postgres_server.h"
#include "support/temporary_folder.h"

namespace muster::bench {
namespace {

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

class Loads {
 public:
  Loads(int64_t rows, bool smoke) : rows_(rows), server_(smoke, {.durable = true}) {
    WriteCsv(csv_, rows);
    server_->Exec(std::string("CREATE TABLE orders (") + kColumns + ")");
  }

  ProgramCost Psql() {
    return Loaded({"psql", "-qX", server_->Url(), "-c",
                   "\\copy orders from '" + csv_ + "' with (format csv, header)"});
  }

  // One shard, since psql has one connection.
  ProgramCost Muster() {
    return Loaded({MusterProgram(), "migrate", "csv:" + csv_ + "?partition_bytes=1000000000000",
                   server_->Url() + "#orders", "--progress=none", "--dead-letters",
                   folder_.At("dead.jsonl")});
  }

  ProgramCost Pgloader() {
    return Loaded({"pgloader", "--quiet", "--root-dir", folder_.path(), "--type", "csv", "--with",
                   "skip header = 1", "--with", "fields terminated by ','", csv_,
                   server_->Url() + "?tablename=orders"});
  }

 private:
  // Into an empty table, from a server that has nothing left to write from before.
  ProgramCost Loaded(const std::vector<std::string>& command) {
    server_->Exec("TRUNCATE orders");
    server_->Exec("CHECKPOINT");
    const ProgramCost cost = RunProgram(command);
    if (server_->Exec("SELECT count(*) FROM orders") != std::to_string(rows_)) {
      throw std::runtime_error(command[0] + ": rows are missing");
    }
    return cost;
  }

  const int64_t rows_;
  const testing::TemporaryFolder folder_;
  const std::string csv_ = folder_.At("orders.csv");
  const BenchServer<testing::PostgresServer> server_;
};

}  // namespace

void BenchPostgres(const PipelineBenchOptions& options, Bars& bars) {
  if (const auto reason = testing::PostgresServer::Unavailable(); !reason.empty()) {
    std::printf("CSV to PostgreSQL: skipped, %s\n", reason.c_str());
    return;
  }
  Loads loads(options.rows, options.smoke);
  std::vector<double> psql;
  std::vector<double> ours;
  std::vector<double> ratios;
  std::vector<double> cpu;
  for (int round = 0; round < options.rounds; ++round) {
    psql.push_back(loads.Psql().seconds);
    const ProgramCost own = loads.Muster();
    ours.push_back(own.seconds);
    cpu.push_back(own.cpu_seconds);
    ratios.push_back(psql.back() / ours.back());
  }
  const auto rows = static_cast<double>(options.rows);
  std::printf(
      "CSV to PostgreSQL: %.0f rows/s, %.2f µs of the client's processor a row; psql \\copy: %.0f "
      "rows/s\n",
      rows / MedianOf(ours), MedianOf(cpu) / rows * 1e6, rows / MedianOf(psql));
  bars.AtLeast("beside psql \\copy", 100 * MedianOf(ratios), 90, " %");
  if (!HasProgram("pgloader")) {
    std::printf("  pgloader is not here: apt-get install pgloader\n");
    return;
  }
  // Once: it takes minutes.
  bars.AtLeast("beside pgloader", loads.Pgloader().seconds / MedianOf(ours), 10, " times");
}

}  // namespace muster::bench
