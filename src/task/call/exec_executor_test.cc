#include "task/call/exec_executor.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "core/json.h"
#include "support/await.h"
#include "support/processes.h"
#include "support/temporary_folder.h"
#include "task/test_context.h"

namespace muster::task {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

class ExecExecutorTest : public ::testing::Test {
 protected:
  states::TaskOutcome Start(const Json& input, std::optional<milliseconds> timeout = {}) {
    return executor_->Start({.resource = "muster:exec",
                             .input = input,
                             .credentials = {},
                             .token = "the token",
                             .execution = "run",
                             .state = "S",
                             .timeout = timeout,
                             .references = references_},
                            context_);
  }
  states::TaskOutcome Shell(const std::string& script, std::optional<milliseconds> timeout = {}) {
    return Start({{"Command", {"sh", "-c", script}}, {"Directory", folder_}}, timeout);
  }
  static Json Output(const states::TaskOutcome& outcome) {
    if (const auto* failure = std::get_if<states::TaskFailure>(&outcome)) {
      ADD_FAILURE() << failure->error << ": " << failure->cause;
    }
    const auto* success = std::get_if<states::TaskSuccess>(&outcome);
    return success == nullptr ? Json("no success") : success->output;
  }
  static states::TaskFailure Failure(const states::TaskOutcome& outcome) {
    const auto* failure = std::get_if<states::TaskFailure>(&outcome);
    EXPECT_NE(failure, nullptr);
    return failure == nullptr ? states::TaskFailure{} : *failure;
  }

  const testing::TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
  std::unique_ptr<states::TaskExecutor> executor_ = MakeExecExecutor();
  TestContext context_;
  std::map<std::string, std::vector<std::string>> references_;  // those of the definition
};

TEST_F(ExecExecutorTest, JsonGoesInAndComesOut) {
  EXPECT_EQ(Output(Start({{"Command", {"cat"}}, {"Input", {{"a", {1, "ä"}}}}})),
            Json::parse(R"({"a":[1,"ä"]})"));
  EXPECT_EQ(Output(Shell("true")), Json());
}

TEST_F(ExecExecutorTest, AProgramHasItsArgumentsEnvironmentAndFolder) {
  setenv("MUSTER_EXEC_TEST_SECRET", "hidden", 1);
  references_ = {{"/Environment/MODE", {"is ${env:MUSTER_EXEC_TEST_SECRET}"}}};
  const Json output = Output(Start(
      {{"Command",
        {"sh", "-c", R"(printf '["%s","%s","%s","%s"]' "$1" "$MODE" "$PWD" "$MUSTER_TASK_TOKEN")",
         "sh", "an argument"}},
       {"Environment", {{"MODE", "is ${env:MUSTER_EXEC_TEST_SECRET}"}}},
       {"Directory", folder_}}));
  EXPECT_EQ(output, Json({"an argument", "is hidden", std::filesystem::canonical(folder_).string(),
                          "the token"}));
}

TEST_F(ExecExecutorTest, AnExitCodeIsAFailureWithTheEndOfItsLog) {
  const auto failure = Failure(Shell("echo first >&2; echo why >&2; exit 3"));
  EXPECT_EQ(failure.error, "Exec.ExitCode.3");
  EXPECT_EQ(failure.cause, "first\nwhy\n");
  EXPECT_EQ(Failure(Shell("kill -9 $$")).error, "Exec.Signal.9");
}

TEST_F(ExecExecutorTest, AProgramMayNameItsError) {
  const auto failure = Failure(Shell(R"(echo '{"Error":"Load.BadRow","Cause":"row 7"}'; exit 1)"));
  EXPECT_EQ(failure.error, "Load.BadRow");
  EXPECT_EQ(failure.cause, "row 7");
}

TEST_F(ExecExecutorTest, OutputThatIsNotJsonIsAFailure) {
  EXPECT_EQ(Failure(Shell("echo hello")).error, "Exec.BadOutput");
}

TEST_F(ExecExecutorTest, TooMuchOutputEndsTheProgram) {
  EXPECT_EQ(Failure(Shell("while :; do echo '\"xxxxxxxxxxxxxxxxxxxxxxxx\"'; done")).error,
            "States.DataLimitExceeded");
}

TEST_F(ExecExecutorTest, ManyLogLinesAreHandled) {
  EXPECT_EQ(Output(Shell("i=0; while [ $i -lt 3000 ]; do echo 'a line of the log that is long' "
                         ">&2; i=$((i+1)); done; echo 1")),
            Json(1));
}

TEST_F(ExecExecutorTest, UnreadInputIsIgnored) {
  EXPECT_EQ(Output(Start({{"Command", {"echo", "1"}}, {"Input", std::string(1 << 20, 'x')}})),
            Json(1));
}

TEST_F(ExecExecutorTest, ATimeOutEndsTheWholeGroup) {
  const auto start = steady_clock::now();
  const auto failure =
      Failure(Shell("sleep 1000 & echo $! > child; sleep 1000", milliseconds(300)));
  EXPECT_EQ(failure.error, "States.Timeout");
  EXPECT_LT(steady_clock::now() - start, milliseconds(20'000));
  const std::vector<pid_t> child = testing::ReadPids(folder_ + "/child");
  ASSERT_EQ(child.size(), 1u);
  // Its new parent may not have reaped it yet.
  EXPECT_TRUE(testing::Await([&] { return testing::IsDead(child.front()); }));
}

TEST_F(ExecExecutorTest, AProgramThatCatchesTheSignalHasStillTimedOut) {
  const auto failure =
      Failure(Shell("trap 'exit 7' TERM; while :; do sleep 0.1; done", milliseconds(300)));
  EXPECT_EQ(failure.error, "States.Timeout");
}

TEST_F(ExecExecutorTest, AStopEndsTheProgram) {
  std::jthread stopper([&] {
    EXPECT_TRUE(testing::Await([&] { return temporary_.Has("started"); }));
    context_.stopping.request_stop();
  });
  EXPECT_EQ(Failure(Shell("touch started; sleep 1000")).error, "Exec.Signal.15");
}

TEST_F(ExecExecutorTest, ProgramThatCannotBeStartedIsReported) {
  const auto failure = Failure(Start({{"Command", {"/no/such/program"}}}));
  EXPECT_EQ(failure.error, "Exec.NotStarted");
  EXPECT_EQ(failure.cause, "cannot start /no/such/program: No such file or directory");
  EXPECT_EQ(Failure(Start({{"Command", {"true"}}, {"Directory", "/no/such/folder"}})).error,
            "Exec.NotStarted");
}

TEST_F(ExecExecutorTest, WrongParametersAreRefused) {
  references_ = {{"/Environment/A", {"${env:MUSTER_NO_SUCH_VARIABLE}"}}};
  for (const char* input :
       {"[]", "{}", R"({"Command":"ls"})", R"({"Command":[]})", R"({"Command":[1]})",
        R"({"Command":["ls"],"Environment":{"A":1}})", R"({"Command":["ls"],"Folder":"x"})",
        R"({"Command":["ls"],"Environment":{"A":"${env:MUSTER_NO_SUCH_VARIABLE}"}})"}) {
    EXPECT_EQ(Failure(Start(Json::parse(input))).error, "States.Runtime") << input;
  }
}

}  // namespace
}  // namespace muster::task
