#include <chrono>
#include <cstdio>
#include <filesystem>
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

// From bench/fetch_reindex.
constexpr const char* kWithReindex = "opensearch-2.19.6-reindex";

// Copies one index to another. Both are on one server: more would only share the same processors.
class Copying {
 public:
  explicit Copying(const PipelineBenchOptions& options)
      : has_reindex_(
            !options.smoke &&
            testing::OpenSearchServer::Unavailable({.distribution = kWithReindex}).empty()),
        server_(options.smoke,
                {.distribution =
                     has_reindex_ ? kWithReindex : testing::OpenSearchServer::DefaultDistribution(),
                 .heap_mib = 2048,
                 .warm = true}) {
    const testing::TemporaryFolder folder;
    const std::string lines = folder.At("in.jsonl");
    documents_ = WriteDocuments(lines, options.bulk_megabytes * 1'000'000);
    Create(source_);
    RunProgram({MusterProgram(), "migrate", "jsonl:" + lines + "?id=order_id", Place(source_),
                "--progress=none", "--dead-letters", folder.At("dead.jsonl")});
    CheckCount(source_, "the source");
  }

  ProgramCost Muster() {
    return Filled({MusterProgram(), "migrate", Place(source_), Place(target_), "--progress=none",
                   "--documents-only"});
  }

  bool has_reindex() const { return has_reindex_; }

  // As a cluster reads another one, with batches of muster's size.
  double Reindex() {
    Create(target_);
    const Json order{
        {"source",
         {{"remote", {{"host", server_->Url()}}}, {"index", source_.substr(1)}, {"size", 1'000}}},
        {"dest", {{"index", target_.substr(1)}}}};
    net::HttpClient client(net::HttpOptions{.use_proxy = false});
    const auto start = std::chrono::steady_clock::now();
    const auto answer = client.Send({.method = "POST",
                                     .url = server_->Url("/_reindex?refresh=false"),
                                     .headers = {{"Content-Type", "application/json"}},
                                     .body = ToJsonText(order),
                                     .timeout = std::chrono::hours(1)});
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    if (!answer || answer->status != 200) {
      throw std::runtime_error("_reindex failed: " +
                               (answer ? answer->body.substr(0, 300) : answer.error().ToString()));
    }
    CheckCount(target_, "_reindex");
    return passed.count();
  }

  ProgramCost Elasticdump() {
    return Filled({kElasticdump, "--input=" + server_->Url(source_),
                   "--output=" + server_->Url(target_), "--type=data"});
  }

  double documents() const { return static_cast<double>(documents_); }

 private:
  std::string Place(const std::string& index) const { return "opensearch+" + server_->Url(index); }

  void Create(const std::string& index) {
    if (index == target_ && std::exchange(has_target_, true)) server_->Call("DELETE", index);
    server_->Call("PUT", index,
                  R"({"settings":{"number_of_shards":1,"number_of_replicas":0,)"
                  R"("refresh_interval":"-1"}})");
  }

  ProgramCost Filled(const std::vector<std::string>& command) {
    Create(target_);
    const ProgramCost cost = RunProgram(command);
    CheckCount(target_, command[0]);
    return cost;
  }

  void CheckCount(const std::string& index, const std::string& who) {
    server_->Call("POST", index + "/_refresh");
    const Json answer = ParseJson(server_->Call("GET", index + "/_count"), "_count").value();
    if (answer["count"] != documents_) throw std::runtime_error(who + ": documents missing");
  }

  const std::string source_ = "/" + testing::UniqueName("from");
  const std::string target_ = "/" + testing::UniqueName("to");
  bool has_target_ = false;
  int64_t documents_ = 0;
  const bool has_reindex_;
  const BenchServer<testing::OpenSearchServer> server_;
};

}  // namespace

void BenchClusters(const PipelineBenchOptions& options, Bars& bars) {
  if (const auto reason = testing::OpenSearchServer::Unavailable(); !reason.empty()) {
    std::printf("OpenSearch to OpenSearch: skipped, %s\n", reason.c_str());
    return;
  }
  Copying copying(options);
  // The first rounds make the server's code fast.
  if (!options.smoke) copying.Muster();
  std::vector<double> theirs;
  std::vector<double> ours;
  std::vector<double> ratios;
  std::vector<double> cpu;
  for (int round = 0; round < options.rounds; ++round) {
    if (copying.has_reindex()) theirs.push_back(copying.Reindex());
    const ProgramCost own = copying.Muster();
    ours.push_back(own.seconds);
    cpu.push_back(own.cpu_seconds);
    if (copying.has_reindex()) ratios.push_back(theirs.back() / ours.back());
  }
  const double documents = copying.documents();
  std::printf(
      "OpenSearch to OpenSearch: %.0f documents/s, %.2f µs of the client's processor a document\n",
      documents / MedianOf(ours), MedianOf(cpu) / documents * 1e6);
  if (copying.has_reindex()) {
    std::printf("  _reindex from remote: %.0f documents/s\n", documents / MedianOf(theirs));
    bars.AtLeast("beside _reindex from remote", MedianOf(ratios), 0.9, " times");
  } else {
    std::printf("  _reindex is not here: bench/fetch_reindex\n");
  }
  if (!std::filesystem::exists(kElasticdump)) {
    std::printf("  elasticdump is not here: bench/fetch_elasticdump\n");
    return;
  }
  const ProgramCost dump = copying.Elasticdump();
  bars.AtLeast("beside elasticdump", dump.seconds / MedianOf(ours), 2.5, " times");
  bars.AtMost("the client's processor, of elasticdump's", 100 * MedianOf(cpu) / dump.cpu_seconds,
              10, " %");
}

}  // namespace muster::bench
