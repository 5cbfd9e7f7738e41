#pragma once

#include <optional>
#include <string>

namespace muster::work {

// What a migration waits for, of what its engine knows and of calls that do not return. Each change
// returns what to report, if anything: what is waited for, repeated while it lasts, since nothing
// else would make an observer show that time passes; empty: nothing any more. Not thread-safe.
class WaitReport {
 public:
  using Change = std::optional<std::string>;

  // By the engine, which knows why; empty: nothing.
  Change Known(const std::string& what);

  // As CallWatch::Look; empty: nothing.
  Change Unanswered(const std::string& what);

  // An item has made progress.
  Change Advanced();

  // What a look at calls has found; empty if there was progress since the last one: then a call
  // that lasts is no wait of the whole.
  std::string Looked(std::string found);

 private:
  Change Changed();

  std::string known_;
  std::string unanswered_;
  bool waits_ = false;     // as last reported
  bool advanced_ = false;  // since the last look
};

}  // namespace muster::work
