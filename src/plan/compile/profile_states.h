#pragma once

#include <memory>
#include <optional>
#include <string>

#include "muster/states.h"
#include "plan/model/chain.h"
#include "plan/model/plan.h"

namespace muster::plan {

inline constexpr size_t kMaxRunNameBytes = 70;  // executions append to it

// The run that a state machine belongs to. Without an id: none.
struct RunIdentity {
  std::string name = {};  // RunState::id
  std::string id = {};    // the incarnation: unique, where a name may exist on several stores
  int64_t attempt = 1;
  std::string folder = {};        // base of relative paths; empty: the process's working folder
  bool unmarked_staging = false;  // accept staged data without a run, from older versions
};

// The states for the parts of a plan, for one kind of profile. States find the run's inputs at
// `$.NAME`; a task leaves its result in `$.results['TASK']`.
class ProfileStates {
 public:
  virtual ~ProfileStates() = default;

  // Whether each rank is its own state machine.
  virtual bool HasChildMachines() const = 0;

  virtual std::string PhaseName(const Rank& rank, Phase phase) const = 0;
  virtual std::string NotifyName(const Rank& rank, Phase phase, const std::string& task) const = 0;

  // The first state of a task.
  virtual std::string FirstState(const Rank& rank, Phase phase, const std::string& task) const = 0;

  // The state whose output shows that a task has succeeded; may be the first.
  virtual std::string LastState(const Rank& rank, Phase phase, const std::string& task) const = 0;

  // Appends the states of a task. Once all retries have failed, the task's result is {Error,
  // Cause}, and `failed` is the next state.
  virtual void AddExtract(Chain& chain, const Rank& rank, const ExtractTask& task,
                          const std::string& failed) const = 0;
  virtual void AddTransform(Chain& chain, const Rank& rank, const TransformTask& task,
                            const std::string& failed) const = 0;

  // Checks that all rows of a rank have arrived, from `$.extract.results` and
  // `$.transform.results`; its result is {"failed": [], "result": …}. None: the profile has no such
  // check.
  virtual std::optional<Json> Reconcile(const Rank& rank) const = 0;
  virtual std::string ReconcileName(const Rank& rank) const = 0;

  // Notifies people of missing rows, with the error at `$.unreconciled`; leaves {"failed":
  // [{"task": …}]} at `$.reconcile`.
  virtual Json NotifyUnreconciled(const Rank& rank) const = 0;

  // Notifies people of a failed task; always leaves a value in `$.failed`.
  virtual Json Notify(const Rank& rank, Phase phase, const std::string& task) const = 0;

  // Records the start of a migration, and later its status. Without a Retry of their own they get
  // RetryService.
  virtual Json Initialize() const = 0;
  virtual Json Update(RunStatus status) const = 0;

  // Stops an extraction that continues remotely, given the parameters of its first state at
  // `$.asked` and that state's result at `$.answered`. None: calls end with the execution.
  virtual std::optional<Json> StopExtract() const = 0;

  // Runs a rank's state machine as a child. Only if HasChildMachines.
  virtual Json StartRank(const Rank& rank, const Json& input) const = 0;
};

// `run` owns the states: a target rejects writes of its earlier attempts.
std::unique_ptr<ProfileStates> NewLocalStates(const Plan& plan, const Profile& profile,
                                              const RunIdentity& run);
std::unique_ptr<ProfileStates> NewAwsStates(const Plan& plan, const RunIdentity& run);
std::unique_ptr<ProfileStates> NewProfileStates(const Plan& plan, const Profile& profile,
                                                const RunIdentity& run = {});

// The Retry of a task: for these errors and all others except timeouts.
Json RetryOf(const RetryRule& rule, const std::vector<std::string>& errors);

// A Catch of everything, with the error at a path.
Json CatchAll(const std::string& path, const std::string& next);

// The notification of a failed task.
Json FailureMessage(const Rank& rank, Phase phase, const std::string& task,
                    const std::string& what);

// The Retry for services that cannot be reached.
Json RetryService();

}  // namespace muster::plan
