#pragma once

#include <string>
#include <utility>
#include <vector>

#include "muster/states.h"
#include "plan/compile/task_gate.h"
#include "plan/run/runs.h"

namespace muster::plan {

// All that drives runs on a store, put together once: calls of the states pass the gate, and the
// gate passes them on to the executors. The store, `env` and the executors must outlive it.
class RunEngine {
 public:
  // `owner`: says which kind of process drives an execution.
  RunEngine(store::Store& store, Env& env, std::vector<states::TaskExecutor*> executors,
            const std::string& owner)
      : gate_(std::move(executors)),
        states_(store, env, {&gate_},
                states::StatesOptions{
                    .owner = owner, .lease = kRunLease, .idle_wait = milliseconds(100)}),
        runs_(store, states_, env, &gate_) {}

  states::States& states() { return states_; }
  Runs& runs() { return runs_; }

 private:
  TaskGate gate_;
  states::States states_;
  Runs runs_;
};

}  // namespace muster::plan
