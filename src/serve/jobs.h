#pragma once

#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "core/mutex.h"
#include "muster/result.h"

namespace muster::serve {

// Background jobs, for work that takes longer than a request: a few at a time, each in a thread,
// stopped with the server. Thread-safe.
class Jobs {
 public:
  // Returns the outcome in one sentence.
  using Work = std::function<Result<std::string>(std::stop_token stop)>;

  explicit Jobs(int most) : most_(most) {}

  // kConflict: one of that name is running. kUnavailable: the limit is reached.
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
  mutable Mutex mutex_;
  int running_ GUARDED_BY(mutex_) = 0;
  std::map<std::string, State> states_ GUARDED_BY(mutex_);
  std::map<std::string, std::jthread> threads_ GUARDED_BY(mutex_);
};

}  // namespace muster::serve
