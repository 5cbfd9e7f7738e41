#include "plan/compile/task_gate.h"

#include <algorithm>

namespace muster::plan {
namespace {

constexpr const char* kHeld = "muster.held";
constexpr std::chrono::milliseconds kHeldFor{1'000};

states::TaskOutcome Held() { return states::TaskPending{{{kHeld, true}}, kHeldFor}; }

bool DoesTask(const states::TaskCall& call) { return call.part && call.part->does_task; }

}  // namespace

// Records a call's rows and what it waits for.
class TaskGate::MeteredContext final : public states::TaskContext {
 public:
  MeteredContext(TaskGate& gate, states::TaskContext& inner, const std::string& state)
      : gate_(gate), inner_(inner), state_(state) {}

  Env& env() override { return inner_.env(); }
  bool KeepAlive() override { return inner_.KeepAlive(); }
  std::stop_token stop() const override { return inner_.stop(); }
  void Progress(int64_t rows) override {
    const MutexLock lock(gate_.mutex_);
    gate_.rows_[state_] = rows;
  }
  void WaitsFor(const std::string& what) override {
    const MutexLock lock(gate_.mutex_);
    if (what.empty()) {
      gate_.waits_.erase(state_);
    } else {
      gate_.waits_[state_] = what;
    }
  }

 private:
  TaskGate& gate_;
  states::TaskContext& inner_;
  const std::string& state_;
};

void TaskGate::Begin(StateTable states) {
  const MutexLock lock(mutex_);
  states_ = std::move(states);
  passages_.clear();
  rows_.clear();
  waits_.clear();
}

states::TaskCall TaskGate::Labelled(const states::TaskCall& call) const {
  states::TaskCall labelled = call;
  const MutexLock lock(mutex_);
  const auto found = states_.find(call.state);
  if (found == states_.end()) return labelled;
  const PlanState& state = found->second;
  labelled.part = states::PlanPart{
      .rank = state.rank, .phase = state.phase, .task = state.task, .does_task = state.Begins()};
  return labelled;
}

void TaskGate::Close() {
  const MutexLock lock(mutex_);
  closed_ = true;
}

void TaskGate::Open() {
  const MutexLock lock(mutex_);
  closed_ = false;
}

bool TaskGate::closed() const {
  const MutexLock lock(mutex_);
  return closed_;
}

bool TaskGate::IsEmpty() const {
  const MutexLock lock(mutex_);
  return std::none_of(passages_.begin(), passages_.end(),
                      [](const auto& entry) { return entry.second == Passage::kInside; });
}

TaskGate::Passage TaskGate::PassageOf(const std::string& state) const {
  const MutexLock lock(mutex_);
  const auto found = passages_.find(state);
  return found == passages_.end() ? Passage::kNone : found->second;
}

std::map<std::string, int64_t> TaskGate::LiveRows() const {
  const MutexLock lock(mutex_);
  return rows_;
}

std::map<std::string, std::string> TaskGate::LiveWaits() const {
  const MutexLock lock(mutex_);
  return waits_;
}

bool TaskGate::Enter(const std::string& state, bool begins) {
  const MutexLock lock(mutex_);
  passages_[state] = begins && closed_ ? Passage::kHeld : Passage::kInside;
  return passages_[state] == Passage::kInside;
}

states::TaskOutcome TaskGate::Leave(const std::string& state, states::TaskOutcome outcome) {
  const MutexLock lock(mutex_);
  // A pending call is still in progress, wherever it runs.
  if (std::holds_alternative<states::TaskPending>(outcome)) return outcome;
  passages_[state] =
      std::holds_alternative<states::TaskSuccess>(outcome) ? Passage::kSucceeded : Passage::kFailed;
  rows_.erase(state);
  waits_.erase(state);
  return outcome;
}

states::TaskOutcome TaskGate::Start(const states::TaskCall& unlabelled,
                                    states::TaskContext& context) {
  const states::TaskCall call = Labelled(unlabelled);
  if (!DoesTask(call)) return ExecutorWrapper::Start(call, context);
  if (!Enter(call.state, true)) return Held();
  MeteredContext metered(*this, context, call.state);
  return Leave(call.state, ExecutorWrapper::Start(call, metered));
}

states::TaskOutcome TaskGate::Poll(const states::TaskCall& unlabelled, const Json& resume,
                                   states::TaskContext& context) {
  const states::TaskCall call = Labelled(unlabelled);
  if (resume.is_object() && resume.contains(kHeld)) {
    // A process that only cancels the run has no table of its tasks: the call stays held.
    return DoesTask(call) ? Start(call, context) : Held();
  }
  if (!DoesTask(call)) return ExecutorWrapper::Poll(call, resume, context);
  Enter(call.state, false);
  MeteredContext metered(*this, context, call.state);
  return Leave(call.state, ExecutorWrapper::Poll(call, resume, metered));
}

void TaskGate::Cancel(const states::TaskCall& call, const Json& resume,
                      states::TaskContext& context) {
  if (resume.is_object() && resume.contains(kHeld)) return;
  ExecutorWrapper::Cancel(Labelled(call), resume, context);
}

}  // namespace muster::plan
