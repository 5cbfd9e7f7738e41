#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/env.h"
#include "muster/result.h"

namespace muster::task {

struct ProcessSpec {
  std::vector<std::string> command;                                   // not empty
  std::vector<std::pair<std::string, std::string>> environment = {};  // in addition to ours
  std::string directory = {};                                         // empty: ours
  std::string input = {};
  size_t max_output_bytes = size_t{256} << 10;
  std::chrono::milliseconds grace{5'000};  // between SIGTERM and SIGKILL
  std::function<void(std::string_view line)> log = [](std::string_view) {};  // of standard error
};

struct ProcessResult {
  int exit_code = 0;  // if no signal ended it
  int signal = 0;
  std::string output;       // of standard output, up to the limit
  std::string error_end;    // the last 4 KiB of standard error
  bool overflowed = false;  // terminated: it printed more than the limit
};

// Runs a program in a process group of its own, which is killed when the program ends: nothing it
// started in the group survives. Terminated early on `stop` and when it prints too much, and killed
// when this process ends, even on SIGKILL.
//
// kInvalid: it could not be started, and why. kUnavailable: out of processes or descriptors.
Result<ProcessResult> RunProcess(const ProcessSpec& spec, Env& env, const std::stop_token& stop);

}  // namespace muster::task
