#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "muster/result.h"

namespace muster {

// A program to be started.
struct Program {
  std::vector<std::string> command;                                   // not empty
  std::vector<std::pair<std::string, std::string>> environment = {};  // in addition to ours
  std::string directory = {};                                         // empty: ours
  int in = -1;  // its standard input, output and error; -1: ours
  int out = -1;
  int err = -1;
};

// A process group that ends with this process, SIGKILL included: the next owner of the work must
// not run beside programs that this one started.
//
// Its first process is a guard: a shell that waits for the end of a pipe, which comes when we close
// it or are no more, and then kills the group. All that programs start in their turn dies with it,
// unless that leaves the group on purpose.
//
// Safe to use from any thread, by one at a time.
class ProcessGroup {
 public:
  // kUnavailable: there are no processes or descriptors left.
  static Result<std::unique_ptr<ProcessGroup>> Make();

  // Kills what is left of it.
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  // Starts a program in the group. It is the caller's to wait for. kInvalid: it could not be
  // started; says why.
  Result<pid_t> Start(const Program& program) const;

  // Sends it to all programs of the group. The guard withstands what asks for an end.
  void Signal(int signal) const;

 private:
  ProcessGroup(pid_t guard, Descriptor alive) : guard_(guard), alive_(std::move(alive)) {}

  const pid_t guard_;  // and the group's number
  Descriptor alive_;   // closed by our end
};

}  // namespace muster
