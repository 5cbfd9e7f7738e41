#pragma once

#include <functional>
#include <memory>
#include <string>

#include "states/asl/definition.h"
#include "states/durable/history.h"
#include "states/run/flow.h"
#include "states/run/results.h"

namespace muster::states {

// What all flows of an execution share.
struct ExecutionInfo {
  std::string name;
  std::string machine_name = "machine";
  Value input;
  WallTime start{};
  int64_t redrive_count = 0;
};

inline constexpr size_t kMaxPayloadBytes = 262'144;

// Runs states. It never waits and calls nobody: a flow runs until it wants something (Flow::wants),
// and goes on when it is given that. Whoever drives it decides where flows are kept and who makes
// the calls, so that the same code runs a machine in memory and in a store.
//
// Used by one thread at a time.
class Interpreter {
 public:
  Interpreter(std::shared_ptr<const Definition> definition, ExecutionInfo info, Env& env,
              JsonataEngine* jsonata, EventLog& log);

  // The flow of a new execution, which has not entered its first state yet.
  Flow Begin();

  // Goes on until the flow wants something or has ended.
  void Run(Flow& flow);

  // The call was answered.
  void TaskSucceeded(Flow& flow, Json result);
  void TaskFailed(Flow& flow, Failure failure);
  // A call with ".sync" or ".waitForTaskToken" was accepted and goes on elsewhere.
  void TaskSubmitted(Flow& flow, const Json& answer);
  // It took longer than it may.
  void TaskTimedOut(Flow& flow, bool heartbeat);

  // `due` has passed.
  void TimerFired(Flow& flow);

  // Makes the next child of a flow that wants children. A failure (of its ItemSelector) fails the
  // state: it is to be passed to ChildrenFailed.
  Fallible<Flow> StartChild(Flow& parent);

  // A child has ended. True: it failed, and more than may be tolerated have.
  bool ChildEnded(Flow& parent, const Flow& child);

  // All children have ended well enough, or not. An error is one of `children`; then nothing has
  // happened.
  Status ChildrenSucceeded(Flow& parent, const ChildResults& children);
  void ChildrenFailed(Flow& parent, Failure failure);

  // Before a call that writes results of children is made: fills in its input.
  Status FillResults(Flow& parent, const ChildResults& children);

  // Ends a flow because its siblings failed or the execution was stopped.
  void Abort(Flow& flow);

  // Ends the execution itself, with the last event of its history.
  void End(Flow& root);

  const State& StateOf(const Flow& flow) const;
  const Definition& definition() const { return *definition_; }
  const ExecutionInfo& info() const { return info_; }

 private:
  class ScopeHolder;

  void Enter(Flow& flow);
  void Attempt(Flow& flow);
  void AttemptTask(Flow& flow);
  void AttemptParallel(Flow& flow);
  void AttemptMap(Flow& flow);
  void StartItems(Flow& flow, Json items);
  void MapSucceeded(Flow& flow, const Value& outputs);
  void FailChildren(Flow& flow, Failure failure);
  void WriteResults(Flow& flow, std::optional<Failure> failure);
  void ResultsWritten(Flow& flow);
  std::string MachineOfChildren(const Flow& flow) const;
  std::string MapRun(const Flow& flow) const;
  Fallible<void> PlanMap(Flow& flow, const ScopeHolder& scope, Json items);
  Fallible<Json> ReadItems(const Flow& flow, const Json& answer);
  void RunPass(Flow& flow);
  void RunChoice(Flow& flow);
  void RunWait(Flow& flow);
  void RunFail(Flow& flow);

  Fallible<Value> EffectiveInput(const Flow& flow) const;
  // With the state's result: selects, combines, assigns, leaves the state.
  void Complete(Flow& flow, const Value& result, const Value& assign_input);
  void Leave(Flow& flow, Value output, const Variables& assigned, const std::string& next);
  void StateFailed(Flow& flow, Failure failure);
  bool Retry(Flow& flow, const Failure& failure);
  bool Catch(Flow& flow, const Failure& failure);
  void FlowFailed(Flow& flow, Failure failure);
  Fallible<void> CheckSize(const Flow& flow, const Json& value) const;
  Fallible<std::optional<int64_t>> Number(const Computed& computed, const ScopeHolder& scope) const;
  int64_t Add(Flow& flow, std::string type, std::string name = {}, Value payload = {},
              const Failure& failure = {}, Json details = {});

  std::shared_ptr<const Definition> definition_;
  ExecutionInfo info_;
  Env& env_;
  JsonataEngine* jsonata_;
  EventLog& log_;
};

// Where the children of a flow's current state are found: the beginning of their paths, and each
// one's path.
std::string ChildPrefix(const Flow& parent);
std::string ChildPath(const Flow& parent, int64_t index);

// How many bytes a value has as JSON text, or more than `limit` as soon as that is clear.
size_t JsonBytes(const Json& value, size_t limit);

// Whether an error is one of those that a retrier or catcher names.
bool MatchesError(const std::vector<std::string>& names, const Failure& failure);

}  // namespace muster::states
