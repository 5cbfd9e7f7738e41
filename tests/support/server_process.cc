#include "support/server_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace muster::testing {
namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

// Ends the server and removes everything once its stdin closes, which happens even if the test
// process is killed.
constexpr const char* kJanitor = R"(
cat > /dev/null
if read -r server 2> /dev/null < "$1/server.pid"; then
  kill -s KILL -- "-$server"
  tries=0
  while kill -s 0 -- "-$server" && [ $tries -lt 100 ]; do
    sleep 0.1
    tries=$((tries + 1))
  done
fi
rm -rf "$1"
)";

// Null if this process is not root, or there is nobody.
const passwd* ServerUser() { return geteuid() == 0 ? getpwnam("nobody") : nullptr; }

std::vector<char*> Pointers(Arguments& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

pid_t Spawn(Arguments command, const Arguments& settings, int input, const std::string& log) {
  Arguments surroundings = settings;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    surroundings.emplace_back(*variable);
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (input >= 0) {
    posix_spawn_file_actions_adddup2(&actions, input, 0);
  } else {
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  }
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // Not affected by the terminal's Ctrl-C, and in its own group.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, command.front().c_str(), &actions, &attributes,
                                 Pointers(command).data(), Pointers(surroundings).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("cannot start " + command.front());
  return pid;
}

void WaitFor(pid_t pid) {
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

int FreePort() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const bool bound = bind(listener, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                     getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  close(listener);
  if (!bound) throw std::runtime_error("no free port on 127.0.0.1");
  return ntohs(address.sin_port);
}

std::string NoServerUser() {
  if (geteuid() != 0 || ServerUser() != nullptr) return "";
  return "running as root, and there is no user nobody";
}

ServerProcess::ServerProcess(const std::string& name) {
  std::string folder = (fs::temp_directory_path() / ("muster-" + name + "-XXXXXX")).string();
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("cannot create " + folder);
  folder_ = folder;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  janitor_pipe_ = ends[1];
  janitor_ = Spawn({"sh", "-c", kJanitor, "janitor", folder_}, {}, ends[0], "/dev/null");
  close(ends[0]);
  GiveFolderToServer();
}

ServerProcess::~ServerProcess() {
  if (process_ > 0) End(SIGKILL);
  close(janitor_pipe_);
  WaitFor(janitor_);
}

void ServerProcess::GiveFolderToServer() const {
  const passwd* user = ServerUser();
  if (user == nullptr) return;
  Arguments paths{folder_};
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) paths.push_back(entry.path());
  for (const std::string& path : paths) {
    if (chown(path.c_str(), user->pw_uid, user->pw_gid) != 0) {
      throw std::runtime_error("cannot give " + path + " to " + user->pw_name);
    }
  }
}

void ServerProcess::Start(const Arguments& command, const Arguments& settings) {
  Arguments arguments;
  if (const passwd* user = ServerUser()) {
    arguments = {"setpriv", "--reuid=" + std::to_string(user->pw_uid),
                 "--regid=" + std::to_string(user->pw_gid), "--clear-groups", "--"};
  }
  arguments.insert(arguments.end(), command.begin(), command.end());
  process_ = Spawn(std::move(arguments), settings, -1, folder_ + "/server.log");
  std::ofstream(folder_ + "/server.pid") << process_ << "\n";
}

bool ServerProcess::IsRunning() {
  if (process_ > 0 && waitpid(process_, nullptr, WNOHANG) == process_) process_ = -1;
  return process_ > 0;
}

void ServerProcess::End(int signal) {
  if (process_ <= 0) return;
  Signal(SIGCONT);
  Signal(signal);
  WaitFor(process_);
  process_ = -1;
  fs::remove(folder_ + "/server.pid");
}

void ServerProcess::Signal(int signal) {
  if (process_ > 0) kill(-process_, signal);
}

std::string ServerProcess::Log() const {
  std::ifstream file(folder_ + "/server.log");
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace muster::testing
