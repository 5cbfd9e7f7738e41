#include "task/data/load_fence.h"

namespace muster::task {

std::string CallOfToken(const std::string& token) {
  return token.substr(0, token.find_last_of(':'));
}

Result<std::optional<std::string>> CheckOpen(const LoadFence& fence, const StoredLoad& stored) {
  if (stored.run != fence.run) return std::optional<std::string>();
  if (stored.attempt > fence.attempt) {
    return Error{Code::kLeaseLost,
                 "attempt " + std::to_string(stored.attempt) + " of " + fence.task +
                     " has started loading; attempt " + std::to_string(fence.attempt) +
                     " is out of date",
                 "this one loaded nothing"};
  }
  if (stored.call == fence.call) return stored.result;
  return std::optional<std::string>();
}

Status CheckHeld(const LoadFence& fence, int64_t epoch, const StoredLoad& stored) {
  if (stored.epoch == epoch) return {};
  return Error{Code::kLeaseLost, "another process has started loading " + fence.task,
               "this one loaded nothing"};
}

}  // namespace muster::task
