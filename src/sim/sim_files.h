#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/file_calls.h"
#include "sim/simulation.h"

namespace muster::sim {

// The disk that all processes share. Writes are taken in part, the disk is full for a while, and
// when the power fails, what was not synced is lost, or a part of it.
class SimFiles {
 public:
  explicit SimFiles(Simulation& sim) : sim_(sim) {}

  // As one process sees it.
  std::unique_ptr<FileCalls> CallsOf(Env& env);

  // Empty: there is no such file.
  std::string Content(const std::string& path) const;

 private:
  class Calls;
  struct File {
    std::string bytes;
    std::string synced;  // what the disk has for sure
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
