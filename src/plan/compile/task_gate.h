#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "plan/compile/state_table.h"
#include "states/states.h"

namespace muster::plan {

// Passes the calls of one run on, each with the part of the plan that it is for, and knows which
// tasks go on. Once it is closed, no task is begun: it waits until the gate is opened or its run
// has ended. Safe to use from any thread; what it is given must outlive it.
class TaskGate final : public states::ExecutorWrapper {
 public:
  enum class Passage { kNone, kInside, kHeld, kSucceeded, kFailed };

  explicit TaskGate(std::vector<states::TaskExecutor*> executors)
      : ExecutorWrapper(std::move(executors)) {}

  // The states of the run whose calls pass from now on.
  void SetStates(StateTable states);

  void Close();
  void Open();

  bool closed() const;

  // Whether no task goes on.
  bool IsEmpty() const;

  // What became of the last call of a state, here in this process.
  Passage PassageOf(const std::string& state) const;

  // The rows that calls which go on have told of, by state.
  std::map<std::string, int64_t> LiveRows() const;

  // What calls that go on wait for, by state.
  std::map<std::string, std::string> LiveWaits() const;

  states::TaskOutcome Start(const states::TaskCall& call, states::TaskContext& context) override;
  states::TaskOutcome Poll(const states::TaskCall& call, const Json& resume,
                           states::TaskContext& context) override;
  void Cancel(const states::TaskCall& call, const Json& resume,
              states::TaskContext& context) override;

 private:
  class MeteredContext;

  // The call with the part that it is for.
  states::TaskCall Labelled(const states::TaskCall& call) const;

  // False: it is closed, and the call has to wait.
  bool Enter(const std::string& state, bool begins);
  states::TaskOutcome Leave(const std::string& state, states::TaskOutcome outcome);

  mutable std::mutex mutex_;
  bool closed_ = false;
  StateTable states_;
  std::map<std::string, Passage> passages_;
  std::map<std::string, int64_t> rows_;
  std::map<std::string, std::string> waits_;
};

}  // namespace muster::plan
