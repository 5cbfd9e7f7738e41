// Help, version and usage errors, common to all commands.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <filesystem>

#include "cli/program.h"
#include "core/json.h"
#include "support/temporary_folder.h"

namespace muster::testing {
namespace {

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Usage, HelpGoesToStdoutAndNamesCommandsAndExitCodes) {
  for (const char* flag : {"--help", "-h"}) {
    Outcome outcome = RunMuster({flag});
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.err, "");
    for (const char* part :
         {"Usage: muster COMMAND", "doctor", "completions", "--store URL", "MUSTER_STORE",
          "NO_COLOR", "Exit codes:", "75", "130", "docs/guide"}) {
      EXPECT_TRUE(Has(outcome.out, part)) << part << "\nin\n" << outcome.out;
    }
  }
}

TEST(Usage, EveryCommandHasHelpWithAnExample) {
  for (const char* command :
       {"completions", "demo", "doctor", "plan", "sim", "snapshot", "states"}) {
    Outcome outcome = RunMuster({command, "--help"});
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_TRUE(Has(outcome.out, std::string("Usage: muster ") + command)) << outcome.out;
    EXPECT_TRUE(Has(outcome.out, "Examples:")) << outcome.out;
  }
}

TEST(Usage, NoCommandShowsTheHelpOnStderr) {
  Outcome outcome = RunMuster({});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(Has(outcome.err, "Usage: muster COMMAND"));
}

TEST(Usage, VersionIsOneLine) {
  Outcome outcome = RunMuster({"--version"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out.substr(0, 7), "muster ");
  EXPECT_EQ(outcome.out.find('\n'), outcome.out.size() - 1);
}

// A sanitizer adds to the start-up time.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(Usage, VersionAnswersWithin20Milliseconds) {
  // Processor time, and the best of several runs, since the machine may be busy.
  auto used_by_children = [] {
    rusage usage{};
    getrusage(RUSAGE_CHILDREN, &usage);
    return std::chrono::seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           std::chrono::microseconds(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  };
  auto best = std::chrono::microseconds::max();
  for (int i = 0; i < 20; ++i) {
    const auto before = used_by_children();
    RunMuster({"--version"});
    best = std::min(best, used_by_children() - before);
  }
  EXPECT_LT(best, std::chrono::milliseconds(20));
}
#endif

TEST(Usage, WrongUsageIsAClearErrorWithExitCode2) {
  const std::vector<std::vector<std::string>> wrong = {{"docter"},
                                                       {"doctor", "--stroe", "memory:"},
                                                       {"doctor", "what"},
                                                       {"--jsno"},
                                                       {"doctor", "--store"},
                                                       {"--progress=fast", "doctor"},
                                                       {"completions"},
                                                       {"completions", "csh"},
                                                       {"snapshot", "list", "repo", "--shard=0"},
                                                       {"--color=pink", "doctor"},
                                                       {"--log-level=all", "doctor"}};
  for (const auto& arguments : wrong) {
    Outcome outcome = RunMuster(arguments);
    EXPECT_EQ(NotAClearError(outcome, 2), "") << arguments[0];
    EXPECT_EQ(outcome.out, "");
  }
}

// An ignored option would have limited the effect.
TEST(Usage, OptionOfAnotherActionIsRefused) {
  const std::vector<std::vector<std::string>> wrong = {
      {"replica", "reset", "set.yaml", "orders", "--version=2"},
      {"replica", "pause", "set.yaml", "orders", "--stream=order-1"},
      {"replica", "status", "set.yaml", "orders"},
      {"replica", "run", "set.yaml", "orders"},
      {"replica", "run", "set.yaml", "--timeout=10"},
      {"events", "append", "memory:", "--limit=3"},
      {"states", "check", "order.asl.json", "--name=x"},
      {"states", "start", "order.asl.json", "--virtual-time"}};
  for (const auto& arguments : wrong) {
    Outcome outcome = RunMuster(arguments);
    EXPECT_EQ(NotAClearError(outcome, 2), "") << arguments[1];
    EXPECT_TRUE(Has(outcome.err, " is not for " + arguments[1])) << outcome.err;
  }
}

// Invalid input: 2. Bad data: 1.
TEST(Usage, InvalidFileEndsWith2ForEveryCommand) {
  const TemporaryFolder folder;
  const std::string machine = folder.Write("m.asl.json", R"({"StartAt": "A", "States": {}})");
  const std::string plan = folder.Write("plan.yaml", "ranks: 7\n");
  const std::string nothing = folder.Write("empty", "");
  EXPECT_EQ(RunMuster({"states", "check", machine}).exit_code, 2);
  EXPECT_EQ(RunMuster({"states", "run", machine}).exit_code, 2);
  EXPECT_EQ(RunMuster({"plan", "check", plan}).exit_code, 2);
  for (const std::string& file : {nothing, folder.path() + "/missing"}) {
    const std::vector<std::vector<std::string>> wrong = {
        {"states", "check", file}, {"states", "run", file},          {"states", "test", file},
        {"plan", "check", file},   {"plan", "explain", file},        {"run", file},
        {"replica", "run", file},  {"migrate", "csv:" + file, "x:y"}};
    for (const auto& arguments : wrong) {
      const Outcome outcome = RunMuster(arguments, folder.path());
      EXPECT_EQ(outcome.exit_code, 2) << arguments[0] << " " << arguments[1] << outcome.err;
    }
  }
  const std::string cases = folder.Write("cases.jsonl", "{\"name\": \"no machine\"}\n");
  EXPECT_EQ(RunMuster({"states", "test", cases}).exit_code, 1);
}

TEST(Usage, InvalidNumberIsRefusedClearly) {
  const std::vector<std::vector<std::string>> wrong = {
      {"migrate", "csv:a", "jsonl:b", "--docs-per-second", "-1"},
      {"migrate", "csv:a", "jsonl:b", "--docs-per-second", "many"},
      {"migrate", "csv:a", "jsonl:b", "--docs-per-second", "1e400"},
      {"migrate", "csv:a", "jsonl:b", "--mb-per-second", "inf"},
      {"migrate", "csv:a", "jsonl:b", "--max-bytes-per-batch", "0"},
      {"worker", "csv:a", "jsonl:b", "--lease", "-1"},
      {"states", "list", "--limit", "0"},
      {"run", "plan.yaml", "--threads", "1000"}};
  for (const auto& arguments : wrong) {
    const Outcome outcome = RunMuster(arguments);
    EXPECT_EQ(NotAClearError(outcome, 2), "") << arguments[0];
    EXPECT_LT(outcome.err.size(), 200U) << outcome.err;
  }
}

// Without its limits a migration could overload what it reads or writes.
TEST(Usage, InvalidLimitsAreRefusedAtTheStart) {
  const TempFolder folder;
  folder.Write("people.jsonl", "{\"n\":1}\n");
  for (const std::string limits :
       {"docs_per_second: many\n", "docs_per_second: 1e400\n", "docs_per_minute: 5\n", "[5]\n"}) {
    const std::string file = folder.Write("limits.yaml", limits);
    for (const char* command : {"migrate", "worker"}) {
      const Outcome outcome = RunMuster({command, "jsonl:people.jsonl", "jsonl:out.jsonl",
                                         "--limits", file, "--store=sqlite:store.db"},
                                        folder.path());
      EXPECT_EQ(outcome.exit_code, 2) << command << " " << limits << outcome.err;
      EXPECT_TRUE(Has(outcome.err, "muster: " + file + ":1:")) << outcome.err;
      EXPECT_FALSE(std::filesystem::exists(folder / "out.jsonl")) << command << " " << limits;
    }
  }
}

TEST(Usage, SuggestsSimilarWords) {
  EXPECT_TRUE(Has(RunMuster({"docter"}).err, "did you mean 'doctor'?"));
  EXPECT_TRUE(Has(RunMuster({"doctor", "--stroe=x"}).err, "did you mean '--store'?"));
}

TEST(Usage, ErrorsAreJsonOnRequest) {
  for (const auto& arguments : {std::vector<std::string>{"--json", "docter"},
                                {"doctor", "--json", "--store", "nonsense"}}) {
    Outcome outcome = RunMuster(arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    auto json = Json::parse(outcome.err, nullptr, false);
    ASSERT_TRUE(json.is_object()) << outcome.err;
    EXPECT_EQ(json["error"]["code"], "invalid");
    EXPECT_FALSE(json["error"]["message"].get<std::string>().empty());
    EXPECT_FALSE(json["error"]["hint"].get<std::string>().empty());
  }
}

TEST(Usage, StoreIsSetByOptionOrVariable) {
  EXPECT_TRUE(Has(RunMuster({"doctor"}, ".", {{"MUSTER_STORE", "memory:"}}).out, "memory store"));
  Outcome both = RunMuster({"doctor", "--store", "memory:"}, ".", {{"MUSTER_STORE", "nonsense"}});
  EXPECT_EQ(both.exit_code, 0) << both.err;
  EXPECT_EQ(RunMuster({"--store", "memory:", "doctor"}).exit_code, 0);
}

TEST(Usage, ColourOnlyOnTerminalsOrOnRequest) {
  EXPECT_FALSE(Has(RunMuster({"doctor", "--store=memory:"}).out, "\x1b["));
  EXPECT_TRUE(Has(RunMuster({"doctor", "--store=memory:", "--color=always"}).out, "\x1b["));
}

TEST(Usage, UnwritableOutputIsAFailure) {
  Outcome outcome = RunCommand({"sh", "-c", std::string(MUSTER_PROGRAM) + " --help >/dev/full"});
  EXPECT_EQ(NotAClearError(outcome, 75), "");
}

}  // namespace
}  // namespace muster::testing
