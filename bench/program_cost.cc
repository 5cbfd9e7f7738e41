#include "program_cost.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "support/temporary_folder.h"

extern char** environ;

namespace muster::bench {
namespace {

double SecondsOf(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

ProgramCost RunProgram(const std::vector<std::string>& command) {
  const testing::TemporaryFolder folder;
  const std::string output = folder.At("output");
  std::vector<char*> argv;
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t pid = 0;
  const auto start = std::chrono::steady_clock::now();
  const int error = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("cannot start " + command[0]);
  int status = 0;
  rusage usage{};
  wait4(pid, &status, 0, &usage);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw std::runtime_error(command[0] + " failed: " + folder.Read("output"));
  }
  return {.seconds = passed.count(),
          .cpu_seconds = SecondsOf(usage.ru_utime) + SecondsOf(usage.ru_stime),
          .peak_mebibytes = static_cast<double>(usage.ru_maxrss) / 1024};
}

std::string MusterProgram() {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "muster").string();
}

bool HasProgram(const std::string& name) {
  return std::system(("command -v '" + name + "' > /dev/null").c_str()) == 0;
}

}  // namespace muster::bench
