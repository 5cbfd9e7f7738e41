#include "process_cost.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "median.h"
#include "ours.h"

namespace muster::bench {
namespace {

namespace fs = std::filesystem;

// A child with its standard input and output on pipes or, where there is none, on /dev/null.
pid_t Spawn(std::vector<std::string> arguments, int input, int output) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const auto& [fd, target] : {std::pair(input, 0), std::pair(output, 1)}) {
    if (fd >= 0) {
      posix_spawn_file_actions_adddup2(&actions, fd, target);
    } else {
      posix_spawn_file_actions_addopen(&actions, target, "/dev/null", O_RDWR, 0);
    }
  }
  pid_t pid = -1;
  const int error = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("cannot start " + arguments[0]);
  return pid;
}

void MustEndWell(pid_t pid, const std::string& what) {
  int status = 0;
  waitpid(pid, &status, 0);
  if (status != 0) throw std::runtime_error(what + " failed");
}

struct Pipe {
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  }
  int ends[2];
};

double ResidentMebibytes(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string word; status >> word;) {
    double kibibytes = 0;
    if (word == "VmRSS:" && status >> kibibytes) return kibibytes / 1024;
  }
  throw std::runtime_error("the idle worker's memory cannot be read");
}

}  // namespace

std::optional<double> StartUpMilliseconds(int samples) {
  const std::string program = fs::read_symlink("/proc/self/exe").parent_path() / "muster";
  if (!fs::exists(program)) return std::nullopt;
  std::vector<double> times;
  for (int i = 0; i < samples; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    MustEndWell(Spawn({program, "--version"}, -1, -1), program + " --version");
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - begin;
    times.push_back(elapsed.count());
  }
  return MedianOf(times);
}

double IdleWorkerMebibytes(const std::string& store_url) {
  const Pipe to, from;
  const pid_t worker =
      Spawn({fs::read_symlink("/proc/self/exe"), kIdleWorker, store_url}, to.ends[0], from.ends[1]);
  close(to.ends[0]);
  close(from.ends[1]);
  char said = 0;
  const bool waits = read(from.ends[0], &said, 1) == 1;
  const double mebibytes = waits ? ResidentMebibytes(worker) : 0;
  close(to.ends[1]);
  close(from.ends[0]);
  MustEndWell(worker, "the idle worker");
  return mebibytes;
}

void RunIdleWorker(const std::string& store_url) {
  const std::unique_ptr<store::Store> store = MustOpen(store_url);
  const auto look_and_wait = [&] {
    if (!Must(store->Claim(NewClaim(1))).empty()) throw std::runtime_error("there is work to do");
    store->Wait(kKind, milliseconds(100), {});
  };
  look_and_wait();
  look_and_wait();
  if (write(1, ".", 1) != 1) throw std::runtime_error("the parent is gone");
  char ended;
  while (read(0, &ended, 1) > 0) look_and_wait();
}

}  // namespace muster::bench
