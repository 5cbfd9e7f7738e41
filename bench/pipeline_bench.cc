// How fast documents pass through the pipeline, beside a loop that only parses and copies them, and
// how much memory that takes. docs/internals/benchmarks.md says how to read what it prints.

#include <fcntl.h>
#include <simdjson.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <vector>

#include "documents.h"
#include "median.h"
#include "muster/migrate.h"
#include "support/temporary_folder.h"

extern char** environ;

namespace muster::bench {
namespace {

constexpr double kMega = 1e6;
constexpr const char* kRename = "- rename: {customer.name: full_name, note: remark}\n";

struct Options {
  std::string folder;  // empty: the system's for temporary files
  uint64_t megabytes = 500;
  std::vector<uint64_t> memory_megabytes = {1'000, 10'000};
  int rounds = 5;
  bool smoke = false;
};

template <class Work>
double SecondsOf(Work work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void Must(bool good, const std::string& what) {
  if (!good) throw std::runtime_error(what + ": " + std::strerror(errno));
}

// The peer: reads the file in large pieces, parses each line and writes it to another file.
void ParseAndCopy(const std::string& from, const std::string& to) {
  const int in = open(from.c_str(), O_RDONLY | O_CLOEXEC);
  const int out = open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  Must(in >= 0 && out >= 0, "open");
  simdjson::dom::parser parser;
  std::vector<char> buffer((size_t{1} << 20) + simdjson::SIMDJSON_PADDING);
  const size_t room = buffer.size() - simdjson::SIMDJSON_PADDING;
  std::string copy;
  size_t kept = 0;
  for (;;) {
    const ssize_t got = read(in, buffer.data() + kept, room - kept);
    Must(got >= 0, "read");
    if (got == 0) break;
    const size_t size = kept + static_cast<size_t>(got);
    copy.clear();
    const char* line = buffer.data();
    const char* const end = buffer.data() + size;
    while (const void* found = std::memchr(line, '\n', static_cast<size_t>(end - line))) {
      const char* const line_end = static_cast<const char*>(found);
      const auto length = static_cast<size_t>(line_end - line);
      Must(parser.parse(line, length, false).error() == simdjson::SUCCESS, "parse");
      copy.append(line, length + 1);
      line = line_end + 1;
    }
    Must(write(out, copy.data(), copy.size()) == static_cast<ssize_t>(copy.size()), "write");
    kept = static_cast<size_t>(end - line);
    std::memmove(buffer.data(), line, kept);
  }
  Must(fdatasync(out) == 0, "sync");
  close(in);
  close(out);
}

class Silent final : public MigrationObserver {
 public:
  void Prepared(const std::vector<TargetChange>&) override {}
  void CollectionStarted(const std::string&, const std::vector<Partition>&) override {}
  void Advanced(const Partition&, const Progress&) override {}
  void CollectionEnded(const std::string&, const Counts&) override {}
};

template <class T>
T Want(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().ToString());
  return *std::move(result);
}

void Migrate(const std::string& from, const std::string& to, int64_t documents) {
  Env& env = RealEnv();
  // One shard, since the peer is one loop.
  const auto source = Want(OpenSource("jsonl:" + from + "?partition_bytes=1000000000000", env));
  const auto sink = Want(OpenSink("jsonl:" + to, env));
  const auto transforms = Want(ParseTransforms(kRename, "rename"));
  const auto letters = Want(OpenDeadLetters(to + ".dead", "bench"));
  Throttle throttle(env);
  Pipeline pipeline{env, *source, *transforms, *sink, *letters, throttle};
  Silent silent;
  const Counts counts = Want(MigrateAll(pipeline, {}, silent, {}));
  Must(counts.written == documents, "written " + std::to_string(counts.written));
}

// The largest resident memory of `muster migrate`, in MiB.
double MemoryOfMigration(const std::string& from, const std::string& to,
                         const std::string& transforms) {
  const std::string program =
      (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "muster").string();
  const std::string source = "jsonl:" + from;
  const std::string sink = "jsonl:" + to;
  const char* argv[] = {"muster",       "migrate",          source.c_str(),    sink.c_str(),
                        "--transforms", transforms.c_str(), "--progress=none", nullptr};
  pid_t pid = 0;
  Must(posix_spawn(&pid, program.c_str(), nullptr, nullptr, const_cast<char**>(argv), environ) == 0,
       "start " + program);
  int status = 0;
  struct rusage usage {};
  Must(wait4(pid, &status, 0, &usage) == pid, "wait");
  Must(WIFEXITED(status) && WEXITSTATUS(status) == 0, "muster migrate failed");
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app{
      "JSONL to JSONL with a rename, beside a loop that parses the lines with simdjson and copies\n"
      "them; the memory of muster migrate. Exit code 1: a bar does not hold.",
      "pipeline_bench"};
  app.add_option("--folder", options.folder, "where files are written; twice the largest size");
  app.add_option("--mb", options.megabytes, "how much is copied in a round")->capture_default_str();
  app.add_option("--memory-mb", options.memory_megabytes,
                 "how much is migrated to see the memory (default: 1000 10000)");
  app.add_option("--rounds", options.rounds, "rounds of each side")->capture_default_str();
  app.add_flag("--smoke", options.smoke, "one tiny round of everything; no bar counts");
  CLI11_PARSE(app, argc, argv);
  if (options.smoke) {
    options.megabytes = 2;
    options.memory_megabytes = {2};
    options.rounds = 1;
  }
  if (!options.folder.empty()) setenv("TMPDIR", options.folder.c_str(), 1);
  const testing::TemporaryFolder folder;
  bool holds = true;

  const std::string input = folder.At("in.jsonl");
  const int64_t documents = WriteDocuments(input, options.megabytes * 1'000'000);
  const double size = static_cast<double>(std::filesystem::file_size(input));
  std::vector<double> ours;
  std::vector<double> peers;
  std::vector<double> ratios;
  for (int round = 0; round < options.rounds; ++round) {
    const double peer = SecondsOf([&] { ParseAndCopy(input, folder.At("peer.jsonl")); });
    const double own = SecondsOf([&] { Migrate(input, folder.At("out.jsonl"), documents); });
    std::filesystem::remove(folder.At("out.jsonl"));
    peers.push_back(size / kMega / peer);
    ours.push_back(size / kMega / own);
    ratios.push_back(peer / own);
  }
  const double ratio = MedianOf(ratios);
  std::printf("JSONL to JSONL with a rename: %.0f MB/s, parse and copy %.0f MB/s, ratio %.2f\n",
              MedianOf(ours), MedianOf(peers), ratio);
  holds = holds && ratio >= 0.5;

  const std::string transforms = folder.Write("rename.yaml", kRename);
  for (const uint64_t megabytes : options.memory_megabytes) {
    WriteDocuments(input, megabytes * 1'000'000);
    const double memory = MemoryOfMigration(input, folder.At("out.jsonl"), transforms);
    std::filesystem::remove(folder.At("out.jsonl"));
    std::printf("memory of muster migrate, %llu MB of input: %.0f MiB\n",
                static_cast<unsigned long long>(megabytes), memory);
    holds = holds && memory < 100;
  }
  return holds || options.smoke ? 0 : 1;
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
