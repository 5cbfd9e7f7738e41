#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <thread>
#include <utility>

#include "cli/commands.h"
#include "cli/demo_job.h"
#include "cli/exit_codes.h"
#include "cli/plan_demo.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "core/guard.h"
#include "core/json.h"
#include "muster/store.h"
#include "muster/work.h"

extern char** environ;

namespace muster::cli {
namespace {

using namespace std::chrono_literals;

constexpr int kWorkers = 4;
constexpr auto kBusyTimeout = 5s;

struct DemoOptions {
  bool keep = false;
  std::string worker;  // set in the worker processes that the demo starts
  std::string folder;
};

// Worker processes with a common output pipe. Those still alive at the end are killed.
class WorkerProcesses {
 public:
  static Result<std::unique_ptr<WorkerProcesses>> Start(const DemoFolder& folder) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return Error{Code::kInternal, "cannot create a pipe"};
    std::unique_ptr<WorkerProcesses> workers(new WorkerProcesses(ends[0], ends[1]));
    for (int i = 1; i <= kWorkers; ++i) {
      MUSTER_TRY(workers->StartOne(folder, "worker-" + std::to_string(i)));
    }
    // From now on only workers can write: end of file means that the last one has ended.
    close(std::exchange(workers->write_end_, -1));
    return workers;
  }

  ~WorkerProcesses() {
    for (const auto& [name, pid] : pids_) kill(pid, SIGKILL);
    for (const auto& [name, pid] : pids_) waitpid(pid, nullptr, 0);
    if (write_end_ >= 0) close(write_end_);
    close(read_end_);
  }

  void Signal(const std::string& name, int signal) {
    if (auto found = pids_.find(name); found != pids_.end()) kill(found->second, signal);
  }

  // Returns once the process has really stopped.
  void Stop(const std::string& name) {
    Signal(name, SIGSTOP);
    if (auto found = pids_.find(name); found != pids_.end()) {
      siginfo_t stopped;
      waitid(P_PID, static_cast<id_t>(found->second), &stopped, WSTOPPED | WEXITED | WNOWAIT);
    }
  }

  void SignalAll(int signal) {
    for (const auto& [name, pid] : pids_) kill(pid, signal);
  }

  // Reaps ended workers; returns how many are left.
  size_t Reap() {
    std::erase_if(pids_, [](const auto& worker) {
      return waitpid(worker.second, nullptr, WNOHANG) == worker.second;
    });
    return pids_.size();
  }

  // Forwards the workers' output, line by line, until the last has ended.
  void Listen(const std::function<void(const std::string& line)>& say) {
    std::string pending;
    char bytes[4096];
    for (;;) {
      const ssize_t got = read(read_end_, bytes, sizeof bytes);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return;
      pending.append(bytes, static_cast<size_t>(got));
      for (size_t end; (end = pending.find('\n')) != std::string::npos; pending.erase(0, end + 1)) {
        say(pending.substr(0, end));
      }
    }
  }

 private:
  WorkerProcesses(int read_end, int write_end) : read_end_(read_end), write_end_(write_end) {}

  Status StartOne(const DemoFolder& folder, const std::string& name) {
    // The demo narrates what a worker would log.
    const char* argv[] = {
        "muster",          "demo", "work", "--worker", name.c_str(), "--in", folder.path.c_str(),
        "--log-level=off", nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, write_end_, STDOUT_FILENO);
    // Its own process group: Ctrl-C is for us, and we forward it as needed.
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    pid_t pid = 0;
    const int failed = posix_spawn(&pid, "/proc/self/exe", &actions, &attributes,
                                   const_cast<char**>(argv), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) return Error{Code::kInternal, "a worker process could not be started"};
    pids_[name] = pid;
    return {};
  }

  std::map<std::string, pid_t> pids_;
  int read_end_;
  int write_end_;
};

class Demo {
 public:
  Demo(const DemoOptions& options, Context& context)
      : options_(options), context_(context), started_(context.env.MonoNow()) {}

  Result<int> Run() {
    MUSTER_TRY(MakeFolder());
    Result<int> code = RunInFolder();
    if (!options_.keep) std::filesystem::remove_all(folder_.path);
    return code;
  }

 private:
  Status MakeFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "muster-demo-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      return Error{Code::kUnavailable, "cannot create a folder in " + name,
                   "set TMPDIR to a writable folder"};
    }
    folder_.path = name;
    return {};
  }

  Result<int> RunInFolder() {
    StopOnSignals signals;
    MUSTER_ASSIGN(store_, store::OpenStore(folder_.StoreUrl(), context_.env));
    MUSTER_ASSIGN(target_, DemoTarget::Open(folder_.TargetPath()));
    progress_.emplace(context_.progress, context_.err, context_.env, "documents",
                      static_cast<uint64_t>(kDemoShards * kDemoDocuments),
                      [] { return TerminalWidth(STDERR_FILENO); });
    Say(std::to_string(kDemoShards) + " shards of " + std::to_string(kDemoDocuments) +
        " documents, " + std::to_string(kWorkers) + " worker processes, one SQLite file");
    MUSTER_ASSIGN(auto workers, WorkerProcesses::Start(folder_));
    std::jthread listener([&] {
      LogThrown("progress",
                [&] { workers->Listen([this](const std::string& line) { Say(line); }); });
    });
    const Status watched = Watch(*workers, signals.Token());
    if (!watched) workers->SignalAll(SIGKILL);
    listener.join();
    progress_->Finish();
    if (!watched) return watched.error();
    return Report();
  }

  // Follows the workers to the end and causes trouble on the way: one is killed, one is paused
  // until its lease expires, both in the middle of a shard.
  Status Watch(WorkerProcesses& workers, std::stop_token stop) {
    std::string killed;
    std::optional<work::ItemInfo> paused;
    bool resumed = false;
    bool draining = false;
    while (workers.Reap() > 0) {
      MUSTER_ASSIGN(const auto items, Items());
      int64_t done = 0;
      bool taken_over = false;
      for (const work::ItemInfo& item : items) {
        done += item.progress.counts.written;
        if (killed.empty() && InTheMiddle(item) && done >= kTotal / 5) {
          killed = item.holder;
          workers.Signal(killed, SIGKILL);
          Say(killed + " is killed (kill -9) while it holds " + item.name);
        } else if (!paused && InTheMiddle(item) && done >= kTotal / 3 && item.holder != killed) {
          MUSTER_ASSIGN(paused, Pause(workers, item));
        }
        if (paused && item.key == paused->key) taken_over = item.epoch > paused->epoch;
      }
      if (paused && !resumed && taken_over) {
        resumed = true;
        Say(paused->holder + " is resumed (SIGCONT): its lease has expired, another worker holds " +
            paused->name);
        workers.Signal(paused->holder, SIGCONT);
      }
      progress_->Update(static_cast<uint64_t>(done));
      if (stop.stop_requested() && !draining) {
        draining = true;
        workers.SignalAll(SIGCONT);
        workers.SignalAll(SIGTERM);
      }
      context_.env.Sleep(20ms, {});
    }
    if (draining) return Error{Code::kCancelled, "the demo was interrupted", "run it again"};
    return {};
  }

  static bool InTheMiddle(const work::ItemInfo& item) {
    return item.due_in && item.progress.counts.written > 0 && !item.holder.empty();
  }

  // Stops the holder of an item; returns the item as it was then, or nothing if the holder had
  // released it. A process stopped inside a transaction would block all writes to that SQLite file
  // until it wakes up, so it is stopped while only we have one.
  Result<std::optional<work::ItemInfo>> Pause(WorkerProcesses& workers,
                                              const work::ItemInfo& item) {
    constexpr auto kMode = sql::SqliteDb::Mode::kExisting;
    MUSTER_ASSIGN(const auto target,
                  sql::SqliteDb::Open(folder_.TargetPath(), kMode, kBusyTimeout));
    MUSTER_ASSIGN(const auto store, sql::SqliteDb::Open(folder_.StorePath(), kMode, kBusyTimeout));
    MUSTER_ASSIGN(const auto no_target_writes, sql::SqliteTransaction::Begin(*target));
    MUSTER_ASSIGN(const auto no_store_writes, sql::SqliteTransaction::Begin(*store));
    workers.Stop(item.holder);
    MUSTER_ASSIGN(const auto items, Items());
    for (const work::ItemInfo& now : items) {
      if (now.key != item.key || now.epoch != item.epoch || !InTheMiddle(now)) continue;
      Say(now.holder + " is paused (SIGSTOP) while it holds " + now.name);
      return now;
    }
    workers.Signal(item.holder, SIGCONT);
    return std::optional<work::ItemInfo>();
  }

  Result<std::vector<work::ItemInfo>> Items() {
    return work::ListItems(*store_, kDemoRun, "", store::kMaxBatch);
  }

  Result<int> Report() {
    MUSTER_ASSIGN(const auto items, Items());
    MUSTER_ASSIGN(const DemoTarget::Comparison found, target_->Compare());
    const int64_t repeated = found.found - (found.expected - found.missing) - found.wrong;
    const bool good = found.missing == 0 && found.wrong == 0 && repeated == 0;
    if (context_.json) {
      Json list = Json::array();
      for (const work::ItemInfo& item : items) {
        list.push_back({{"item", item.name},
                        {"documents", item.progress.counts.written},
                        {"holders", item.epoch},
                        {"finished_by", item.holder}});
      }
      context_.out << ToJsonText(Json{{"items", list},
                                      {"documents", found.expected},
                                      {"missing", found.missing},
                                      {"repeated", repeated},
                                      {"wrong", found.wrong}})
                   << '\n';
      return good ? kDone : kFailed;
    }
    Table table({{"ITEM"},
                 {"DOCUMENTS", Table::Align::kRight},
                 {"HOLDERS", Table::Align::kRight},
                 {"FINISHED BY"}});
    for (const work::ItemInfo& item : items) {
      table.AddRow({{item.name},
                    {std::to_string(item.progress.counts.written)},
                    {std::to_string(item.epoch), item.epoch > 1 ? Style::kWarn : Style::kNone},
                    {item.holder}});
    }
    table.Print(context_.out, context_.color);
    context_.out << '\n'
                 << found.expected
                 << " documents compared with what they should be: " << found.missing << " lost, "
                 << repeated << " repeated, " << found.wrong << " wrong\n";
    if (options_.keep) {
      context_.out << "The store and the target are in " << folder_.path << "; try: sqlite3 "
                   << folder_.path << "/store.db 'SELECT * FROM muster_status'\n";
    }
    return good ? kDone : kFailed;
  }

  void Say(const std::string& event) {
    char time[16];
    std::snprintf(time, sizeof time, "%6.1f s  ",
                  std::chrono::duration<double>(context_.env.MonoNow() - started_).count());
    progress_->Say(time + event);
  }

  static constexpr int64_t kTotal = kDemoShards * kDemoDocuments;

  const DemoOptions& options_;
  Context& context_;
  const MonoTime started_;
  DemoFolder folder_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<DemoTarget> target_;
  std::optional<cli::Progress> progress_;
};

Result<int> RunWorkerProcess(const DemoOptions& options, Context& context) {
  StopOnSignals signals("");
  const auto say = [&](const std::string& event) {
    // One write per line: lines of several processes never interleave.
    context.out << options.worker + " " + event + "\n" << std::flush;
  };
  MUSTER_TRY(RunDemoWorker({options.folder}, options.worker, context.env, say, signals.Token()));
  return kDone;
}

}  // namespace

void AddDemoCommand(Command& app, Context& context) {
  Command command =
      app.AddCommand("demo", "Watch a migration get killed, fail, and resume where it stopped");
  command.Group("Operate");
  auto options = std::make_shared<DemoOptions>();
  command.AddFlag("--keep", options->keep, "Keep the demo's files");
  command.Footer("  muster demo\n  muster demo work --keep --progress=plain");
  command.Action(context, [options, &context] { return RunPlanDemo(options->keep, context); });
  Command work = command.AddCommand("work", "Watch workers share a job, crash, and lose nothing");
  work.AddFlag("--keep", options->keep, "Keep the demo's files");
  work.AddOption("--worker", options->worker).Hidden();
  work.AddOption("--in", options->folder).Hidden();
  work.Footer("  muster demo work\n  muster demo work --keep --progress=plain");
  work.Action(context, [options, &context]() -> Result<int> {
    if (!options->worker.empty()) return RunWorkerProcess(*options, context);
    return Demo(*options, context).Run();
  });
}

}  // namespace muster::cli
