#include "core/wait_watch.h"

#include "core/guard.h"

namespace muster {

WaitWatch::WaitWatch(What what, Say say, Env& env, std::chrono::milliseconds patience)
    : what_(std::move(what)), say_(std::move(say)), env_(env), patience_(patience) {
  if (!say_) return;
  thread_ = std::jthread([this](const std::stop_token& stop) {
    LogThrown("what is waited for", [&] { Watch(stop); });
  });
}

void WaitWatch::Watch(const std::stop_token& stop) {
  std::string said;
  while (env_.Sleep(patience_, stop)) {
    const std::string what = what_();
    if (what != said) say_(what);
    said = what;
  }
  if (!said.empty()) say_("");
}

}  // namespace muster
