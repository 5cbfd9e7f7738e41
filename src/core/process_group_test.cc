// Goal: programs end with the process that started them, even if it is killed. Method: a child
// process that starts some and gets SIGKILL.

#include "core/process_group.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "support/await.h"
#include "support/processes.h"
#include "support/temporary_folder.h"

namespace muster {
namespace {

using testing::Await;
using testing::IsDead;

class ProcessGroupTest : public ::testing::Test {
 protected:
  std::vector<pid_t> Pids() const { return testing::ReadPids(folder_.path() + "/pids"); }

  // A shell and a child of it that record their pids and would run for long.
  Program Stayers() const {
    return {
        .command = {"sh", "-c",
                    "trap '' TERM; sh -c 'echo $$ >>pids; exec sleep 600' & echo $$ >>pids; wait"},
        .directory = folder_.path()};
  }

  bool AllDead() const {
    const auto pids = Pids();
    return std::all_of(pids.begin(), pids.end(), IsDead);
  }

  testing::TemporaryFolder folder_;
};

TEST_F(ProcessGroupTest, GroupDiesWithAKilledProcess) {
  const pid_t owner = fork();
  if (owner == 0) {
    const auto group = ProcessGroup::Make();
    if (!group || !(*group)->Start(Stayers())) _exit(1);
    pause();
    _exit(0);
  }
  ASSERT_TRUE(Await([&] { return Pids().size() == 2; }));
  EXPECT_FALSE(IsDead(Pids()[0]));
  EXPECT_FALSE(IsDead(Pids()[1]));
  kill(owner, SIGKILL);
  waitpid(owner, nullptr, 0);
  EXPECT_TRUE(Await([&] { return AllDead(); }));
}

TEST_F(ProcessGroupTest, GroupDiesWithTheObject) {
  auto group = *ProcessGroup::Make();
  const auto pid = group->Start(Stayers());
  ASSERT_TRUE(pid) << pid.error().ToString();
  ASSERT_TRUE(Await([&] { return Pids().size() == 2; }));
  // The guard survives.
  group->Signal(SIGTERM);
  group.reset();
  EXPECT_EQ(waitpid(*pid, nullptr, 0), *pid);
  EXPECT_TRUE(Await([&] { return AllDead(); }));
}

TEST_F(ProcessGroupTest, CallerWaitsForAProgram) {
  const auto group = *ProcessGroup::Make();
  for (const int code : {0, 7}) {
    const auto pid = group->Start({.command = {"sh", "-c", "test \"$A\" = b && exit $CODE"},
                                   .environment = {{"A", "b"}, {"CODE", std::to_string(code)}}});
    ASSERT_TRUE(pid) << pid.error().ToString();
    int status = 0;
    ASSERT_EQ(waitpid(*pid, &status, 0), *pid);
    EXPECT_EQ(WEXITSTATUS(status), code);
  }
}

TEST_F(ProcessGroupTest, MissingProgramIsAnError) {
  const auto group = *ProcessGroup::Make();
  const auto pid = group->Start({.command = {"/no/such/program"}});
  ASSERT_FALSE(pid);
  EXPECT_EQ(pid.error().code, Code::kInvalid);
  EXPECT_EQ(pid.error().message, "cannot start /no/such/program: No such file or directory");
}

}  // namespace
}  // namespace muster
