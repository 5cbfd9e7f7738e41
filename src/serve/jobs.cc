#include "serve/jobs.h"

#include "core/guard.h"
#include "core/mutex.h"

namespace muster::serve {

Status Jobs::Start(const std::string& name, Work work,
                   std::function<void(const Result<std::string>&)> ended) {
  const MutexLock lock(mutex_);
  if (const auto found = states_.find(name); found != states_.end() && found->second.running) {
    return Error{Code::kConflict, name + " is already running"};
  }
  if (running_ >= most_) {
    return Error{Code::kUnavailable, "job limit (" + std::to_string(most_) + ") reached",
                 "wait until one has ended, or use the command line"};
  }
  ++running_;
  states_[name] = {};
  // A previous job of this name has ended, or is about to.
  threads_[name] = std::jthread(
      [this, name, work = std::move(work), ended = std::move(ended)](const std::stop_token& stop) {
        const Result<std::string> outcome = GuardedThread(name, [&] { return work(stop); });
        LogThrown(name, [&] { ended(outcome); });
        const MutexLock done(mutex_);
        --running_;
        states_[name] = {.running = false,
                         .failed = !outcome,
                         .text = outcome ? *outcome : outcome.error().ToString()};
      });
  return {};
}

std::optional<Jobs::State> Jobs::Find(const std::string& name) const {
  const MutexLock lock(mutex_);
  const auto found = states_.find(name);
  if (found == states_.end()) return std::nullopt;
  return found->second;
}

}  // namespace muster::serve
