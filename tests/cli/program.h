#pragma once

#include <map>
#include <string>
#include <vector>

#include "support/temporary_folder.h"

namespace muster::testing {

struct Outcome {
  int exit_code = -1;  // -1: killed by a signal
  std::string out;
  std::string err;
};

// Runs the built program to its end, in the folder `folder`, with `variables` in its environment.
Outcome RunMuster(const std::vector<std::string>& arguments, const std::string& folder = ".",
                  const std::map<std::string, std::string>& variables = {});

// The same for any command.
Outcome RunCommand(const std::vector<std::string>& command, const std::string& folder = ".",
                   const std::map<std::string, std::string>& variables = {});

class TempFolder : public TemporaryFolder {
 public:
  std::string operator/(const std::string& name) const { return path() + "/" + name; }

  // Every file below it with its size and a hash of its content: equal before and after means that
  // nothing was written.
  std::map<std::string, std::string> Snapshot() const;
};

// What the error of a bad store must look like: `exit_code`, and on stderr one line "muster: …" and
// one "  hint: …". Returns what is wrong with `outcome`; empty: nothing.
std::string NotAClearError(const Outcome& outcome, int exit_code);

}  // namespace muster::testing
