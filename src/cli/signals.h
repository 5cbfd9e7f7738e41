#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <thread>

namespace muster::cli {

// While it lives, the first SIGINT, SIGTERM or SIGHUP asks for a stop, so that the command can
// drain: finish or hand over what it holds. What waits for the network two seconds later is
// interrupted (base/interrupt.h): a server that is silent cannot keep the process. A second SIGINT
// or SIGTERM ends the process at once with exit code 130; what was held then comes back when its
// lease ends. SIGHUP stays ignored where it was (nohup).
//
// What is left of the process when it is gone is short: telling how the command ended. A first
// signal then changes nothing, so that the report and the exit code are not lost; a second one
// still ends the process.
//
// Only one may live at a time. Child processes don't inherit the handling.
class StopOnSignals {
 public:
  // `notice` is written to stderr at the first signal.
  explicit StopOnSignals(std::string notice = "\ndraining… press Ctrl-C again to abort\n");
  ~StopOnSignals();
  StopOnSignals(const StopOnSignals&) = delete;
  StopOnSignals& operator=(const StopOnSignals&) = delete;

  std::stop_token Token() const { return stop_.get_token(); }

 private:
  bool EndsWithin(std::chrono::milliseconds time) const;

  std::stop_source stop_;
  int wake_[2];
  std::thread waiter_;
};

}  // namespace muster::cli
