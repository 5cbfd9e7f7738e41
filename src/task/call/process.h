#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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
  bool overflowed = false;  // it printed more than it may, and was ended
};

// Runs a program to its end, in a process group of its own, which is ended with it: nothing it has
// started in the group survives. Ended early on `stop` and when it prints too much, and killed when
// this process ends, however it does.
//
// kInvalid: it could not be started; says why.
Result<ProcessResult> RunProcess(const ProcessSpec& spec, std::stop_token stop);

}  // namespace muster::task
