// How fast documents are read out of a snapshot, beside a loop that only unpacks the same blocks,
// and what that takes. docs/internals/benchmarks.md says how to read what it prints.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "arguments.h"
#include "bare_unpack.h"
#include "lucene/repository.h"
#include "lucene/shard_reader.h"
#include "median.h"
#include "support/opensearch_server.h"
#include "support/temporary_folder.h"

namespace muster::bench {
namespace {

using lucene::Repository;
using lucene::ShardDirectory;
using lucene::ShardReader;

struct Options {
  std::string repository;  // empty: one is made
  std::string index = "documents";
  int documents = 300'000;
  int rounds = 9;
  bool smoke = false;
};

template <class T>
T Want(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().ToString());
  return *std::move(result);
}

template <class Work>
double SecondsOf(Work work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// About 1 KB, with as much repetition as orders have.
std::string MadeUpDocument(int number) {
  std::string text = "{\"id\":" + std::to_string(number) + ",\"items\":[";
  uint32_t random = static_cast<uint32_t>(number) * 2654435761U + 1;
  while (text.size() < 960) {
    random = random * 1664525 + 1013904223;
    text += "{\"sku\":\"" + std::to_string(random % 100'000) +
            "\",\"quantity\":" + std::to_string(random >> 20 & 7) +
            ",\"price\":" + std::to_string(random >> 8 & 4095) + ".5},";
  }
  return text + "{}]}";
}

// One shard, merged, so that nearly all of its time goes into documents.
void MakeSnapshot(const testing::OpenSearchServer& server, const Options& options) {
  server.Call("PUT", "/" + options.index,
              R"({"settings":{"number_of_shards":1,"number_of_replicas":0,"refresh_interval":"-1"},
                  "mappings":{"dynamic":false}})");
  std::string bulk;
  for (int i = 0; i < options.documents; ++i) {
    bulk += R"({"index":{"_id":")" + std::to_string(i) + "\"}}\n" + MadeUpDocument(i) + "\n";
    if (bulk.size() < 4'000'000 && i + 1 < options.documents) continue;
    server.Call("POST", "/" + options.index + "/_bulk?filter_path=errors", bulk);
    bulk.clear();
  }
  server.Call("POST", "/" + options.index + "/_forcemerge?max_num_segments=1");
  server.Call("PUT", "/_snapshot/bench",
              R"({"type":"fs","settings":{"location":")" + server.RepositoryFolder() + "\"}}");
  server.Call("PUT", "/_snapshot/bench/one?wait_for_completion=true",
              R"({"indices":")" + options.index + "\"}");
}

std::unique_ptr<const Repository> OpenRepository(const Options& options) {
  return std::make_unique<const Repository>(
      Want(Repository::Open(Want(lucene::OpenFolder(options.repository)))));
}

ShardDirectory OpenShard(const Repository& repository, const Options& options) {
  const auto snapshot = Want(repository.ReadSnapshots()).back();
  const auto index = Want(repository.ReadIndex(snapshot, options.index));
  return Want(repository.ReadShard(snapshot, index, 0));
}

// Reads [begin, end); the answer is how many documents there are.
uint64_t Scan(const ShardDirectory& directory, uint64_t begin, uint64_t end) {
  ShardReader reader = Want(ShardReader::Open(directory));
  reader.Seek(begin);
  lucene::Document document;
  uint64_t documents = 0;
  while (Want(reader.Next(document)) && document.position < end) ++documents;
  return documents;
}

double MillisecondsToTheFirst(const Options& options) {
  return 1'000 * SecondsOf([&] {
           const auto repository = OpenRepository(options);
           const ShardDirectory directory = OpenShard(*repository, options);
           Scan(directory, 0, 1);
         });
}

// The largest resident memory of a process that does nothing else.
double MemoryOfAScan(const Options& options) {
  const pid_t pid = fork();
  if (pid == 0) {
    const auto repository = OpenRepository(options);
    const ShardDirectory directory = OpenShard(*repository, options);
    _exit(Scan(directory, 0, UINT64_MAX) > 0 ? 0 : 1);
  }
  int status = 0;
  struct rusage usage {};
  if (pid < 0 || wait4(pid, &status, 0, &usage) != pid || status != 0) {
    throw std::runtime_error("the process that scans has failed");
  }
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// Half of the shard each, at once.
void ScanByTwo(const ShardDirectory& directory, uint64_t end) {
  std::jthread first([&] { Scan(directory, 0, end / 2); });
  Scan(directory, end / 2, end);
}

// Both sides in turns, so that what else the machine does hits both.
bool Measure(const Options& options) {
  const double memory = MemoryOfAScan(options);
  const double first = MillisecondsToTheFirst(options);
  const auto repository = OpenRepository(options);
  const ShardDirectory directory = OpenShard(*repository, options);
  BareUnpack bare(directory);
  const uint64_t end = Want(ShardReader::Open(directory)).end();
  const uint64_t documents = Scan(directory, 0, end);
  std::vector<double> rates;
  std::vector<double> ratios;
  std::vector<double> own_ratios;
  std::vector<double> speedups;
  for (int round = 0; round < options.rounds; ++round) {
    const double raw = SecondsOf([&] { bare.RunLiblz4(); });
    const double scan = SecondsOf([&] { Scan(directory, 0, end); });
    const double own = SecondsOf([&] { bare.RunOurs(); });
    const double two = SecondsOf([&] { ScanByTwo(directory, end); });
    rates.push_back(static_cast<double>(documents) / scan);
    ratios.push_back(std::min(raw, own) / scan);
    own_ratios.push_back(raw / own);
    speedups.push_back(scan / two);
  }
  const double ratio = MedianOf(ratios);
  std::printf("scan: %.0f documents/s, %.0f MB/s unpacked; of a loop that only unpacks: %.2f\n",
              MedianOf(rates),
              MedianOf(rates) * static_cast<double>(bare.unpacked_bytes()) /
                  static_cast<double>(documents) / 1e6,
              ratio);
  std::printf("our LZ4 beside liblz4: %.2f\n", MedianOf(own_ratios));
  std::printf("two threads beside one: %.2f\n", MedianOf(speedups));
  std::printf("memory of a scan of %.0f MB: %.0f MiB\n",
              static_cast<double>(bare.unpacked_bytes()) / 1e6, memory);
  std::printf("the first document after %.1f ms\n", first);
  return ratio >= 0.75 && memory < 64 && first < 50 && MedianOf(speedups) >= 1.8;
}

int Main(int argc, char** argv) {
  Options options;
  Arguments arguments(
      "Documents out of a snapshot, beside a loop that only unpacks the same blocks; memory, and "
      "the\n"
      "time to the first document. Exit code 1: a bar does not hold.");
  arguments.AddText("--repository", options.repository,
                    "a snapshot repository of OpenSearch 2 or later; by default one is made");
  arguments.AddText("--index", options.index, "whose first shard is read, of the newest snapshot");
  arguments.AddNumber("--documents", options.documents, "of 1 KB, in the repository that is made");
  arguments.AddNumber("--rounds", options.rounds, "rounds of each side", 1);
  arguments.AddFlag("--smoke", options.smoke, "one tiny round of everything; no bar counts");
  arguments.Parse(argc, argv);
  const testing::TemporaryFolder folder;
  if (options.smoke) {
    const std::string unpack =
        "tar --zstd -xf " MUSTER_SNAPSHOTS "/changes.tar.zst -C " + folder.path();
    if (std::system(unpack.c_str()) != 0) throw std::runtime_error(unpack);
    options.repository = folder.path() + "/changes/repo";
    options.index = "plain";
    options.rounds = 1;
  }
  if (!options.repository.empty()) return Measure(options) || options.smoke ? 0 : 1;
  testing::OpenSearchServer server({.warm = true});
  MakeSnapshot(server, options);
  options.repository = server.RepositoryFolder();
  // What is measured needs no server.
  server.Kill();
  return Measure(options) ? 0 : 1;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  try {
    return muster::bench::Main(argc, argv);
  } catch (const std::exception& failure) {
    std::cerr << "snapshot_bench: " << failure.what() << "\n";
    return 1;
  }
}
