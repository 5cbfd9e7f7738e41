#pragma once

#include <pwd.h>
#include <sys/types.h>

#include <string>
#include <vector>

namespace muster::testing {

// Starts a program in its own session, so that the terminal's Ctrl-C does not reach it.
// `settings` are environment variables, NAME=VALUE, added to those of this process. Its stdin is
// `input`, or empty if that is negative; its output is appended to the file `log`. Throws
// std::runtime_error.
pid_t Spawn(std::vector<std::string> command, const std::vector<std::string>& settings, int input,
            const std::string& log);

// The command that runs `command` as another user; unchanged if there is none.
std::vector<std::string> AsUser(const passwd* user, std::vector<std::string> command);

// Waits until a child has ended, and returns its status as waitpid does.
int WaitFor(pid_t pid);

// A temporary folder, and a shell script that cleans up after a server in it. The script gets the
// folder as $1, and its input ends with this object or with the whole test process, however that
// ends.
class Janitor {
 public:
  // `name` is part of the folder's name.
  Janitor(const std::string& name, const std::string& script);
  ~Janitor();  // waits for the script
  Janitor(const Janitor&) = delete;
  Janitor& operator=(const Janitor&) = delete;

  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
  pid_t process_ = -1;
  int pipe_ = -1;
};

// The content of a file; empty if missing.
std::string ReadText(const std::string& path);

}  // namespace muster::testing
