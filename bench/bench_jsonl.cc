#include <fcntl.h>
#include <simdjson.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "documents.h"
#include "median.h"
#include "pipeline_bench.h"
#include "program_cost.h"
#include "support/temporary_folder.h"

namespace muster::bench {
namespace {

constexpr double kMega = 1e6;

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

double SecondsToParseAndCopy(const std::string& from, const std::string& to) {
  const auto start = std::chrono::steady_clock::now();
  ParseAndCopy(from, to);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

class Files {
 public:
  explicit Files(uint64_t megabytes) { WriteDocuments(input_, megabytes * 1'000'000); }

  // One shard, since the peer is one loop.
  ProgramCost Migrate() {
    std::filesystem::remove(output_);
    return RunProgram({MusterProgram(), "migrate",
                       "jsonl:" + input_ + "?partition_bytes=1000000000000", "jsonl:" + output_,
                       "--transforms", rename_, "--progress=none", "--dead-letters",
                       folder_.At("dead.jsonl")});
  }

  double ParseAndCopy() {
    std::filesystem::remove(output_);
    return SecondsToParseAndCopy(input_, output_);
  }

  double megabytes() const {
    return static_cast<double>(std::filesystem::file_size(input_)) / kMega;
  }

 private:
  const testing::TemporaryFolder folder_;
  const std::string input_ = folder_.At("in.jsonl");
  const std::string output_ = folder_.At("out.jsonl");
  const std::string rename_ =
      folder_.Write("rename.yaml", "- rename: {customer.name: full_name, note: remark}\n");
};

}  // namespace

void BenchJsonl(const PipelineBenchOptions& options, Bars& bars) {
  {
    Files files(options.megabytes);
    std::vector<double> ours;
    std::vector<double> peers;
    std::vector<double> ratios;
    for (int round = 0; round < options.rounds; ++round) {
      peers.push_back(files.ParseAndCopy());
      ours.push_back(files.Migrate().seconds);
      ratios.push_back(peers.back() / ours.back());
    }
    std::printf("JSONL to JSONL with a rename: %.0f MB/s; parse and copy: %.0f MB/s\n",
                files.megabytes() / MedianOf(ours), files.megabytes() / MedianOf(peers));
    bars.AtLeast("beside parse and copy", 100 * MedianOf(ratios), 50, " %");
  }
  for (const uint64_t megabytes : options.memory_megabytes) {
    Files files(megabytes);
    bars.AtMost("memory at " + std::to_string(megabytes) + " MB of input",
                files.Migrate().peak_mebibytes, 100, " MiB");
  }
}

}  // namespace muster::bench
