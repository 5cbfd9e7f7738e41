#include "cli/program.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <stdexcept>

namespace muster::testing {
namespace {

std::string Content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

}  // namespace

Outcome RunCommand(const std::vector<std::string>& command, const std::string& folder,
                   const std::map<std::string, std::string>& variables) {
  // Files instead of pipes: nothing can block, however much is written.
  TempFolder captured;
  const std::string out = captured / "out";
  const std::string err = captured / "err";
  std::vector<char*> argv;
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) {
    dup2(open(out.c_str(), O_WRONLY | O_CREAT, 0600), STDOUT_FILENO);
    dup2(open(err.c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
    unsetenv("MUSTER_STORE");
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    if (chdir(folder.c_str()) == 0) execvp(argv[0], argv.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, Content(out), Content(err)};
}

Outcome RunMuster(const std::vector<std::string>& arguments, const std::string& folder,
                  const std::map<std::string, std::string>& variables) {
  std::vector<std::string> command{MUSTER_PROGRAM};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return RunCommand(command, folder, variables);
}

std::map<std::string, std::string> TempFolder::Snapshot() const {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path())) {
    const std::string content = entry.is_regular_file() ? Content(entry.path()) : "";
    files[entry.path()] = std::to_string(content.size()) + " bytes, " +
                          std::to_string(std::hash<std::string>{}(content));
  }
  return files;
}

std::string NotAClearError(const Outcome& outcome, int exit_code) {
  std::istringstream lines(outcome.err);
  std::string error;
  std::string hint;
  std::string more;
  std::getline(lines, error);
  std::getline(lines, hint);
  std::string wrong;
  if (outcome.exit_code != exit_code) {
    wrong += "exit code " + std::to_string(outcome.exit_code) + ", not " +
             std::to_string(exit_code) + "\n";
  }
  if (!error.starts_with("muster: ")) wrong += "no line 'muster: …'\n";
  if (!hint.starts_with("  hint: ")) wrong += "no line '  hint: …'\n";
  if (std::getline(lines, more)) wrong += "more than one error and its hint\n";
  return wrong.empty() ? "" : wrong + outcome.err + outcome.out;
}

}  // namespace muster::testing
