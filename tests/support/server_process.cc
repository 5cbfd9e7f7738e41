#include "support/server_process.h"

#include <pwd.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "support/await.h"
#include "support/loopback.h"

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

// Null if this process is not root, or there is no user nobody.
const passwd* ServerUser() { return geteuid() == 0 ? getpwnam("nobody") : nullptr; }

}  // namespace

int FreePort() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int port = BindToLoopback(listener);
  close(listener);
  return port;
}

std::string NoServerUser() {
  if (geteuid() != 0 || ServerUser() != nullptr) return "";
  return "running as root, and there is no user nobody";
}

ServerProcess::ServerProcess(const std::string& name) : janitor_(name, kJanitor) {
  GiveFolderToServer();
}

ServerProcess::~ServerProcess() {
  if (process_ > 0) End(SIGKILL);
}

void ServerProcess::GiveFolderToServer() const {
  const passwd* user = ServerUser();
  if (user == nullptr) return;
  Arguments paths{folder()};
  for (const auto& entry : fs::recursive_directory_iterator(folder()))
    paths.push_back(entry.path());
  for (const std::string& path : paths) {
    if (chown(path.c_str(), user->pw_uid, user->pw_gid) != 0) {
      throw std::runtime_error("cannot give " + path + " to " + user->pw_name);
    }
  }
}

void ServerProcess::Start(const Arguments& command, const Arguments& settings) {
  process_ = Spawn(AsUser(ServerUser(), command), settings, -1, folder() + "/server.log");
  std::ofstream(folder() + "/server.pid") << process_ << "\n";
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
  fs::remove(folder() + "/server.pid");
}

void ServerProcess::Signal(int signal) {
  if (process_ > 0) kill(-process_, signal);
}

void ServerProcess::AwaitReady(const std::function<bool()>& is_ready,
                               std::chrono::seconds patience) {
  bool ready = false;
  const bool decided = Await([&] { return (ready = is_ready()) || !IsRunning(); }, patience);
  if (ready) return;
  throw std::runtime_error((decided ? "the server ended: " : "the server does not start: ") +
                           Log());
}

std::string ServerProcess::Log() const { return ReadText(folder() + "/server.log"); }

}  // namespace muster::testing
