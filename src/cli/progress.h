#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>

#include "core/mutex.h"
#include "muster/env.h"
#include "muster/result.h"

namespace muster::cli {

enum class ProgressMode { kTty, kPlain, kJson, kNone };

// "auto" is a live bar if stderr is a terminal, else plain lines.
Result<ProgressMode> ParseProgressMode(std::string_view name, bool stderr_is_terminal);

// Shows a job's progress to a person or a program:
//   tty    one line with a bar, redrawn in place, at most ten times a second
//   plain  a line every five seconds
//   json   an object on a line every second: {"progress":{"label":…,"done":…,"total":…,…}}
//   none   nothing
// Thread-safe. `out` and `env` must outlive it.
class Progress {
 public:
  // `total` 0: unknown. `width` returns the terminal's columns.
  Progress(ProgressMode mode, std::ostream& out, Env& env, std::string_view label, uint64_t total,
           std::function<int()> width);

  // Ends the display as it is.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // How much of `done` is the work of earlier processes, which is no part of this one's rate.
  void SetEarlier(uint64_t done);

  // `done` counts from the start of the job; `total` may become known or grow.
  void Update(uint64_t done);
  void Update(uint64_t done, uint64_t total);

  // Adds a note to what is shown from now on; empty: none.
  void Note(std::string_view note);

  // Whether to show the time left. Not while the job waits: by the average rate it would only grow.
  void Estimate(bool shown);

  // Prints an event on a line above the bar; as JSON {"event":…}.
  void Say(std::string_view event);

  // Shows the final state and ends. Later calls do nothing.
  void Finish();

 private:
  void Show() REQUIRES(mutex_);
  std::string BarLine(double rate) const REQUIRES(mutex_);
  std::string PlainLine(double rate) const REQUIRES(mutex_);
  std::string JsonLine(double rate) const REQUIRES(mutex_);
  double Rate() const REQUIRES(mutex_);

  const ProgressMode mode_;
  std::ostream& out_;
  Env& env_;
  const std::string label_;
  const std::function<int()> width_;
  Mutex mutex_;
  std::string note_ GUARDED_BY(mutex_);
  uint64_t earlier_ GUARDED_BY(mutex_) = 0;
  uint64_t done_ GUARDED_BY(mutex_) = 0;
  uint64_t total_ GUARDED_BY(mutex_);
  bool estimates_ GUARDED_BY(mutex_) = true;
  bool finished_ GUARDED_BY(mutex_) = false;
  MonoTime started_;
  MonoTime next_ GUARDED_BY(mutex_);
};

// 9s, 4m05s, 3h20m: two units are enough to plan by.
std::string FormatSeconds(uint64_t seconds);

}  // namespace muster::cli
