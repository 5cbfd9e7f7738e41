#include "plan/model/chain.h"

#include "core/sha256.h"

namespace muster::plan {
namespace {

constexpr size_t kMaxStateName = 80;
constexpr size_t kHashDigits = 8;

// Counted as by AWS: states are entered and exited; calls are scheduled, started and ended, and
// submitted if they wait for a job; a Parallel starts and ends.
int64_t EventsOf(const Json& state) {
  const std::string type = state.value("Type", "");
  if (type == "Parallel") return 4;
  if (type != "Task") return 2;
  const std::string resource = state.value("Resource", "");
  return resource.find(".sync") == std::string::npos ? 5 : 6;
}

void Add(StateCount& count, const StateCount& other) {
  count.transitions += other.transitions;
  count.events += other.events;
}

}  // namespace

void CountRange::Add(const CountRange& other) {
  plan::Add(quick, other.quick);
  plan::Add(slow, other.slow);
}

std::string StateName(const std::string& name) {
  if (name.size() <= kMaxStateName) return name;
  return name.substr(0, kMaxStateName - kHashDigits - 1) + "-" +
         Sha256Hex(name).substr(0, kHashDigits);
}

void Chain::Add(const std::string& name, Json state, const CountRange& times) {
  if (states_.empty()) start_ = name;
  for (const std::string& before : open_) {
    Json& leading = states_[before];
    leading[leading["Type"] == "Choice" ? "Default" : "Next"] = name;
  }
  const int64_t events = EventsOf(state);
  count_.Add({{times.quick.transitions, times.quick.transitions * events},
              {times.slow.transitions, times.slow.transitions * events}});
  Put(name, std::move(state));
  open_ = {name};
}

void Chain::AddSide(const std::string& name, Json state) {
  Put(name, std::move(state));
  open_.push_back(name);
}

void Chain::AddOther(const std::string& name, Json state) { Put(name, std::move(state)); }

void Chain::Put(const std::string& name, Json state) {
  names_.push_back(name);
  states_[name] = std::move(state);
}

Json Chain::Finish() {
  for (const std::string& last : open_) states_[last]["End"] = true;
  open_.clear();
  return {{"StartAt", start_}, {"States", std::move(states_)}};
}

}  // namespace muster::plan
