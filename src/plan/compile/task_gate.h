#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/mutex.h"
#include "muster/states.h"
#include "plan/compile/state_table.h"

namespace muster::plan {

// Forwards the calls of one run to executors, each with its part of the plan, and tracks which
// tasks are in progress. While it is closed, no task starts: its call waits until the gate opens or
// the run ends. Thread-safe. The executors must outlive it.
class TaskGate final : public states::ExecutorWrapper {
 public:
  enum class Passage { kNone, kInside, kHeld, kSucceeded, kFailed };

  explicit TaskGate(std::vector<states::TaskExecutor*> executors)
      : ExecutorWrapper(std::move(executors)) {}

  // Sets the run's states, before it is driven. Forgets the calls of any run driven here before.
  void Begin(StateTable states) EXCLUDES(mutex_);

  void Close() EXCLUDES(mutex_);
  void Open() EXCLUDES(mutex_);

  bool closed() const EXCLUDES(mutex_);

  // Whether no task is in progress.
  bool IsEmpty() const EXCLUDES(mutex_);

  // The outcome of a state's last call in this process.
  Passage PassageOf(const std::string& state) const EXCLUDES(mutex_);

  // The rows reported by calls in progress, by state.
  std::map<std::string, int64_t> LiveRows() const EXCLUDES(mutex_);

  // What calls in progress wait for, by state.
  std::map<std::string, std::string> LiveWaits() const EXCLUDES(mutex_);

  states::TaskOutcome Start(const states::TaskCall& call, states::TaskContext& context) override;
  states::TaskOutcome Poll(const states::TaskCall& call, const Json& resume,
                           states::TaskContext& context) override;
  void Cancel(const states::TaskCall& call, const Json& resume,
              states::TaskContext& context) override;

 private:
  class MeteredContext;

  // The call, with its part of the plan.
  states::TaskCall Labelled(const states::TaskCall& call) const EXCLUDES(mutex_);

  // False: the gate is closed, and the call must wait.
  bool Enter(const std::string& state, bool begins) EXCLUDES(mutex_);
  states::TaskOutcome Leave(const std::string& state, states::TaskOutcome outcome) EXCLUDES(mutex_);

  mutable Mutex mutex_;
  bool closed_ GUARDED_BY(mutex_) = false;
  StateTable states_ GUARDED_BY(mutex_);
  // By state.
  std::map<std::string, Passage> passages_ GUARDED_BY(mutex_);
  std::map<std::string, int64_t> rows_ GUARDED_BY(mutex_);
  std::map<std::string, std::string> waits_ GUARDED_BY(mutex_);
};

}  // namespace muster::plan
