#pragma once

#include <sys/types.h>

#include <fstream>
#include <string>
#include <vector>

namespace muster::testing {

// Whether a process is gone, or a zombie that has not been reaped.
inline bool IsDead(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string ignored;
  std::string name;
  std::string state;
  return !(stat >> ignored >> name >> state) || state == "Z" || state == "X";
}

// The process ids in a file, to which programs of a test have appended theirs.
inline std::vector<pid_t> ReadPids(const std::string& path) {
  std::ifstream file(path);
  std::vector<pid_t> pids;
  for (pid_t pid = 0; file >> pid;) pids.push_back(pid);
  return pids;
}

}  // namespace muster::testing
