#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "bench_server.h"
#include "core/json.h"
#include "documents.h"
#include "elasticdump.h"
#include "median.h"
#include "net/http.h"
#include "pipeline_bench.h"
#include "program_cost.h"
#include "support/opensearch_server.h"
#include "support/shared_server.h"
#include "support/temporary_folder.h"

namespace muster::bench {
namespace {

constexpr int kBatchDocuments = 1'000;  // as muster's, and no batch comes near its limit of bytes

// The documents in three shapes: lines for muster, lines with metadata for elasticdump, and the
// bodies of requests, in memory, for the bare loop.
class Input {
 public:
  explicit Input(uint64_t megabytes) {
    documents_ = WriteDocuments(plain(), megabytes * 1'000'000);
    std::ifstream lines(plain());
    std::ofstream dump(with_metadata());
    int64_t number = 0;
    for (std::string line; std::getline(lines, line); ++number) {
      const std::string id = std::to_string(number);
      dump << R"({"_index":"x","_id":")" << id << R"(","_source":)" << line << "}\n";
      if (number % kBatchDocuments == 0) bodies_.emplace_back();
      bodies_.back() += R"({"index":{"_id":")" + id + "\"}}\n" + line + "\n";
    }
  }

  std::string plain() const { return folder_.At("in.jsonl"); }
  std::string with_metadata() const { return folder_.At("dump.jsonl"); }
  std::string dead_letters() const { return folder_.At("dead.jsonl"); }
  const std::vector<std::string>& bodies() const { return bodies_; }
  int64_t documents() const { return documents_; }

 private:
  const testing::TemporaryFolder folder_;
  std::vector<std::string> bodies_;
  int64_t documents_ = 0;
};

class Indexing {
 public:
  explicit Indexing(const PipelineBenchOptions& options)
      : input_(options.bulk_megabytes), server_(options.smoke, {.heap_mib = 2048, .warm = true}) {}

  double BareLoop() {
    Empty();
    net::HttpClient client(net::HttpOptions{.use_proxy = false});
    const auto start = std::chrono::steady_clock::now();
    for (const std::string& body : input_.bodies()) {
      const auto answer = client.Send({.method = "POST",
                                       .url = server_->Url(index_ + "/_bulk"),
                                       .headers = {{"Content-Type", "application/x-ndjson"}},
                                       .body = body});
      if (!answer || answer->status != 200 ||
          answer->body.find("\"errors\":false") == std::string::npos) {
        throw std::runtime_error(
            "_bulk failed: " + (answer ? answer->body.substr(0, 300) : answer.error().ToString()));
      }
    }
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    CheckCount("the bare loop");
    return passed.count();
  }

  ProgramCost Muster() {
    return Filled({MusterProgram(), "migrate",
                   "jsonl:" + input_.plain() + "?id=order_id&partition_bytes=1000000000000",
                   "opensearch+" + server_->Url(index_), "--progress=none", "--dead-letters",
                   input_.dead_letters()});
  }

  ProgramCost Elasticdump() {
    return Filled({kElasticdump, "--input=" + input_.with_metadata(),
                   "--output=" + server_->Url(index_), "--type=data"});
  }

  double documents() const { return static_cast<double>(input_.documents()); }

 private:
  void Empty() {
    static bool first = true;
    if (!std::exchange(first, false)) server_->Call("DELETE", index_);
    server_->Call("PUT", index_,
                  R"({"settings":{"number_of_shards":1,"number_of_replicas":0,)"
                  R"("refresh_interval":"-1"}})");
  }

  ProgramCost Filled(const std::vector<std::string>& command) {
    Empty();
    const ProgramCost cost = RunProgram(command);
    CheckCount(command[0]);
    return cost;
  }

  void CheckCount(const std::string& who) {
    server_->Call("POST", index_ + "/_refresh");
    const Json answer = ParseJson(server_->Call("GET", index_ + "/_count"), "_count").value();
    if (answer["count"] != input_.documents())
      throw std::runtime_error(who + ": documents missing");
  }

  const Input input_;
  const std::string index_ = "/" + testing::UniqueName("orders");
  const BenchServer<testing::OpenSearchServer> server_;
};

}  // namespace

void BenchOpenSearch(const PipelineBenchOptions& options, Bars& bars) {
  if (const auto reason = testing::OpenSearchServer::Unavailable(); !reason.empty()) {
    std::printf("JSONL to OpenSearch: skipped, %s\n", reason.c_str());
    return;
  }
  Indexing indexing(options);
  // The first rounds make the server's code fast.
  if (!options.smoke) indexing.BareLoop();
  std::vector<double> bare;
  std::vector<double> ours;
  std::vector<double> ratios;
  std::vector<double> cpu;
  for (int round = 0; round < options.rounds; ++round) {
    bare.push_back(indexing.BareLoop());
    const ProgramCost own = indexing.Muster();
    ours.push_back(own.seconds);
    cpu.push_back(own.cpu_seconds);
    ratios.push_back(bare.back() / ours.back());
  }
  const double documents = indexing.documents();
  std::printf(
      "JSONL to OpenSearch: %.0f documents/s, %.2f µs of the client's processor a document; bare "
      "_bulk loop: %.0f documents/s\n",
      documents / MedianOf(ours), MedianOf(cpu) / documents * 1e6, documents / MedianOf(bare));
  bars.AtLeast("beside the bare loop", 100 * MedianOf(ratios), 95, " %");
  if (!std::filesystem::exists(kElasticdump)) {
    std::printf("  elasticdump is not here: bench/fetch_elasticdump\n");
    return;
  }
  const ProgramCost dump = indexing.Elasticdump();
  bars.AtLeast("beside elasticdump", dump.seconds / MedianOf(ours), 2.5, " times");
  bars.AtMost("the client's processor, of elasticdump's", 100 * MedianOf(cpu) / dump.cpu_seconds,
              10, " %");
}

}  // namespace muster::bench
