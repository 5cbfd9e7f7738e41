#include "replica/exec_projection.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "replica/memory_read_model.h"
#include "support/await.h"
#include "support/processes.h"
#include "support/temporary_folder.h"

namespace muster::replica {
namespace {

using testing::Await;

Status Handle(const std::string& script, int events, milliseconds timeout = milliseconds(5'000),
              std::unique_ptr<Processor>* keep = nullptr) {
  auto projection = NewExecProjection(
      {.name = "mails", .command = {"/bin/sh", "-c", script}, .timeout = timeout}, RealEnv());
  if (!projection) return projection.error();
  auto processor = (*projection)->Build({.key = 1, .total = 3, .generation = 7});
  if (!processor) return processor.error();
  std::vector<events::Event> batch;
  for (int i = 1; i <= events; ++i) {
    batch.push_back(events::Event{.position = i,
                                  .stream = "s",
                                  .version = i,
                                  .id = "i",
                                  .type = "T",
                                  .payload = std::string(200, '7'),
                                  .metadata = ""});
  }
  MemoryTransaction transaction;
  const Status handled = (*processor)->Handle(batch, transaction);
  if (keep != nullptr) *keep = *std::move(processor);
  return handled;
}

constexpr char kAcknowledgeAll[] =
    "n=0; while read -r line; do n=$((n+1)); echo \"{\\\"ack\\\":$n}\"; done";

TEST(ExecProjection, HandlesABatchOnceItsLastEventIsAcknowledged) {
  EXPECT_TRUE(Handle(kAcknowledgeAll, 1));
  // More than a pipe holds, in both directions.
  EXPECT_TRUE(Handle(kAcknowledgeAll, 2'000, milliseconds(60'000)));
}

TEST(ExecProjection, TheContentOfItsProgramIsPartOfItsDefinition) {
  const testing::TemporaryFolder folder;
  const testing::TemporaryFolder elsewhere;
  folder.Write("mails.sh", "one");
  elsewhere.Write("tool", "one");
  const auto make = [&] {
    ExecProjectionSpec spec{
        .name = "mails",
        .command = {"/bin/sh", elsewhere.At("tool"), folder.At("mails.sh"), "mails.db"}};
    EXPECT_TRUE(FindProgram(folder.path(), spec));
    EXPECT_EQ(spec.program, folder.At("mails.sh"));
    return NewExecProjection(spec, RealEnv()).value();
  };
  const auto first = make();
  elsewhere.Write("tool", "two");
  EXPECT_EQ(make()->Definition(), first->Definition());
  EXPECT_TRUE(first->Build({.key = 1, .total = 1}));
  folder.Write("mails.sh", "two");
  const auto second = make();
  EXPECT_NE(second->Definition(), first->Definition());

  // A version runs by the program that it was built with, or not at all.
  const auto built = first->Build({.key = 1, .total = 1});
  ASSERT_FALSE(built);
  EXPECT_NE(built.error().message.find("is not the program that this version"), std::string::npos)
      << built.error().message;
  EXPECT_FALSE(second->WithDefinition(first->Definition()).value()->Build({.key = 1, .total = 1}));
  EXPECT_TRUE(first->WithDefinition(second->Definition()).value()->Build({.key = 1, .total = 1}));
  // That of an earlier release.
  EXPECT_TRUE(first->WithDefinition(R"({"exec":["true"]})").value()->Build({.key = 1, .total = 1}));
}

TEST(ExecProjection, PassesThePartitionToTheChild) {
  EXPECT_TRUE(
      Handle("test \"$MUSTER_PROJECTION/$MUSTER_PARTITION_KEY/$MUSTER_TOTAL_PARTITIONS/"
             "$MUSTER_GENERATION/$MUSTER_SIDE_EFFECTS\" = mails/1/3/7/1 && read -r line && "
             "echo '{\"ack\":1}'",
             1));
}

TEST(ExecProjection, EveryFailureFailsTheBatchWithAReason) {
  const std::pair<const char*, const char*> cases[] = {
      {"exit 3", "ended without acknowledging"},
      {"read -r line; echo '{\"error\":\"no such customer\",\"position\":1}'; sleep 9",
       "says: no such customer"},
      {"echo hello; sleep 9", "an acknowledgement: hello"},
      {"read -r line; exec sleep 60", "did not answer within 300 ms"},
      {"read -r line; echo '{\"ack\":1000}'; sleep 9", "position 1000, which it was not sent"},
      {"read -r line; echo '{\"ack\":-1}'; sleep 9", "position -1, which it was not sent"},
      {"head -c 3000000 /dev/zero | tr '\\0' x; sleep 9", "a line that is too long"},
  };
  for (const auto& [script, reason] : cases) {
    const bool hangs = std::string(reason).find("300 ms") != std::string::npos;
    const Status handled = Handle(script, 2, milliseconds(hangs ? 300 : 20'000));
    ASSERT_FALSE(handled) << script;
    EXPECT_NE(handled.error().message.find(reason), std::string::npos) << handled.error().message;
  }
  auto missing = NewExecProjection({.name = "x", .command = {"/no/such/program"}}, RealEnv());
  ASSERT_TRUE(missing);
  auto processor = (*missing)->Build({});
  MemoryTransaction transaction;
  const events::Event event{
      .position = 1, .stream = "s", .id = "", .type = "", .payload = "", .metadata = ""};
  // Not the event's fault: it must not be parked.
  EXPECT_EQ((*processor)->Handle({&event, 1}, transaction).error().code, Code::kUnavailable);
}

// Counts progress, and ends when the test says so.
class CountedTurn final : public Turn {
 public:
  explicit CountedTurn(int over_after = 1'000'000) : over_after_(over_after) {}
  bool Over() const override { return progress >= over_after_; }
  void Progress() override { ++progress; }
  int progress = 0;

 private:
  const int over_after_;
};

Result<size_t> HandleSome(const std::string& script, int events, Turn& turn) {
  auto projection = NewExecProjection(
      {.name = "mails", .command = {"/bin/sh", "-c", script}, .timeout = milliseconds(5'000)},
      RealEnv());
  if (!projection) return projection.error();
  auto processor = (*projection)->Build({});
  if (!processor) return processor.error();
  std::vector<events::Event> batch;
  for (int i = 1; i <= events; ++i) {
    batch.push_back(events::Event{
        .position = i * 10, .stream = "s", .id = "", .type = "T", .payload = "{}", .metadata = ""});
  }
  MemoryTransaction transaction;
  return (*processor)->HandleSome(batch, transaction, turn);
}

// Parked events come after later ones.
TEST(ExecProjection, DuplicateAcknowledgementIsIgnored) {
  auto projection = NewExecProjection(
      {.name = "mails",
       .command = {"/bin/sh", "-c",
                   "read -r line; printf '{\"ack\":9}\\n{\"ack\":9}\\n'; read -r line; sleep 9"},
       .timeout = milliseconds(300)},
      RealEnv());
  ASSERT_TRUE(projection);
  auto processor = (*projection)->Build({});
  ASSERT_TRUE(processor);
  MemoryTransaction transaction;
  events::Event event{
      .position = 9, .stream = "s", .id = "", .type = "T", .payload = "{}", .metadata = ""};
  EXPECT_TRUE((*processor)->Handle({&event, 1}, transaction));
  event.position = 5;
  EXPECT_FALSE((*processor)->Handle({&event, 1}, transaction));
}

TEST(ExecProjection, EventsAcknowledgedBeforeAFailureCount) {
  CountedTurn turn;
  const auto bad = HandleSome(
      "n=0; while read -r line; do n=$((n+10)); if test $n = 9440; then "
      "echo '{\"error\":\"bad\",\"position\":9440}'; else echo \"{\\\"ack\\\":$n}\"; fi; done",
      1'000, turn);
  ASSERT_TRUE(bad) << bad.error().message;
  EXPECT_EQ(*bad, 943u);
  // Each acknowledgement counts as progress.
  EXPECT_GT(turn.progress, 10);
  const auto dies = HandleSome("read -r a; read -r b; echo '{\"ack\":20}'; exit 1", 100, turn);
  ASSERT_TRUE(dies) << dies.error().message;
  EXPECT_EQ(*dies, 2u);
  EXPECT_FALSE(HandleSome("exit 1", 100, turn));
}

TEST(ExecProjection, SendsNoMoreOnceItsTurnIsOver) {
  CountedTurn turn(1);
  const auto some = HandleSome(
      "n=0; while read -r line; do n=$((n+10)); echo \"{\\\"ack\\\":$n}\"; done", 10'000, turn);
  ASSERT_TRUE(some) << some.error().message;
  EXPECT_GE(*some, 1u);
  EXPECT_LT(*some, 1'000u);
}

TEST(ExecProjection, ItsChildDiesWithAWorkerThatIsKilled) {
  const testing::TemporaryFolder folder;
  const auto effects = [&] { return folder.Read("effects").size(); };
  const auto pids = [&] { return testing::ReadPids(folder.path() + "/pids"); };
  // It already has the whole batch, and would handle every event even without its parent.
  const std::string script = "cd " + folder.path() +
                             "; echo $$ >>pids; while read -r line; do echo effect >>effects; "
                             "sleep 0.02; done";
  const pid_t worker = fork();
  if (worker == 0) {
    static_cast<void>(Handle(script, 500, milliseconds(60'000)));
    _exit(0);
  }
  ASSERT_TRUE(Await([&] { return effects() >= 50 && pids().size() == 1; }));
  kill(worker, SIGKILL);
  waitpid(worker, nullptr, 0);
  EXPECT_TRUE(Await([&] { return testing::IsDead(pids().front()); }));
  EXPECT_LT(effects(), 500u * 7u);
}

TEST(ExecProjection, IsStartedAnewAfterAFailure) {
  std::unique_ptr<Processor> processor;
  const std::string folder = ::testing::TempDir() + RealEnv().NewId();
  // The first child fails, the second replies.
  EXPECT_FALSE(Handle("if test -e " + folder +
                          "; then read -r l; echo '{\"ack\":9}'; read -r l; "
                          "else touch " +
                          folder + "; exit 1; fi",
                      1, milliseconds(5'000), &processor));
  const events::Event event{
      .position = 9, .stream = "s", .id = "", .type = "", .payload = "", .metadata = ""};
  MemoryTransaction transaction;
  EXPECT_TRUE(processor->Handle({&event, 1}, transaction));
  std::remove(folder.c_str());
}

}  // namespace
}  // namespace muster::replica
