#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "muster/states.h"
#include "plan/plan.h"
#include "sim/faulty_store.h"
#include "sim/faulty_wire.h"
#include "sim/parsed.h"
#include "sim/plan_drivers.h"
#include "sim/sim_files.h"

namespace muster::sim {

// A random plan, the services its tasks call, and all invariants of its runs, checked against the
// stored records and the requests to the services.
class PlanWorld {
 public:
  static constexpr char kMigration[] = "m";

  // One task of the plan, and its behaviour.
  struct Task {
    std::string key;  // "extract/OBJECT", "transform/SCRIPT"
    std::string name;
    size_t rank = 0;  // index in the plan
    bool extracts = false;
    int64_t most_retries = 0;
    int64_t busy = 0;      // failing calls per attempt before one succeeds
    bool broken = false;   // fails permanently in the first attempt
    bool slow = false;     // takes longer than a lease
    bool pending = false;  // continues elsewhere, and is polled
    int64_t rows = 0;      // its result
  };

  explicit PlanWorld(Simulation& sim);

  const plan::Plan& plan() const { return plan_; }
  const plan::Plan& edited() const { return edited_; }  // the same with one number changed
  const std::map<std::string, std::string>& inputs() const { return inputs_; }
  FaultyStore& store() { return *store_; }
  const states::StatesOptions& terms() const { return terms_; }

  // Makes the calls of one process.
  std::unique_ptr<states::TaskExecutor> NewExecutor();

  PlanDrivers& drivers() { return drivers_; }

  // Whether the latest stored attempt is completed.
  bool Completed();
  // The stored status of an execution; empty: none.
  std::optional<states::ExecutionStatus> StatusOf(const std::string& execution);
  // Every execution the migration has had, in order.
  const std::vector<std::string>& Executions() const;

  // Compares the end with the plan.
  void CheckEnd();

 private:
  class Executor;

  void DrawPlan();
  void DrawTerms();
  void DrawTasks();
  void Changed(const store::Change& change, const std::optional<store::Record>& before,
               const std::optional<store::Record>& after);
  void RunChanged(const store::Record& before, const store::Record& after);
  void FlowChanged(const std::optional<store::Record>& before, const store::Record& after);
  void Began(const std::string& token, const std::string& state);
  void Ended(const std::string& token, const std::string& state);
  void CheckPools(const std::string& execution, const Task& task);
  bool HasItsObjects(const Task& task) const;
  bool MayFollow(const Task& earlier, const std::string& execution) const;
  states::TaskOutcome AnswerOf(const states::TaskCall& call) const;
  std::string FirstExecution() const;
  bool Succeeds(const Task& task, const std::string& execution, int64_t retry) const;
  bool Deliver(const std::string& dedupe);
  states::TaskOutcome Record(const states::TaskCall& call, states::TaskContext& context);
  void CheckFile();
  void CheckNotifications(const std::string& execution);
  void Violate(const std::string& invariant, std::string message) {
    sim_.Violate(invariant, std::move(message));
  }

  const Json& FlowIn(const store::Record& record) { return flows_[record.body]; }

  Simulation& sim_;
  Parsed<Json> flows_;
  mutable Parsed<std::vector<std::string>> executions_;  // of a run's record
  plan::Plan plan_;
  plan::Plan edited_;
  std::map<std::string, std::string> inputs_;
  states::StatesOptions terms_;
  std::map<std::string, Task> tasks_;          // by the state that calls
  std::vector<std::string> reconcile_states_;  // of the ranks
  std::optional<plan::Order> order_;
  std::unique_ptr<FaultyStore> store_;
  FaultyWire wire_;
  PlanDrivers drivers_;
  std::unique_ptr<SimFiles> files_;    // where notifications go, if not to a service
  std::set<std::string> recorded_;     // lines that the file was said to have
  int64_t target_down_ = 0;            // how many notifications are refused, before it stays up
  std::set<std::string> started_;      // tokens whose start was stored
  std::set<std::string> reached_;      // tokens that a service has seen
  std::set<std::string> done_;         // keys of tasks that have succeeded
  std::set<std::string> late_;         // those that did after a cancel
  std::set<std::string> late_starts_;  // tokens that were begun when their task had succeeded
  // Scripts that succeeded without an object, as a plan that continues allows, by execution: the
  // next attempt must run them again.
  std::map<std::string, std::set<std::string>> provisional_;
  std::map<std::string, std::set<std::string>> failed_;  // states that failed, by execution
  std::set<std::string> reconciled_;  // states that have, since their rank's last task succeeded
  std::map<std::string, int> delivered_;  // notifications, by key
  std::map<std::string, int> refused_;
};

}  // namespace muster::sim
