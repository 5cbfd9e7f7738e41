#pragma once

#include <string>
#include <vector>

namespace muster::bench {

struct ProgramCost {
  double seconds = 0;
  double cpu_seconds = 0;  // of the program and what it has waited for
  double peak_mebibytes = 0;
};

// Runs a program to its end, its output thrown away. Throws if it cannot be started or fails, with
// what it said last.
ProgramCost RunProgram(const std::vector<std::string>& command);

// The `muster` beside this program.
std::string MusterProgram();

// Whether a command of this name can be run.
bool HasProgram(const std::string& name);

}  // namespace muster::bench
