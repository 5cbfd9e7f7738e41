// `muster replica`, called by a script.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/program.h"
#include "core/json.h"

namespace muster::testing {
namespace {

constexpr char kSet[] = R"(
set: notes
store: sqlite:store.db
events: sqlite:log.db
read_model: sqlite:read.db
projections:
  notes:
    tables: [notes]
    setup: CREATE TABLE IF NOT EXISTS {notes} (position INTEGER PRIMARY KEY, stream TEXT)
    on:
      T: INSERT INTO {notes} VALUES (:position, :stream)
)";

class ReplicaCommand : public ::testing::Test {
 protected:
  ReplicaCommand() { std::ofstream(folder_ / "set.yaml") << kSet; }

  Outcome Shell(const std::string& command) {
    return RunCommand({"sh", "-c", command}, folder_.path());
  }
  void Append(int events) {
    std::ofstream lines(folder_ / "lines");
    for (int i = 0; i < events; ++i)
      lines << R"({"stream":"s)" << i % 5
            << R"(","type":"T"})"
               "\n";
    lines.close();
    EXPECT_EQ(Shell(MUSTER_PROGRAM " events append sqlite:log.db < lines").exit_code, 0);
  }
  Outcome Replica(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "replica");
    return RunMuster(arguments, folder_.path());
  }
  Outcome CatchUp() { return Replica({"run", "set.yaml", "--until-caught-up", "--progress=none"}); }

  TempFolder folder_;
};

TEST_F(ReplicaCommand, LogThatEndsBeforeACheckpointIsNotCaughtUp) {
  Append(10);
  std::filesystem::copy(folder_ / "log.db", folder_ / "backup.db");
  Append(10);
  ASSERT_EQ(CatchUp().exit_code, 0);
  ASSERT_EQ(Shell("rm log.db* && cp backup.db log.db").exit_code, 0);
  Append(5);  // at positions that were handled before the log was restored
  const Outcome run = CatchUp();
  EXPECT_EQ(NotAClearError(run, 1), "") << run.err;
  EXPECT_NE(run.err.find("the event log has lost its event at position 20"), std::string::npos)
      << run.err;
  const Outcome status = Replica({"status", "set.yaml"});
  EXPECT_NE(status.out.find("the event log has lost its event at position 20"), std::string::npos)
      << status.out;
  // After a reset it is complete again.
  EXPECT_EQ(Replica({"reset", "set.yaml", "notes"}).exit_code, 0);
  EXPECT_EQ(CatchUp().exit_code, 0);
  const Json audit = Json::parse(Replica({"audit", "set.yaml", "notes", "--json"}).out);
  EXPECT_EQ(audit["handled"], 15);
}

TEST_F(ReplicaCommand, StatusShowsLiveWorkersAndParkedStreams) {
  Append(3);
  std::ofstream(folder_ / "lines") << R"({"stream":"s1","type":"T","id":"bad"})"
                                      "\n";
  ASSERT_EQ(Shell(MUSTER_PROGRAM " events append sqlite:log.db < lines").exit_code, 0);
  std::string text = kSet;
  text.replace(text.find("(:position, :stream)"), 20, "(nullif(:id, 'bad'), :stream)");
  text.replace(text.find("position INTEGER"), 16, "position TEXT NOT NULL");
  std::ofstream(folder_ / "set.yaml") << text << "max_attempts: 1\n";
  EXPECT_EQ(Replica({"audit", "set.yaml", "notes"}).exit_code, 3);
  const Outcome run = Replica({"run", "set.yaml", "--until-caught-up", "--json"});
  EXPECT_EQ(run.exit_code, 4);
  EXPECT_EQ(run.out, "{\"set\":\"notes\",\"handled\":3,\"parked\":1}\n");
  const Outcome status = Replica({"status", "set.yaml"});
  EXPECT_NE(status.out.find("no worker is alive"), std::string::npos) << status.out;
  const Json json = Json::parse(Replica({"status", "set.yaml", "--json"}).out);
  EXPECT_EQ(json["alive"], 0);
  EXPECT_EQ(json["projections"][0]["parked"][0]["position"], 4);
  EXPECT_EQ(Replica({"skip", "set.yaml", "notes", "--position=4"}).exit_code, 0);
  EXPECT_EQ(Replica({"audit", "set.yaml", "notes"}).exit_code, 0);
  EXPECT_EQ(Replica({"reset", "set.yaml", "notes"}).exit_code, 0);
  EXPECT_EQ(Replica({"audit", "set.yaml", "notes"}).exit_code, 3);
}

// No worker is left that could declare it dead.
TEST_F(ReplicaCommand, KilledLastWorkerIsShownAsDead) {
  const Outcome outcome =
      Shell("muster=" MUSTER_PROGRAM
            "; $muster replica run set.yaml --progress=none & worker=$!\n"
            "wait_for() { n=0; until $muster replica status set.yaml | grep -q \"$1\"; do\n"
            "  n=$((n + 1)); [ $n -lt 300 ] || return 1; sleep 0.1; done; }\n"
            "wait_for ', running, 1 partitions' || echo does not run\n"
            "kill -9 $worker; wait $worker\n"
            "wait_for 'no worker is alive' && wait_for '  dead  ' && echo dead");
  EXPECT_EQ(outcome.out, "dead\n") << outcome.err;
}

// Its command is missing.
TEST_F(ReplicaCommand, StopBeforeTheEndIsNotCaughtUp) {
  std::ofstream(folder_ / "set.yaml") << R"(
set: notes
store: sqlite:store.db
events: sqlite:log.db
read_model: sqlite:read.db
projections:
  notes: {exec: [./handler], timeout: 5s}
)";
  Append(3);
  const Outcome outcome =
      Shell("muster=" MUSTER_PROGRAM
            "; $muster replica run set.yaml --until-caught-up --progress=none 2> err & worker=$!\n"
            "n=0; until $muster replica status set.yaml | grep -q 'cannot start'; do\n"
            "  n=$((n + 1)); [ $n -lt 300 ] || exit 99; sleep 0.1; done\n"
            "kill $worker; wait $worker; code=$?; grep -o 'stopped before.*' err; exit $code");
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_EQ(outcome.out, "stopped before set notes caught up\n");
}

// A worker whose command is missing at first.
TEST_F(ReplicaCommand, ResolvedErrorsAreNotShown) {
  std::ofstream(folder_ / "set.yaml") << R"(
set: notes
store: sqlite:store.db
events: sqlite:log.db
read_model: sqlite:read.db
projections:
  notes: {exec: [./handler], timeout: 5s}
)";
  std::ofstream(folder_ / "later") << R"(#!/bin/sh
while read -r line; do
  position=${line#*:}
  echo "{\"ack\":${position%%,*}}"
done
)";
  Append(3);
  const Outcome outcome =
      Shell("muster=" MUSTER_PROGRAM
            "; $muster replica run set.yaml --progress=none & worker=$!\n"
            "status() { $muster replica status set.yaml; }\n"
            "wait_for() { n=0; until status | grep -q \"$1\"; do\n"
            "  n=$((n + 1)); [ $n -lt 300 ] || return 1; sleep 0.1; done; }\n"
            "wait_for 'cannot start' || echo no trouble\n"
            "chmod +x later; mv later handler\n"
            "wait_for 'running  *3  *0 ' || echo not handled\n"
            "wait_for 'running .* s *$' || echo trouble stays\n"
            "status | grep 'cannot start'; kill $worker; wait $worker; echo ended $?");
  EXPECT_EQ(outcome.out, "ended 0\n") << outcome.err;
}

}  // namespace
}  // namespace muster::testing
