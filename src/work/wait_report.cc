#include "work/wait_report.h"

#include <utility>

namespace muster::work {

WaitReport::Change WaitReport::Known(const std::string& what) {
  known_ = what;
  if (what.empty()) unanswered_.clear();
  return Changed();
}

WaitReport::Change WaitReport::Unanswered(const std::string& what) {
  unanswered_ = what;
  return Changed();
}

WaitReport::Change WaitReport::Advanced() {
  advanced_ = true;
  known_.clear();
  unanswered_.clear();
  return Changed();
}

std::string WaitReport::Looked(std::string found) {
  if (std::exchange(advanced_, false)) return {};
  return found;
}

WaitReport::Change WaitReport::Changed() {
  const std::string& what = known_.empty() ? unanswered_ : known_;
  const bool waited = std::exchange(waits_, !what.empty());
  if (!waited && !waits_) return std::nullopt;
  return what;
}

}  // namespace muster::work
