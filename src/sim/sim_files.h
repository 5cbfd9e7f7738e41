#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/file_calls.h"
#include "sim/simulation.h"

namespace muster::sim {

// The disk shared by all processes. Writes may be partial, the disk may be full for a while, and a
// power failure loses unsynced data, or part of it.
class SimFiles {
 public:
  explicit SimFiles(Simulation& sim) : sim_(sim) {}

  // One process's view of it.
  std::unique_ptr<FileCalls> CallsOf(Env& env);

  // Empty: no such file.
  std::string Content(const std::string& path) const;

 private:
  class Calls;
  struct File {
    std::string bytes;
    std::string synced;  // certainly on disk
    int locked_by = 0;   // the descriptor that holds the lock
  };
  struct Name {
    std::shared_ptr<File> file;
    bool synced = false;
  };

  bool IsFull();
  void MaybeLosePower();
  void LosePower();

  Simulation& sim_;
  std::map<std::string, Name> names_;
  nanoseconds full_until_{0};
  int last_fd_ = 0;
};

}  // namespace muster::sim
