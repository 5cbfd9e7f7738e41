// Goal: eight worker processes on a real PostgreSQL handle every event once and in order while
// appenders run, workers are killed, stopped and continued, the server is restarted and the set is
// scaled from 1 to 8 and back. The read model, one row per event, is compared with the log.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <thread>

#include "muster/events.h"
#include "replica/operations.h"
#include "support/postgres_server.h"
#include "support/temporary_folder.h"

extern char** environ;

namespace muster {
namespace {

using namespace std::chrono_literals;

constexpr int kProcesses = 8;
constexpr int kAppenders = 2;
constexpr int kStreams = 50;
constexpr int kScale[] = {1, 2, 3, 8, 3, 1};

int Seconds() {
  const char* text = std::getenv("MUSTER_SOAK_SECONDS");
  return text == nullptr ? 40 : std::atoi(text);
}

// A worker process, restarted whenever it has been killed.
class WorkerProcess {
 public:
  WorkerProcess(const std::string& file, const std::string& folder, int number)
      : file_(file), log_(folder + "/worker" + std::to_string(number) + ".log") {
    Start();
  }
  ~WorkerProcess() {
    if (pid_ == 0) return;
    kill(pid_, SIGCONT);
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  void Start() {
    const char* argv[] = {"muster",          "replica",         "run",  file_.c_str(),
                          "--progress=json", "--log-level=off", nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log_.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0600);
    ASSERT_EQ(
        posix_spawn(&pid_, MUSTER_PROGRAM, &actions, nullptr, const_cast<char**>(argv), environ),
        0);
    posix_spawn_file_actions_destroy(&actions);
  }
  void KillAndRestart() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    Start();
  }
  void Signal(int signal) { kill(pid_, signal); }

  // The end of what it has reported.
  std::string Reported() const {
    std::ifstream file(log_);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    return text.size() > 2'000 ? text.substr(text.size() - 2'000) : text;
  }

  // Whether it exited normally.
  bool Stop() {
    kill(pid_, SIGCONT);
    int status = 0;
    pid_t ended = 0;
    while (!CatchesTerm() && (ended = waitpid(pid_, &status, WNOHANG)) == 0) {
      RealEnv().Sleep(10ms, {});
    }
    if (ended == 0) {
      kill(pid_, SIGTERM);
      waitpid(pid_, &status, 0);
    }
    pid_ = 0;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

 private:
  // Whether it handles SIGTERM yet; before that, the signal ends it.
  bool CatchesTerm() const {
    std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (!line.starts_with("SigCgt:")) continue;
      return (std::stoull(line.substr(7), nullptr, 16) >> (SIGTERM - 1) & 1) == 1;
    }
    return false;
  }

  const std::string file_;
  const std::string log_;
  pid_t pid_ = 0;
};

class Soak : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = testing::PostgresServer::Unavailable();
    if (!reason.empty()) GTEST_SKIP() << "no PostgreSQL: " << reason;
    server_ = std::make_unique<testing::PostgresServer>();  // its own, since it is killed
    file_ = folder_.path() + "/set.yaml";
    std::ofstream(file_) << "set: soak\nstore: " << server_->Url() << "\nevents: " << server_->Url()
                         << "\nread_model: " << server_->Url() << R"(
batch: 200
projections:
  copy:
    setup: CREATE TABLE IF NOT EXISTS copy (line bigserial, stream text, version bigint)
    on:
      Added: INSERT INTO copy (stream, version) VALUES (:stream, :payload.version)
)";
  }

  std::unique_ptr<testing::PostgresServer> server_;
  testing::TemporaryFolder folder_;
  std::string file_;
};

void AppendUntil(const std::string& url, int number, std::atomic<int64_t>& appended,
                 std::stop_token stop) {
  Env& env = RealEnv();
  std::map<std::string, int64_t> versions;
  std::unique_ptr<events::EventLog> log;
  while (!stop.stop_requested()) {
    if (!log) {
      auto opened = events::OpenEventLog(url, {}, env);
      if (!opened) {
        env.Sleep(100ms, stop);
        continue;
      }
      log = *std::move(opened);
    }
    const std::string stream =
        "stream-" + std::to_string(number) + "-" + std::to_string(env.Random() % kStreams);
    events::StreamAppend append{stream, versions[stream], {}};
    for (int i = 0; i < 10; ++i) {
      append.events.push_back(
          {.type = "Added",
           .payload = "{\"version\":" + std::to_string(append.expected + i + 1) + "}"});
    }
    auto done = log->Append({&append, 1});
    if (done) {
      versions[stream] = done->front();
      appended += 10;
    } else {
      // Unknown outcome: read what is there. Only this appender writes these streams.
      auto read = log->ReadStream(stream, versions[stream], 100);
      if (read && !read->empty()) {
        versions[stream] = read->back().version;
        appended += static_cast<int64_t>(read->size());
      }
      if (!read) env.Sleep(100ms, stop);
    }
    env.Sleep(2ms, stop);
  }
}

TEST_F(Soak, EveryEventIsHandledOnceAndInOrderDespiteFailures) {
  Env& env = RealEnv();
  const std::string url = server_->Url();
  std::atomic<int64_t> appended = 0;
  std::vector<std::jthread> appenders;
  for (int i = 0; i < kAppenders; ++i) {
    appenders.emplace_back(
        [&, i](std::stop_token stop) { AppendUntil(url, i, appended, std::move(stop)); });
  }
  std::vector<std::unique_ptr<WorkerProcess>> workers;
  for (int i = 0; i < kProcesses; ++i) {
    workers.push_back(std::make_unique<WorkerProcess>(file_, folder_.path(), i));
  }
  auto store = store::OpenStore(url, env);
  ASSERT_TRUE(store) << store.error().ToString();
  const uint64_t seed = env.Random();
  std::cout << "seed " << seed << "\n";
  std::srand(static_cast<unsigned>(seed));
  int killed = 0, stopped = 0, restarted = 0;
  const auto begin = env.MonoNow();
  const auto total = std::chrono::seconds(Seconds());
  size_t stage = 0;
  bool server_restarted = false;
  while (env.MonoNow() - begin < total) {
    const auto due = static_cast<size_t>((env.MonoNow() - begin) * std::size(kScale) / total);
    if (stage <= due && stage < std::size(kScale)) {
      if (replica::ScaleSet(**store, "soak", kScale[stage])) ++stage;
    }
    WorkerProcess& victim = *workers[static_cast<size_t>(std::rand()) % workers.size()];
    switch (std::rand() % 4) {
      case 0:
        victim.KillAndRestart();
        ++killed;
        break;
      case 1:
        // Longer than the heartbeat timeout: when it resumes, it has been declared dead.
        victim.Signal(SIGSTOP);
        env.Sleep(4s, {});
        victim.Signal(SIGCONT);
        ++stopped;
        break;
      default:
        env.Sleep(1s, {});
    }
    if (!server_restarted && env.MonoNow() - begin > total / 2) {
      server_restarted = true;
      server_->Kill();
      server_->Start();
      ++restarted;
    }
  }
  appenders.clear();
  ASSERT_TRUE(replica::ScaleSet(**store, "soak", std::nullopt));
  auto log = events::OpenEventLog(url, {}, env);
  auto model = replica::OpenReadModel(url, env);
  ASSERT_TRUE(log && model);
  const auto end = env.MonoNow() + 90s;
  for (;;) {
    auto status = replica::StatusOf(**store, **log, **model, "soak", {"copy"});
    if (status && status->instances.front().lag_events == 0) break;
    ASSERT_LT(env.MonoNow(), end) << "the set does not catch up";
    env.Sleep(200ms, {});
  }
  for (const auto& worker : workers) EXPECT_TRUE(worker->Stop()) << worker->Reported();
  std::cout << appended << " events, " << killed << " times killed, " << stopped
            << " times stopped, " << restarted << " times without a server\n";
  EXPECT_GT(appended, 0);
  EXPECT_EQ(server_->Exec("SELECT count(*) FROM muster.parked_events"), "0");
  EXPECT_EQ(server_->Exec("SELECT count(*) FROM muster.events"),
            server_->Exec("SELECT count(*) FROM copy"));
  EXPECT_EQ(server_->Exec("SELECT count(*) FROM (SELECT stream, version FROM muster.events EXCEPT "
                          "SELECT stream, version FROM copy) lost"),
            "0");
  EXPECT_EQ(server_->Exec("SELECT count(*) FROM (SELECT version, row_number() OVER (PARTITION BY "
                          "stream ORDER BY line) AS nth FROM copy) c WHERE version <> nth"),
            "0");
  auto audit = replica::Audit(**log, **model, {"soak", "copy", 1});
  ASSERT_TRUE(audit) << audit.error().ToString();
  EXPECT_TRUE(audit->wrong_slots.empty());
}

}  // namespace
}  // namespace muster
