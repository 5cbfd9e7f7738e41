// What Parquet saves against JSON lines: the same rows staged in both formats in one run, with
// bytes, the time to stage them, to read them by SQL, and to transform and load them.

#include <array>
#include <chrono>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <random>
#include <stdexcept>

#include "arguments.h"
#include "core/json.h"
#include "median.h"
#include "sql/sqlite.h"
#include "support/temporary_folder.h"
#include "task/data/copy_executor.h"
#include "task/data/transform_executor.h"
#include "task/test_context.h"

namespace muster::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct StagingCosts {
  double bytes = 0;
  std::vector<double> copy_s;
  std::vector<double> read_s;
  std::vector<double> load_s;
};

// Words that are rare or frequent, as in a language: a text that repeats itself would flatter
// whatever compresses.
std::string Sentence(std::mt19937& random) {
  constexpr std::array<const char*, 16> kSyllables{"ba", "ter", "lo",  "mi", "ran", "sel",
                                                   "du", "ke",  "von", "is", "per", "ga",
                                                   "tu", "nel", "so",  "ha"};
  std::string text;
  for (uint64_t words = 6 + random() % 12; words > 0; --words) {
    if (!text.empty()) text += ' ';
    uint64_t word = random() % (1U << random() % 17);
    do {
      text += kSyllables[word % kSyllables.size()];
      word /= kSyllables.size();
    } while (word > 0);
  }
  return text;
}

class StagingBench {
 public:
  explicit StagingBench(int rows) : rows_(rows) {
    std::ofstream data(folder_.At("data/Comment.csv"));
    data << "Id,Feed_Item__c,Author__c,Body__c,CreatedDate\n";
    std::mt19937 random(1);  // the same rows everywhere
    for (int i = 0; i < rows; ++i) {
      data << "a1E" << 1'000'000'000 + i << ",a1C" << random() % 100'000 << ",a05"
           << random() % 2'000 << ",\"" << Sentence(random) << "\",2024-01-" << 10 + random() % 20
           << 'T' << 10 + random() % 14 << ':' << 10 + random() % 50 << ':' << 10 + random() % 50
           << ".000Z\n";
    }
    folder_.Write("read.sql",
                  "SELECT Author__c AS id, count(*) AS comments, max(length(Body__c)) AS longest\n"
                  "FROM Comment GROUP BY Author__c");
    folder_.Write("load.sql",
                  "SELECT Id AS id, Feed_Item__c AS post, Author__c AS author, Body__c AS body,\n"
                  "       CreatedDate::TIMESTAMPTZ AS created FROM Comment");
  }

  void Run(const std::string& format, StagingCosts& costs) {
    auto start = Clock::now();
    const Json staged = Call(*copy_, "muster:copy",
                             Json{{"source", "csv:" + folder_.path() + "/data"},
                                  {"object", "Comment"},
                                  {"staging", folder_.path() + "/" + format},
                                  {"format", format}});
    costs.copy_s.push_back(SecondsSince(start));
    costs.bytes = staged["bytes"];
    const std::string target = folder_.At(format + std::to_string(++runs_) + ".db");
    const auto db =
        sql::SqliteDb::Open(target, sql::SqliteDb::Mode::kCreate, std::chrono::milliseconds(5'000));
    if (!db || !(*db)->Execute("CREATE TABLE authors (id TEXT PRIMARY KEY, comments INT, longest "
                               "INT); CREATE TABLE comments (id TEXT PRIMARY KEY, post TEXT, "
                               "author TEXT, body TEXT, created TEXT)")) {
      throw std::runtime_error("the target cannot be made");
    }
    start = Clock::now();
    Transform("read.sql", "authors", format, target);
    costs.read_s.push_back(SecondsSince(start));
    start = Clock::now();
    Transform("load.sql", "comments", format, target);
    costs.load_s.push_back(SecondsSince(start));
  }

 private:
  static double SecondsSince(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  void Transform(const std::string& script, const std::string& table, const std::string& format,
                 const std::string& target) {
    const Json result = Call(*transform_, "muster:transform",
                             Json{{"script", script},
                                  {"plan_folder", folder_.path()},
                                  {"staging", folder_.path() + "/" + format},
                                  {"target", "sqlite:" + target},
                                  {"arguments", {{"TARGET_TABLE", table}}}});
    if (table == "comments" && result["loaded"] != rows_) {
      throw std::runtime_error("rows got lost: " + ToJsonText(result));
    }
  }

  Json Call(states::TaskExecutor& executor, const std::string& resource, const Json& input) {
    const states::TaskOutcome outcome = executor.Start({.resource = resource,
                                                        .input = input,
                                                        .credentials = nullptr,
                                                        .token = std::to_string(++calls_),
                                                        .execution = "bench",
                                                        .state = "S"},
                                                       context_);
    if (const auto* failure = std::get_if<states::TaskFailure>(&outcome)) {
      throw std::runtime_error(failure->error + ": " + failure->cause);
    }
    return std::get<states::TaskSuccess>(outcome).output;
  }

  const int rows_;
  testing::TemporaryFolder folder_;
  std::unique_ptr<states::TaskExecutor> copy_ = task::MakeCopyExecutor();
  std::unique_ptr<states::TaskExecutor> transform_ = task::MakeTransformExecutor();
  task::TestContext context_;
  int calls_ = 0;
  int runs_ = 0;
};

void Compare(const std::string& what, double jsonl, double parquet) {
  std::cout << std::left << std::setw(28) << what << std::right << std::fixed
            << std::setprecision(3) << std::setw(14) << jsonl << std::setw(14) << parquet
            << std::setw(9) << std::setprecision(2) << parquet / jsonl << std::endl;
}

int Main(int argc, char** argv) {
  int rows = 500'000;
  int repeats = 3;
  bool smoke = false;
  Arguments arguments("JSON lines beside Parquet as staging formats");
  arguments.AddNumber("--rows", rows, "how many rows are staged", 1, 10'000'000);
  arguments.AddNumber("--repeats", repeats, "how often; the medians count", 1, 100);
  arguments.AddFlag("--smoke", smoke, "few rows, once: says nothing about speed");
  arguments.Parse(argc, argv);
  if (smoke) {
    rows = 2'000;
    repeats = 1;
  }
  StagingBench bench(rows);
  StagingCosts jsonl;
  StagingCosts parquet;
  for (int i = 0; i < repeats; ++i) {
    bench.Run("jsonl", jsonl);
    bench.Run("parquet", parquet);
  }
  std::cout << rows << " rows" << std::setw(35) << "jsonl" << std::setw(14) << "parquet"
            << std::setw(9) << "ratio" << std::endl;
  Compare("MB staged", jsonl.bytes / 1e6, parquet.bytes / 1e6);
  Compare("s to stage", MedianOf(jsonl.copy_s), MedianOf(parquet.copy_s));
  Compare("s to aggregate by SQL", MedianOf(jsonl.read_s), MedianOf(parquet.read_s));
  Compare("s to transform and load", MedianOf(jsonl.load_s), MedianOf(parquet.load_s));
  return 0;
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  try {
    return muster::bench::Main(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "staging_bench: " << error.what() << '\n';
    return 1;
  }
}
