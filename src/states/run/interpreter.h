#pragma once

#include <functional>
#include <memory>
#include <string>

#include "states/asl/definition.h"
#include "states/durable/history.h"
#include "states/run/flow.h"
#include "states/run/payload.h"
#include "states/run/results.h"

namespace muster::states {

// Common to all flows of an execution.
struct ExecutionInfo {
  std::string name;
  std::string machine_name = "machine";
  Value input;
  WallTime start{};
  int64_t redrive_count = 0;
};

// Runs states. It neither waits nor makes calls: a flow runs until it wants something
// (Flow::wants), and continues when its driver provides that. The driver decides where flows are
// stored and who makes the calls, so that the same code runs a machine in memory and on a store.
//
// Used by one thread at a time.
class Interpreter {
 public:
  Interpreter(std::shared_ptr<const Definition> definition, ExecutionInfo info, Env& env,
              JsonataEngine* jsonata, EventLog& log);

  // The flow of a new execution, which has not entered its first state yet.
  Flow Begin();

  // Continues until the flow wants something or has ended.
  void Run(Flow& flow);

  // The call was answered.
  void TaskSucceeded(Flow& flow, Json result);
  void TaskFailed(Flow& flow, Failure failure);
  // A call with ".sync" or ".waitForTaskToken" was accepted and continues elsewhere.
  void TaskSubmitted(Flow& flow, const Json& answer);
  // The call exceeded its timeout, or its heartbeat's.
  void TaskTimedOut(Flow& flow, bool heartbeat);

  // `due` has passed.
  void TimerFired(Flow& flow);

  // Makes the next child of a flow that wants children. A failure (of its ItemSelector) fails the
  // state: pass it to ChildrenFailed.
  Fallible<Flow> StartChild(Flow& parent);

  // A child has ended. True: it failed, and with it more children than are tolerated.
  bool ChildEnded(Flow& parent, const Flow& child);

  // The children have ended, with no more failures than tolerated, or with more. An error comes
  // from `children`; then nothing has changed.
  Status ChildrenSucceeded(Flow& parent, const ChildResults& children);
  void ChildrenFailed(Flow& parent, Failure failure);

  // Fills in the input of a call that writes results of children, before it is made.
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
  void AskForItems(Flow& flow, const ScopeHolder& scope, const Value& input);
  Fallible<Json> ItemsOf(const State& state, const ScopeHolder& scope, const Json& input) const;
  Fallible<void> PlanMap(Flow& flow, const ScopeHolder& scope, Json items);
  Fallible<Json> BatchesOf(const Flow& flow, const ScopeHolder& scope, const Json& items) const;
  Fallible<double> PercentageOf(const State& state, const ScopeHolder& scope) const;
  Fallible<Json> ReadItems(const Flow& flow, const Json& answer);
  void RunPass(Flow& flow);
  void RunChoice(Flow& flow);
  void RunWait(Flow& flow);
  void RunFail(Flow& flow);

  Fallible<Value> EffectiveInput(const Flow& flow) const;
  // Leaves the state with its result: assigns variables, and makes the output.
  void Complete(Flow& flow, const Value& result, const Value& assign_input);
  Fallible<Value> OutputByJsonata(const Flow& flow, const Value& result, bool has_result) const;
  Fallible<Value> OutputByPaths(const Flow& flow, const Value& result) const;
  static Fallible<Value> SelectOutput(const State& state, const ScopeHolder& scope, Value output);
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

// The paths of the children of a flow's current state: their common prefix, and each child's.
std::string ChildPrefix(const Flow& parent);
std::string ChildPath(const Flow& parent, int64_t index);

// Whether a retrier or catcher with these names applies to a failure.
bool MatchesError(const std::vector<std::string>& names, const Failure& failure);

}  // namespace muster::states
