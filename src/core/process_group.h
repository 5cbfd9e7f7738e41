#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/descriptor.h"
#include "muster/result.h"

namespace muster {

// A program to start.
struct Program {
  std::vector<std::string> command;                                   // not empty
  std::vector<std::pair<std::string, std::string>> environment = {};  // added to ours
  std::string directory = {};                                         // empty: ours
  int in = -1;  // stdin, stdout and stderr; -1: ours
  int out = -1;
  int err = -1;
};

// A process group that ends with this process, even on SIGKILL: the next owner of the work must not
// run alongside programs that this one started.
//
// Its first process is a guard: a shell that waits for the end of a pipe, which comes when we close
// it or die, and then kills the group. Descendants die too, unless they deliberately leave the
// group.
//
// May be used from any thread, one at a time.
class ProcessGroup {
 public:
  // kUnavailable: out of processes or descriptors.
  static Result<std::unique_ptr<ProcessGroup>> Make();

  // Kills the remaining processes.
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  // Starts a program in the group. The caller must wait for it. kInvalid: could not be started, and
  // why.
  Result<pid_t> Start(const Program& program) const;

  // Sends the signal to all programs of the group. The guard ignores termination signals.
  void Signal(int signal) const;

 private:
  ProcessGroup(pid_t guard, Descriptor alive) : guard_(guard), alive_(std::move(alive)) {}

  const pid_t guard_;  // also the group id
  Descriptor alive_;   // closed when we end
};

}  // namespace muster
