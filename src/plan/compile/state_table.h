#pragma once

#include <map>
#include <optional>
#include <string>

#include "muster/store.h"
#include "plan/model/plan.h"

namespace muster::plan {

// What a state of a compiled plan does for its task or rank.
enum class StateRole {
  kTask,       // the whole task in one call
  kFirst,      // begins a task that further states complete
  kStep,       // a state between the first and the last
  kLast,       // its exit is the task's success
  kNotify,     // the task, or the rank's reconciliation, has failed: people are notified
  kReconcile,  // checks the rows of the rank
  kRankDone,   // the rank has succeeded
};

struct PlanState {
  int64_t rank = 0;
  StateRole role = StateRole::kTask;
  std::optional<Phase> phase = {};  // none: it is the rank's own
  std::string task = {};

  bool Begins() const { return role == StateRole::kTask || role == StateRole::kFirst; }
  bool Ends() const { return role == StateRole::kTask || role == StateRole::kLast; }

  bool operator==(const PlanState&) const = default;
};

// Which rank, phase and task each state of a compiled plan belongs to, by its name.
using StateTable = std::map<std::string, PlanState>;

// Keeps the table of an execution in the store, before the execution begins. A repeat is fine.
Status WriteStates(store::Store& store, const std::string& execution, const StateTable& states);

// None: a version that kept no tables began the execution. kInvalid: a newer version of muster
// wrote it.
Result<std::optional<StateTable>> ReadStates(store::Store& store, const std::string& execution);

// The table that versions which kept none would have written: for their executions.
StateTable StatesOf(const Plan& plan, const Profile& profile);

}  // namespace muster::plan
