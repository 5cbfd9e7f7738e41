#include "task/call/wait_watch.h"

#include <condition_variable>
#include <mutex>

#include "core/guard.h"

namespace muster::task {

WaitWatch::WaitWatch(What what, OnWait say, std::chrono::milliseconds patience)
    : what_(std::move(what)), say_(std::move(say)), patience_(patience) {
  if (!say_) return;
  thread_ = std::jthread([this](const std::stop_token& stop) {
    LogThrown("what is waited for", [&] { Watch(stop); });
  });
}

void WaitWatch::Watch(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any ended;
  std::unique_lock lock(mutex);
  std::string said;
  while (!ended.wait_for(lock, stop, patience_, [] { return false; }) && !stop.stop_requested()) {
    const std::string what = what_();
    if (what != said) say_(what);
    said = what;
  }
  if (!said.empty()) say_("");
}

}  // namespace muster::task
