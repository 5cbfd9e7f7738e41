#include "sim/states_world.h"

#include <algorithm>

#include "core/json_equal.h"
#include "sim/states_machine.h"
#include "sim/stored_flow.h"
#include "states/states.h"

namespace muster::sim {

using states::FlowStatus;
using std::chrono::seconds;

// The service that tasks call: remote, and remembers its requests.
class StatesWorld::Service final : public states::TaskExecutor {
 public:
  Service(StatesWorld& world, std::string process) : world_(world), process_(std::move(process)) {}

  bool Runs(std::string_view resource) const override { return resource.starts_with("sim:"); }

  states::TaskOutcome Start(const states::TaskCall& call, states::TaskContext& context) override {
    world_.Called(call, process_);
    if (call.resource == "sim:slow") {
      // Longer than a lease: only KeepAlive holds it.
      for (nanoseconds slept{0}; slept < world_.terms_.lease * 8 / 5; slept += seconds(4)) {
        if (!context.KeepAlive()) return states::TaskFailure{"Cancelled", ""};
        context.env().Sleep(seconds(4), {});
      }
      world_.sim_.Sometimes("a call takes longer than a lease");
    }
    for (;;) {
      // It may arrive after the caller has gone, so it must not refer to it.
      const bool asks = call.resource == "sim:ask.waitForTaskToken";
      auto reached = world_.wire_.Call<bool>(
          "call " + call.state, true,
          [world = &world_, token = call.token, asks](bool) -> Result<bool> {
            world->reached_.insert(token);
            if (asks) world->asked_.insert(token);
            return true;
          });
      if (reached) {
        states::TaskOutcome answer =
            call.resource == "sim:notify" ? world_.Notify(call) : AnswerOf(call);
        if (std::holds_alternative<states::TaskFailure>(answer)) world_.Failed(call);
        return answer;
      }
      if (!context.KeepAlive()) return states::TaskFailure{"Cancelled", ""};
      context.env().Sleep(seconds(1), {});
    }
  }
  states::TaskOutcome Poll(const states::TaskCall& call, const Json&,
                           states::TaskContext& context) override {
    return Start(call, context);
  }
  void Cancel(const states::TaskCall&, const Json&, states::TaskContext&) override {}

 private:
  StatesWorld& world_;
  std::string process_;
};

StatesWorld::StatesWorld(Simulation& sim) : sim_(sim), wire_(sim) {
  store_ = std::make_unique<FaultyStore>(
      sim, StoreObserver{.sends = [this](const store::Change& change) { Sends(change); },
                         .changed = [this](const store::Change& change,
                                           const std::optional<store::Record>& before,
                                           const std::optional<store::Record>& after,
                                           bool) { Changed(change, before, after); },
                         .went_back = [this] { LostPower(); }});
  if (sim.random().OneIn(2)) store_->MayLosePower();
}

std::unique_ptr<states::TaskExecutor> StatesWorld::NewService(const std::string& process) {
  return std::make_unique<Service>(*this, process);
}

// The notification target: refuses the first few, then stays up.
states::TaskOutcome StatesWorld::Notify(const states::TaskCall& call) {
  const std::string execution = call.token.substr(0, call.token.find(':'));
  if (target_down_ > 0) {
    --target_down_;
    ++refused_[execution];
    sim_.Sometimes("47 the target of a notification is down");
    return states::TaskFailure{"Down", "the target does not answer"};
  }
  // The token identifies repeats.
  if (!notified_[execution].insert(call.token).second)
    sim_.Sometimes("47 a notification is sent again under the same token");
  return states::TaskSuccess{Json::object()};
}

bool StatesWorld::AllEnded() {
  for (const auto& [name, input] : inputs_) {
    const auto stored = store_->Truth().Get(states::kKind, name).value();
    if (!stored || states::SaysRunning(stored->body)) return false;
  }
  return true;
}

void StatesWorld::CheckResult(const std::string& name, const Json& flow) {
  const auto status = StatusIn(flow);
  if (!notified_.contains(name) && refused_[name] <= kNotifyRetries)
    Violate("R", name + " went on without the notification, though its target was up");
  const ExpectedEnd expected = ExpectedOf(inputs_.at(name));
  if (expected.status != status) {
    Violate("L", name + " is " + TextIn(flow, "status") + ", not " +
                     std::string(states::NameOf(expected.status)));
  }
  if (status == FlowStatus::kSucceeded && !JsonEqual(flow["output"], expected.output))
    Violate("L", name + " gave " + flow["output"].dump() + ", not " + expected.output.dump());
}

// A process that writes with an epoch has learned that it owns it. After a late claim, or a lost
// reply, the stored owner has not learned of it.
void StatesWorld::Sends(const store::Change& change) {
  if (change.record.kind != states::kKind) return;
  int64_t& known = known_epochs_[{std::string(sim_.CurrentName()), change.record.key}];
  known = std::max(known, change.record.epoch);
}

void StatesWorld::Changed(const store::Change& change, const std::optional<store::Record>& before,
                          const std::optional<store::Record>& after) {
  if (change.record.kind != states::kKind || !after || (before && *before == *after)) return;
  CheckReady(change, *after);
  // A claim, or a change of the due time: the flow is the same.
  if (before && before->body == after->body) return;
  const Json& new_flow = FlowIn(*after);
  const std::string token = TokenIn(new_flow);
  if (!token.empty()) started_.insert(token);
  if (!before) return Created(*after, new_flow);
  const Json& old_flow = FlowIn(*before);
  const std::string was = TokenIn(old_flow);
  if (!was.empty() && was != token) closed_.insert(was);
  if (StatusIn(old_flow) != FlowStatus::kRunning && StatusIn(old_flow) != StatusIn(new_flow)) {
    Violate("P", after->key + " had ended and was changed");
  }
  CheckRest(after->key, old_flow, new_flow);
  if (old_flow.contains("backing_off") && !sim_.faults_on()) return;
  if (old_flow.contains("backing_off") && before->epoch > 1)
    sim_.Sometimes("44 a backoff survives a change of hands");
  if (old_flow.value("wants", "") == "timer" && before->epoch > 1)
    sim_.Sometimes("44 a timer survives a change of hands");
}

// A flow that waits for nothing does not wait for the clock.
void StatesWorld::CheckReady(const store::Change& change, const store::Record& after) {
  const Json& flow = FlowIn(after);
  if (!after.owner.empty() || StatusIn(flow) != FlowStatus::kRunning) return;
  const std::string wants = flow.value("wants", "nothing");
  const bool called = wants == "task" && !flow["task"].contains("resume");
  if ((wants == "nothing" || called) && !change.due.HasCome())
    Violate("V", after.key + " waits for nothing, but is not due at once");
}

void StatesWorld::Created(const store::Record& record, const Json& flow) {
  if (flow["state"] == "Rest") rests_since_.try_emplace(record.key, StoresTime());
  if (flow["state"] == "One") CheckConcurrency(record.key);
}

void StatesWorld::CheckRest(const std::string& key, const Json& before, const Json& after) {
  const auto since = rests_since_.find(key);
  const bool over = before["state"] == "Rest" && after["state"] == "Slow";
  if (!over || since == rests_since_.end() || ClocksAreWrong()) return;
  // Clocks have millisecond resolution.
  if (StoresTime() + milliseconds(2) < since->second + kRest)
    Violate("R", key + " went on before its timer");
}

// No more iterations of one execution are in progress than allowed.
void StatesWorld::CheckConcurrency(const std::string& key) {
  const std::string iterations = key.substr(0, key.rfind('.') + 1);
  const auto records =
      store_->Truth().Scan(states::kKind, iterations, "", store::kMaxBatch).value();
  const auto under_way = std::ranges::count_if(
      records, [](const store::Record& record) { return states::SaysRunning(record.body); });
  if (under_way > kConcurrency)
    Violate("B", std::to_string(under_way) + " iterations are under way at " + key);
}

// Started calls are known, and stored results still are.
void StatesWorld::LostPower() {
  std::set<std::string> stored;
  const auto records = store_->Truth().Scan(states::kKind, "", "", store::kMaxBatch).value();
  for (const store::Record& record : records) {
    const std::string token = TokenIn(FlowIn(record));
    stored.insert(token);
    if (closed_.contains(token)) Violate("F", token + ": its answer was lost with the power");
  }
  for (const std::string& token : reached_) {
    if (!closed_.contains(token) && !stored.contains(token))
      Violate("H", token + ": its start was lost with the power");
  }
}

// Delays depend on clocks, so nothing can be said if that of a process is wrong.
bool StatesWorld::ClocksAreWrong() const { return sim_.HasFired(Fault::kClockSkew); }

void StatesWorld::CheckRetry(const states::TaskCall& call) {
  const int64_t retry = RetryOf(call.token);
  if (retry == 0) return;
  const RetryTerms& terms = StatesRetries().at(call.state);
  if (retry > terms.most) Violate("R", call.token + " was retried too often");
  if (ClocksAreWrong()) return;
  const auto failed =
      failed_at_.find(call.token.substr(0, call.token.rfind(':') + 1) + std::to_string(retry - 1));
  if (failed == failed_at_.end()) return;
  const seconds least = terms.interval * (1 << (retry - 1));
  // Clocks have millisecond resolution.
  if (StoresTime() + milliseconds(2) < failed->second + least)
    Violate("B", call.token + " was retried sooner than its backoff says");
}

void StatesWorld::Called(const states::TaskCall& call, const std::string& process) {
  CheckRetry(call);
  if (!started_.contains(call.token))
    Violate("H", call.token + " was called before its start was stored");
  if (reached_.contains(call.token))
    sim_.Sometimes("44 a call whose answer is unknown is made again");
  if (!closed_.contains(call.token)) return;
  const size_t first = call.token.find(':');
  const size_t second = call.token.find(':', first + 1);
  const std::string path = call.token.substr(first + 1, second - first - 1);
  const std::string key = call.token.substr(0, first) + (path.empty() ? "" : "/" + path);
  const auto stored = store_->Truth().Get(states::kKind, key).value();
  if (stored && stored->owner == process && known_epochs_[{process, key}] == stored->epoch &&
      stored->due && *stored->due > store_->Truth().Now().value() &&
      TokenIn(FlowIn(*stored)) != call.token) {
    Violate("F", call.token + " was called again after its answer was stored");
  }
}

}  // namespace muster::sim
