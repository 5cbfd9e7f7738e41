// Exit codes of commands that end early, or whose own part went well.

#include <gtest/gtest.h>

#include <fstream>

#include "cli/program.h"

namespace muster::testing {
namespace {

class ExitCodes : public ::testing::Test {
 protected:
  Outcome Shell(const std::string& command) {
    return RunCommand({"sh", "-c",
                       "muster=" MUSTER_PROGRAM "; export MUSTER_STORE=sqlite:store.db\n"
                       "await_output() { what=$1; shift; n=0\n"
                       "  until \"$@\" 2> /dev/null | grep -q \"$what\"; do\n"
                       "  n=$((n + 1)); [ $n -lt 300 ] || exit 99; sleep 0.1; done; }\n" +
                           command},
                      folder_.path());
  }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }

  TempFolder folder_;
};

constexpr char kWait[] = R"({"StartAt": "Rest", "States": {
  "Rest": {"Type": "Wait", "Seconds": 3600, "Next": "End"}, "End": {"Type": "Succeed"}}})";
constexpr char kFail[] = R"({"StartAt": "No", "States": {"No": {"Type": "Fail", "Error": "E"}}})";

// The first worker is stopped after the documents that fail.
TEST_F(ExitCodes, WorkerThatEndsARunCountsWhatOthersCouldNotMigrate) {
  Write("odd.yaml",
        "- javascript: \"(doc) => { if (doc.id === '1') throw new Error('no'); return doc; }\"\n");
  const Outcome both = Shell(R"(mkdir in
for i in 1 2; do echo "{\"id\":\"$i\"}"; done > in/a.jsonl
for i in $(seq 10 400); do echo "{\"id\":\"$i\"}"; done > in/b.jsonl
work="$muster worker --run r jsonl:in?id=id sqlite:out.db --transforms odd.yaml --max-failures 100%"
$work --docs-per-second 20 --progress=plain > first 2> err & worker=$!
await_output 'a__.*completed' cat err
kill $worker; wait $worker; echo $?
$work --progress=none > out; echo $?
grep -c '1 document could not be migrated' out
$work --progress=none > out; echo $?)");
  EXPECT_EQ(both.out, "130\n4\n1\n3\n") << both.err;
}

TEST_F(ExitCodes, WorkOnOneExecutionHasItsOutcome) {
  Write("wait.asl.json", kWait);
  Write("fail.asl.json", kFail);
  const Outcome stopped = Shell(R"($muster states start wait.asl.json --name w > out
$muster states work w 2> err & worker=$!
await_output WaitStateEntered $muster states history w
kill $worker; wait $worker; code=$?
grep -o 'stopped before.*' err; exit $code)");
  EXPECT_EQ(stopped.exit_code, 130) << stopped.err;
  EXPECT_EQ(stopped.out, "stopped before execution 'w' ended\n");
  const Outcome failed = Shell(
      "$muster states start fail.asl.json --name f && "
      "$muster states work f");
  EXPECT_EQ(failed.exit_code, 1) << failed.err;
  EXPECT_EQ(Shell("$muster states work nowhere").exit_code, 1);
  // Without a name it has no end of its own.
  const Outcome all = Shell(R"($muster states start fail.asl.json --name g > out
$muster states work 2> err & worker=$!
await_output FAILED $muster states show g
kill $worker; wait $worker)");
  EXPECT_EQ(all.exit_code, 0) << all.err;
}

TEST_F(ExitCodes, InputThatCannotBeReadToItsEndIsAnError) {
  const Outcome append = Shell("$muster events append sqlite:log.db < .");
  EXPECT_EQ(NotAClearError(append, 5), "") << append.err;
  const Outcome test = Shell("$muster states test .");
  EXPECT_EQ(test.exit_code, 2) << test.out;
  EXPECT_NE(test.err.find("cannot be read"), std::string::npos) << test.err;
}

}  // namespace
}  // namespace muster::testing
