#include "plan/history_states.h"

namespace muster::plan {

const Json& DetailsOf(const Json& event) {
  static const Json kNone = Json::object();
  for (const auto& [key, value] : event.items()) {
    if (key.ends_with("EventDetails")) return value;
  }
  return kNone;
}

const std::string& HistoryStates::Of(const Json& event) {
  const std::string type = event.value("type", "");
  std::string& state = state_of_[event.value("id", int64_t{0})];
  if (type.ends_with("StateEntered") || type.ends_with("StateExited")) {
    state = DetailsOf(event).value("name", "");
  } else if (const auto before = state_of_.find(event.value("previousEventId", int64_t{0}));
             before != state_of_.end()) {
    state = before->second;
  }
  return state;
}

}  // namespace muster::plan
