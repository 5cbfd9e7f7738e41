#include "core/process_group.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>

extern char** environ;

namespace muster {
namespace {

constexpr const char* kShell = "/bin/sh";
constexpr const char* kGuard = "trap '' TERM INT HUP QUIT; read -r end; kill -KILL 0";

// NAME=VALUE per variable; later ones win.
std::vector<std::string> Environment(const Program& program) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view known = *entry;
    const bool replaced =
        std::any_of(program.environment.begin(), program.environment.end(), [&](const auto& added) {
          return known.starts_with(added.first) &&
                 known.substr(added.first.size()).starts_with('=');
        });
    if (!replaced) all.emplace_back(known);
  }
  for (const auto& [name, value] : program.environment) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Runs in the child after fork, where nothing may be allocated.
[[noreturn]] void Become(const Program& program, char* const* command, char* const* environment,
                         int report, pid_t group, pid_t parent) {
  // Join before checking: if the parent dies after the check, the guard kills us.
  const bool joined = setpgid(0, group) == 0;
  if (joined && getppid() != parent) _exit(127);
  if (program.in >= 0) dup2(program.in, STDIN_FILENO);
  if (program.out >= 0) dup2(program.out, STDOUT_FILENO);
  if (program.err >= 0) dup2(program.err, STDERR_FILENO);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  signal(SIGXFSZ, SIG_DFL);
  if (joined && (program.directory.empty() || chdir(program.directory.c_str()) == 0)) {
    execvpe(command[0], command, environment);
  }
  const int why = errno;
  (void)!write(report, &why, sizeof(why));
  _exit(127);
}

}  // namespace

Result<std::unique_ptr<ProcessGroup>> ProcessGroup::Make() {
  MUSTER_ASSIGN(Pipe alive, MakePipe());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, alive.read.get(), STDIN_FILENO);
  for (const int output : {STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&actions, output, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  std::vector<std::string> texts = {"muster-guard", "-c", kGuard};
  const std::vector<char*> command = Pointers(texts);
  std::array<char*, 1> environment = {nullptr};
  pid_t guard = 0;
  const int failed =
      posix_spawn(&guard, kShell, &actions, &attributes, command.data(), environment.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    return Error{Code::kUnavailable,
                 std::string("cannot start ") + kShell + ": " + std::strerror(failed)};
  }
  return std::unique_ptr<ProcessGroup>(new ProcessGroup(guard, std::move(alive.write)));
}

ProcessGroup::~ProcessGroup() {
  Signal(SIGKILL);
  waitpid(guard_, nullptr, 0);
}

void ProcessGroup::Signal(int signal) const { kill(-guard_, signal); }

Result<pid_t> ProcessGroup::Start(const Program& program) const {
  MUSTER_ASSIGN(Pipe report, MakePipe());  // closed by a successful exec
  std::vector<std::string> command_texts = program.command;
  std::vector<std::string> environment_texts = Environment(program);
  const std::vector<char*> command = Pointers(command_texts);
  const std::vector<char*> environment = Pointers(environment_texts);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    Become(program, command.data(), environment.data(), report.write.get(), guard_, parent);
  }
  const std::string failed = "cannot start " + program.command[0] + ": ";
  if (pid < 0) return Error{Code::kUnavailable, failed + std::strerror(errno)};
  report.write.Close();
  int why = 0;
  if (read(report.read.get(), &why, sizeof(why)) == sizeof(why)) {
    waitpid(pid, nullptr, 0);
    return Error{Code::kInvalid, failed + std::strerror(why)};
  }
  return pid;
}

}  // namespace muster
