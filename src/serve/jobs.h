#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "muster/result.h"

namespace muster::serve {

// What takes longer than a request: at most a few at a time, each in a thread, stopped with the
// server. Thread-safe.
class Jobs {
 public:
  // Says how it ended, in a sentence.
  using Work = std::function<Result<std::string>(std::stop_token stop)>;

  explicit Jobs(int most) : most_(most) {}

  // kConflict: one of that name is under way. kUnavailable: as many are as may be.
  Status Start(const std::string& name, Work work,
               std::function<void(const Result<std::string>&)> ended);

  struct State {
    bool running = true;
    bool failed = false;
    std::string text = {};  // how it ended
  };
  std::optional<State> Find(const std::string& name) const;

 private:
  const int most_;
  mutable std::mutex mutex_;
  int running_ = 0;
  std::map<std::string, State> states_;
  std::map<std::string, std::jthread> threads_;
};

}  // namespace muster::serve
