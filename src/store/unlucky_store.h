#pragma once

#include <deque>
#include <functional>

#include "store/store_wrapper.h"

namespace muster::store {

// For tests: a store whose next calls fail as configured. `next` is for one call each; when it is
// empty, calls succeed unless the store is `down`.
class UnluckyStore final : public StoreWrapper {
 public:
  enum class Luck { kGood, kDown, kLostRequest, kLostReply, kFull };

  explicit UnluckyStore(Store& store) : StoreWrapper(store) {}

  Result<std::optional<Record>> Get(std::string_view kind, std::string_view key) override {
    return Try([&] { return inner().Get(kind, key); });
  }
  Result<std::vector<Written>> Write(std::span<const Change> changes) override {
    ++writes;
    return Try([&] { return inner().Write(changes); });
  }
  Result<std::vector<Record>> Claim(const ClaimRequest& request) override {
    return Try([&] { return inner().Claim(request); });
  }
  void Wait(std::string_view, milliseconds, std::stop_token) override {
    if (on_wait) on_wait();
  }

  std::deque<Luck> next;
  std::function<void()> on_wait;
  bool down = false;
  int writes = 0;

 private:
  template <class Call>
  auto Try(Call call) -> decltype(call()) {
    Luck luck = down ? Luck::kDown : Luck::kGood;
    if (!next.empty()) {
      luck = next.front();
      next.pop_front();
    }
    if (luck == Luck::kDown) return Error{Code::kUnavailable, "down"};
    if (luck == Luck::kFull) return Error{Code::kFull, "full"};
    if (luck == Luck::kLostRequest) return Error{Code::kUnknownOutcome, "lost"};
    auto answer = call();
    if (luck == Luck::kLostReply) return Error{Code::kUnknownOutcome, "lost"};
    return answer;
  }
};

}  // namespace muster::store
