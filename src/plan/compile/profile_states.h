#pragma once

#include <memory>
#include <optional>
#include <string>

#include "muster/task.h"
#include "plan/model/chain.h"
#include "plan/model/plan.h"

namespace muster::plan {

inline constexpr size_t kMaxRunNameBytes = 70;  // executions append to it

// The run that a state machine is for; without an id, none.
struct RunIdentity {
  std::string name = {};  // RunState::id
  std::string id = {};    // the incarnation: unique, where a name may exist on several stores
  int64_t attempt = 1;
  std::string folder = {};        // of relative paths; empty: the process's working folder
  bool unmarked_staging = false;  // staged data may name no run: an older version began it
};

// What the parts of a plan are in a state machine, for one kind of profile. States find the run's
// inputs at `$.NAME`; a task leaves its result in `$.results['TASK']`.
class ProfileStates {
 public:
  virtual ~ProfileStates() = default;

  // Whether ranks are state machines of their own.
  virtual bool HasChildMachines() const = 0;

  virtual std::string PhaseName(const Rank& rank, Phase phase) const = 0;
  virtual std::string NotifyName(const Rank& rank, Phase phase, const std::string& task) const = 0;

  // The state in which a task begins, and, if that is another,
  virtual std::string FirstState(const Rank& rank, Phase phase, const std::string& task) const = 0;

  // the state by whose output it is known that a task has succeeded.
  virtual std::string LastState(const Rank& rank, Phase phase, const std::string& task) const = 0;

  // The states of a task that has to be done; when all tries have failed, {Error, Cause} is the
  // task's result and `failed` names the state that follows.
  virtual void AddExtract(Chain& chain, const Rank& rank, const ExtractTask& task,
                          const std::string& failed) const = 0;
  virtual void AddTransform(Chain& chain, const Rank& rank, const TransformTask& task,
                            const std::string& failed) const = 0;

  // Checks that all rows of a rank have arrived, from `$.extract.results` and
  // `$.transform.results`; its result is {"failed": [], "result": …}. None: the profile has no such
  // check.
  virtual std::optional<Json> Reconcile(const Rank& rank) const = 0;
  virtual std::string ReconcileName(const Rank& rank) const = 0;

  // Notifies people that rows are missing, with the error at `$.unreconciled`; leaves {"failed":
  // [{"task": …}]} at `$.reconcile`.
  virtual Json NotifyUnreconciled(const Rank& rank) const = 0;

  // Notifies people that a task has failed; leaves something in `$.failed` in any case.
  virtual Json Notify(const Rank& rank, Phase phase, const std::string& task) const = 0;

  // Records that a migration begins, and its status later. Without a Retry of their own they get
  // RetryService.
  virtual Json Initialize() const = 0;
  virtual Json Update(RunStatus status) const = 0;

  // Stops an extraction that continues elsewhere, by the parameters of its first state at `$.asked`
  // and that state's result at `$.answered`. None: what runs ends with the execution.
  virtual std::optional<Json> StopExtract() const = 0;

  // Runs the state machine of a rank as a child. Only where there are such.
  virtual Json StartRank(const Rank& rank, const Json& input) const = 0;
};

// `run`, which they are for: a target refuses what comes of an earlier attempt of it.
std::unique_ptr<ProfileStates> NewLocalStates(const Plan& plan, const Profile& profile,
                                              const RunIdentity& run);
std::unique_ptr<ProfileStates> NewAwsStates(const Plan& plan, const RunIdentity& run);
std::unique_ptr<ProfileStates> NewProfileStates(const Plan& plan, const Profile& profile,
                                                const RunIdentity& run = {});

// The Retry of a task: these errors and whatever else can fail, but for a time-out.
Json RetryOf(const RetryRule& rule, const std::vector<std::string>& errors);

// A Catch of everything, with the error at a path.
Json CatchAll(const std::string& path, const std::string& next);

// The notification that a task has failed.
Json FailureMessage(const Rank& rank, Phase phase, const std::string& task,
                    const std::string& what);

// How often a service is asked again that could not be reached.
Json RetryService();

}  // namespace muster::plan
