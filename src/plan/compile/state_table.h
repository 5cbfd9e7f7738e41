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
  kFirst,      // starts a task that later states complete
  kStep,       // a state between the first and the last
  kLast,       // leaving it completes the task
  kNotify,     // notifies people that the task, or the rank's reconciliation, has failed
  kReconcile,  // checks the rows of the rank
  kRankDone,   // the rank has succeeded
};

struct PlanState {
  int64_t rank = 0;
  StateRole role = StateRole::kTask;
  std::optional<Phase> phase = {};  // none: the state belongs to the rank
  std::string task = {};

  bool Begins() const { return role == StateRole::kTask || role == StateRole::kFirst; }
  bool Ends() const { return role == StateRole::kTask || role == StateRole::kLast; }

  bool operator==(const PlanState&) const = default;
};

// The rank, phase and task of each state of a compiled plan, by the state's name.
using StateTable = std::map<std::string, PlanState>;

// Stores an execution's table, before the execution starts. Idempotent.
Status WriteStates(store::Store& store, const std::string& execution, const StateTable& states);

// None: the execution was started by a version that stored no tables. kInvalid: a newer version of
// muster wrote it.
Result<std::optional<StateTable>> ReadStates(store::Store& store, const std::string& execution);

// Derives the table of an execution that was started by such a version.
StateTable StatesOf(const Plan& plan, const Profile& profile);

}  // namespace muster::plan
