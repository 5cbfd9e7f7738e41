#include "plan/compile/history_states.h"

#include "core/json_fields.h"

namespace muster::plan {

const Json& DetailsOf(const Json& event) {
  static const Json kNone = Json::object();
  for (const auto& [key, value] : event.items()) {
    if (key.ends_with("EventDetails")) return value;
  }
  return kNone;
}

const std::string& HistoryStates::Of(const Json& event) {
  const std::string type = TextIn(event, "type");
  std::string& state = state_of_[NumberIn(event, "id")];
  if (type.ends_with("StateEntered") || type.ends_with("StateExited")) {
    state = TextIn(DetailsOf(event), "name");
  } else if (const auto before = state_of_.find(NumberIn(event, "previousEventId"));
             before != state_of_.end()) {
    state = before->second;
  }
  return state;
}

}  // namespace muster::plan
