#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "support/spawn.h"

namespace muster::testing {

// A free port on 127.0.0.1.
int FreePort();

// Many servers refuse to run as root. Why this process, being root, has no other user to run them
// as; empty if it has, or is not root.
std::string NoServerUser();

// A server that a test runs: a command with a temporary folder, as an unprivileged user if the test
// runs as root. Both are removed with this object or the whole test process, however it ends.
//
// The command stays in the foreground, and its children in its process group. Functions throw
// std::runtime_error on unintended failures.
class ServerProcess {
 public:
  // Creates the folder, owned by the server's user; `name` is part of its name.
  explicit ServerProcess(const std::string& name);
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  const std::string& folder() const { return janitor_.folder(); }

  // Gives the folder's content to the server's user.
  void GiveFolderToServer() const;

  // `settings` are environment variables, NAME=VALUE. The command's output goes to the log.
  void Start(const std::vector<std::string>& command, const std::vector<std::string>& settings);

  // Returns once the server answers; throws with its log if it ends before or takes too long.
  void AwaitReady(const std::function<bool()>& is_ready,
                  std::chrono::seconds patience = std::chrono::seconds(120));

  bool IsRunning();         // false once it has ended, or if never started
  void End(int signal);     // signals the whole group and waits for the command to end
  void Signal(int signal);  // SIGSTOP and SIGCONT: while stopped it neither answers nor hangs up
  std::string Log() const;

 private:
  Janitor janitor_;
  pid_t process_ = -1;
};

}  // namespace muster::testing
