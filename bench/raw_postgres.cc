#include "raw_postgres.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "store/postgres/postgres_statements.h"

namespace muster::bench {
namespace {

// What a claim takes goes back with the completion: keys and bodies, as arrays, since pgbench can
// only carry over single values. One record needs no array.
constexpr const char* kClaim = R"(
WITH picked AS MATERIALIZED (
  SELECT ctid FROM @.records
  WHERE kind = 'bench' AND queue = 'default' AND due <= statement_timestamp()
  ORDER BY due LIMIT :batch FOR UPDATE SKIP LOCKED),
taken AS (
  UPDATE @.records r
  SET owner = 'bench', claim_id = '0123456789abcdef0123456789abcdef',
      due = statement_timestamp() + interval '60 s', version = version + 1, epoch = epoch + 1,
      attempt = attempt + 1
  FROM picked WHERE r.ctid = picked.ctid RETURNING key, body)
)";
constexpr const char* kOne = R"(
SELECT min(key) AS key, min(body::text) AS body FROM taken \gset
UPDATE @.records SET due = NULL, version = version + 1, body = :body
WHERE kind = 'bench' AND key = :key;
)";
constexpr const char* kMany = R"(
SELECT array_agg(key) AS keys, array_agg(body) AS bodies FROM taken \gset
UPDATE @.records r SET due = NULL, version = version + 1, body = c.body
FROM unnest(:keys::text[], :bodies::json[]) AS c(key, body)
WHERE r.kind = 'bench' AND r.key = c.key;
)";

std::string ScriptFor(const std::string& space, int batch) {
  std::string script = std::string(kClaim + 1) + ((batch == 1 ? kOne : kMany) + 1);
  for (size_t at = script.find('@'); at != std::string::npos; at = script.find('@', at)) {
    script.replace(at, 1, space);
  }
  return script;
}

// The settings of the store's own sessions: plans that start from the index of due records.
std::string SessionOptions() {
  std::string options;
  for (const auto& [name, value] : store::PostgresSessionSettings()) {
    options += "-c " + name + "=";
    for (const char c : value) options += c == ' ' ? "\\ " : std::string(1, c);
    options += ' ';
  }
  return options;
}

// The output of a shell command.
std::string OutputOf(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run: " + command);
  std::string output;
  std::array<char, 4096> buffer;
  while (const size_t count = fread(buffer.data(), 1, buffer.size(), pipe)) {
    output.append(buffer.data(), count);
  }
  if (pclose(pipe) != 0) throw std::runtime_error(command + " failed: " + output);
  return output;
}

double NumberAfter(const std::string& text, const std::string& label) {
  const size_t at = text.find(label);
  if (at == std::string::npos) throw std::runtime_error("pgbench says no '" + label + "': " + text);
  return std::stod(text.substr(at + label.size()));
}

class Raw final : public Side {
 public:
  Raw(const testing::PostgresServer& server, const std::string& space, Table& table)
      : server_(server), space_(space), table_(table) {}

  Outcome Run(const Load& load) override {
    const std::string script = std::filesystem::temp_directory_path() /
                               ("muster-bench-" + std::to_string(getpid()) + ".sql");
    std::ofstream(script) << ScriptFor(space_, load.batch);
    const int64_t before = table_.Finished();
    const int threads =
        std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, load.workers);
    const std::string output = OutputOf(
        "PGOPTIONS='" + SessionOptions() +
        "'"
        " pgbench --no-vacuum --protocol=prepared --define=batch=" +
        std::to_string(load.batch) + " --client=" + std::to_string(load.workers) +
        " --jobs=" + std::to_string(threads) + " --transactions=" + std::to_string(load.turns) +
        " --file=" + script + " --host=127.0.0.1 --port=" + std::to_string(server_.port()) +
        " --username=muster " + server_.database() + " 2>&1");
    std::filesystem::remove(script);
    const double turns = NumberAfter(output, "number of transactions actually processed: ");
    const double turns_per_second = NumberAfter(output, "tps = ");
    return {table_.Finished() - before, std::chrono::duration<double>(turns / turns_per_second)};
  }

 private:
  const testing::PostgresServer& server_;
  const std::string space_;
  Table& table_;
};

}  // namespace

std::unique_ptr<Side> RawPostgres(const testing::PostgresServer& server, const std::string& space,
                                  Table& table) {
  return std::make_unique<Raw>(server, space, table);
}

}  // namespace muster::bench
