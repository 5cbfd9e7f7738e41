#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <thread>

namespace muster::cli {

// While it lives, the first SIGINT, SIGTERM or SIGHUP requests a stop, so that the command can
// drain:
// finish or hand over what it holds. Network waits still going two seconds later are interrupted
// (core/interrupt.h): a silent server cannot keep the process. A second SIGINT or SIGTERM ends the
// process at once with exit code 130; held items come back when their leases expire. SIGHUP stays
// ignored if it was (nohup).
//
// After its destruction little is left: reporting the outcome. A first signal is then ignored, so
// that the report and the exit code are not lost; a second one still ends the process.
//
// Only one may live at a time. Child processes do not inherit the handling.
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
