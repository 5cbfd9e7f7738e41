// A copy that is interrupted in the middle, or shared: every row is staged once, and committed rows
// are not read again. Rows that must not be read again are damaged in the source.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "core/json.h"
#include "core/sha256.h"
#include "muster/work.h"
#include "pipeline/pipeline.h"
#include "support/temporary_folder.h"
#include "task/data/copy_executor.h"
#include "task/data/copy_run.h"
#include "task/test_context.h"

namespace muster::task {
namespace {

namespace fs = std::filesystem;

constexpr int kRows = 20'000;
constexpr int64_t kMiddle = 8'000;

class CopyContext final : public TestContext {
 public:
  void Progress(int64_t rows) override {
    if (first_rows < 0) first_rows = rows;
    if (on_progress) on_progress(rows);
  }

  std::function<void(int64_t)> on_progress;
  std::atomic<int64_t> first_rows = -1;
};

class CopyResumeTest : public ::testing::Test {
 protected:
  CopyResumeTest() { WriteRows({}); }

  static std::string RowOf(int i) { return "u" + std::to_string(100'000 + i); }

  // All rows have the same length; `broken` ones have only one field.
  void WriteRows(const std::function<bool(int)>& broken) {
    std::string rows = "Id,Name\n";
    for (int i = 0; i < kRows; ++i) {
      rows += RowOf(i) + (broken && broken(i) ? ";" : ",") + "Somebody\n";
    }
    folder_.Write("data/User.csv", rows);
  }

  // Damages the first rows, except for the beginning that identifies the file.
  void DamageRowsUpTo(int end) {
    WriteRows([end](int i) { return i > 500 && i < end; });
  }

  static std::string ExpectedRows(const std::function<bool(int)>& broken = {}) {
    std::string rows;
    for (int i = 0; i < kRows; ++i) {
      if (broken && broken(i)) continue;
      rows += "{\"Id\":\"" + RowOf(i) + "\",\"Name\":\"Somebody\"}\n";
    }
    return rows;
  }

  states::TaskCall Call(const std::string& token = "m:0:1:0", const std::string& params = "") {
    return {.resource = "muster:copy",
            .input = Json{{"source", "csv:" + folder_.path() + "/data" + params},
                          {"object", "User"},
                          {"staging", folder_.path() + "/staging"},
                          {"tenant", "acme"},
                          {"migration", "m-1"}},
            .credentials = nullptr,
            .token = token,
            .execution = "m",
            .state = "Copy"};
  }

  std::unique_ptr<states::TaskExecutor> Executor() const {
    work::WorkTerms terms = CopyTerms();
    terms.checkpoint_interval = milliseconds(0);
    return MakeCopyExecutor(RealEnv(), StoreUrl(), terms);
  }

  std::string StoreUrl() const { return "sqlite:" + folder_.path() + "/store.db"; }

  Json Succeed(const states::TaskCall& call, CopyContext& context) {
    const states::TaskOutcome outcome = Executor()->Start(call, context);
    if (const auto* failure = std::get_if<states::TaskFailure>(&outcome)) {
      ADD_FAILURE() << failure->error << ": " << failure->cause;
      return nullptr;
    }
    return std::get<states::TaskSuccess>(outcome).output;
  }

  // Makes the call in a process that is killed when about `rows` are copied.
  void KillAfter(int64_t rows, const states::TaskCall& call) {
    int signal_pipe[2];
    ASSERT_EQ(pipe(signal_pipe), 0);
    const pid_t child = fork();
    if (child == 0) {
      CopyContext context;
      context.on_progress = [&](int64_t copied) {
        if (copied < rows) return;
        static_cast<void>(!write(signal_pipe[1], "x", 1));
        for (;;) pause();
      };
      static_cast<void>(Executor()->Start(call, context));
      _exit(1);
    }
    close(signal_pipe[1]);
    char byte = 0;
    EXPECT_EQ(read(signal_pipe[0], &byte, 1), 1);
    close(signal_pipe[0]);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }

  // Makes the call and stops it when about `rows` are copied.
  void StopAfter(int64_t rows, const states::TaskCall& call) {
    CopyContext context;
    context.on_progress = [&](int64_t copied) {
      if (copied >= rows) context.stopping.request_stop();
    };
    const states::TaskOutcome outcome = Executor()->Start(call, context);
    const auto* failure = std::get_if<states::TaskFailure>(&outcome);
    ASSERT_NE(failure, nullptr);
    EXPECT_EQ(failure->error, "Copy.Cancelled");
  }

  std::string Staged(const std::string& name) const {
    std::ifstream file(folder_.path() + "/staging/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  void ExpectNothingLeft() {
    const auto store = store::OpenStore(StoreUrl(), RealEnv());
    EXPECT_TRUE(work::ListRuns(**store)->empty());
    for (const char* kind : {"work", "run_page", "run_end", "prepare", "target"}) {
      EXPECT_TRUE((*store)->Scan(kind, "", "", 10)->empty()) << kind;
    }
    for (const auto& entry : fs::directory_iterator(folder_.path() + "/staging")) {
      const std::string name = entry.path().filename().string();
      EXPECT_TRUE(name == "unreadable" ||
                  (name.starts_with("User.") && !name.ends_with(".partial")))
          << name;
    }
  }

  testing::TemporaryFolder folder_;
};

TEST_F(CopyResumeTest, KilledCopyContinuesWhereItStopped) {
  for (const char* format : {"jsonl", "parquet"}) {
    states::TaskCall call = Call(std::string("m:0:1:0") + format);
    call.input["format"] = format;
    WriteRows({});
    KillAfter(kMiddle, call);
    EXPECT_FALSE(fs::exists(folder_.path() + "/staging/User.manifest.json"));
    DamageRowsUpTo(kMiddle - 2'000);
    folder_.Write("staging/User.0123.jsonl.partial", "{\"I");
    CopyContext context;
    const Json result = Succeed(call, context);
    EXPECT_EQ(result["rows"], kRows);
    EXPECT_EQ(result["failed"], 0) << "rows that were safe were read again";
    EXPECT_GE(context.first_rows, kMiddle - 2'000);
    const Json manifest = Json::parse(Staged("User.manifest.json"));
    EXPECT_EQ(manifest["columns"], (Json{{"Id", "VARCHAR"}, {"Name", "VARCHAR"}}));
    EXPECT_EQ(manifest["sha256"], Sha256Hex(Staged(std::string("User.") + format)));
    ExpectNothingLeft();
  }
  EXPECT_EQ(Staged("User.jsonl"), ExpectedRows());
}

TEST_F(CopyResumeTest, AKillBetweenItemsLosesNothing) {
  const states::TaskCall call = Call("m:0:1:0", "?partition_bytes=50000");
  for (const int64_t rows : {3'000, 9'000, 15'000}) KillAfter(rows, call);
  CopyContext context;
  EXPECT_EQ(Succeed(call, context)["rows"], kRows);
  EXPECT_GE(context.first_rows, 13'000);
  EXPECT_EQ(Staged("User.jsonl"), ExpectedRows());
  ExpectNothingLeft();
}

TEST_F(CopyResumeTest, UnreadableRowsAreCountedOnce) {
  const auto broken = [](int i) { return i % 1'000 == 17; };
  WriteRows(broken);
  KillAfter(kMiddle, Call());
  StopAfter(kMiddle + 4'000, Call());
  CopyContext context;
  const Json result = Succeed(Call(), context);
  EXPECT_EQ(result["rows"], kRows - 20);
  EXPECT_EQ(result["failed"], 20);
  EXPECT_EQ(Staged("User.jsonl"), ExpectedRows(broken));
  const std::string letters = Staged("unreadable/User.jsonl");
  EXPECT_EQ(std::count(letters.begin(), letters.end(), '\n'), 20);
  ExpectNothingLeft();
}

// The second half comes from a following partition, as for an index that is being written to.
class ChangingSource final : public pipeline::SourceWrapper {
 public:
  using SourceWrapper::SourceWrapper;
  Result<std::vector<pipeline::Partition>> Partitions(const std::string& collection) override {
    MUSTER_ASSIGN(auto partitions, inner().Partitions(collection));
    for (pipeline::Partition& one : partitions) one.shard = 0;
    partitions.back().follows = true;
    return partitions;
  }
};

TEST_F(CopyResumeTest, DocumentsThatChangeWhileTheyAreCopiedAreAConflict) {
  pipeline::MemorySource documents(10);
  for (int i = 0; i < 20; ++i) documents.Add("User", {std::to_string(i), "{}"});
  ChangingSource source(documents);
  const auto store = store::OpenStore(StoreUrl(), RealEnv()).value();
  CopyRun run(*store, RealEnv(),
              {.object = "User",
               .call = "m:0:1",
               .source = "memory",
               .identity = "memory",
               .place = "User",
               .run_name = "m-1",
               .folder = folder_.path() + "/copies"},
              CopyTerms());
  ASSERT_TRUE(run.Begin());
  ASSERT_TRUE(run.Drive(source, source.Collections()->front(), [](int64_t) {}, {}));
  EXPECT_EQ(run.Rows().error().code, Code::kConflict);
}

TEST_F(CopyResumeTest, NextTryOfATaskContinues) {
  StopAfter(kMiddle, Call("m:0:1:0"));
  DamageRowsUpTo(kMiddle - 2'000);
  CopyContext context;
  EXPECT_EQ(Succeed(Call("m:0:1:1"), context)["failed"], 0);
  EXPECT_EQ(Staged("User.jsonl"), ExpectedRows());
  EXPECT_EQ(Json::parse(Staged("User.manifest.json"))["token"], "m:0:1:1");
  ExpectNothingLeft();
}

TEST_F(CopyResumeTest, AnotherCallStartsOverAndRemovesLeftovers) {
  StopAfter(kMiddle, Call("m:0:1:0"));
  const auto broken = [](int i) { return i == 600; };
  WriteRows(broken);
  CopyContext context;
  EXPECT_EQ(Succeed(Call("m:0:2:0"), context)["failed"], 1) << "all rows are read again";
  EXPECT_EQ(Staged("User.jsonl"), ExpectedRows(broken));
  ExpectNothingLeft();
}

TEST_F(CopyResumeTest, LostPiecesAreCopiedAgain) {
  for (const char* lost : {"/staging/.User.copy", "/store.db"}) {
    StopAfter(kMiddle, Call());
    fs::remove_all(folder_.path() + lost);
    CopyContext context;
    EXPECT_EQ(Succeed(Call(), context)["rows"], kRows);
    EXPECT_EQ(Staged("User.jsonl"), ExpectedRows());
    ExpectNothingLeft();
    fs::remove(folder_.path() + "/staging/User.manifest.json");
  }
}

TEST_F(CopyResumeTest, ExecutorsThatMakeTheSameCallShareIt) {
  const states::TaskCall call = Call("m:0:1:0", "?partition_bytes=20000");
  std::array<CopyContext, 2> contexts;
  std::array<Json, 2> results;
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < 2; ++i) {
      threads.emplace_back([&, i] { results[i] = Succeed(call, contexts[i]); });
    }
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0]["rows"], kRows);
  EXPECT_EQ(Staged("User.jsonl"), ExpectedRows());
  ExpectNothingLeft();
}

TEST_F(CopyResumeTest, AFailureThatWouldRepeatLeavesNothing) {
  StopAfter(kMiddle, Call());
  // Another file, to which the copied part of the first does not belong.
  folder_.Write("data/User.csv", "Id,Name\nx,y\n");
  const states::TaskOutcome outcome = [&] {
    CopyContext context;
    return Executor()->Start(Call(), context);
  }();
  const auto* failure = std::get_if<states::TaskFailure>(&outcome);
  ASSERT_NE(failure, nullptr);
  EXPECT_EQ(failure->error, "Copy.Corrupt") << failure->cause;
  ExpectNothingLeft();
  CopyContext context;
  EXPECT_EQ(Succeed(Call(), context)["rows"], 1);
}

}  // namespace
}  // namespace muster::task
