#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/json_fields.h"
#include "muster/states.h"
#include "sim/faulty_store.h"
#include "sim/faulty_wire.h"
#include "sim/parsed.h"

namespace muster::sim {

// The store and the services of the workload `states`, and all invariants of its executions,
// checked against the stored records and the requests to the services.
class StatesWorld {
 public:
  explicit StatesWorld(Simulation& sim);

  FaultyStore& store() { return *store_; }

  std::map<std::string, Json>& inputs() { return inputs_; }  // of all executions, by name
  states::StatesOptions& terms() { return terms_; }
  void RefuseNotifications(int64_t count) { target_down_ = count; }

  // Makes the calls of one process.
  std::unique_ptr<states::TaskExecutor> NewService(const std::string& process);

  // Tokens that wait for a callback.
  const std::set<std::string>& asked() const { return asked_; }

  bool AllEnded();

  // An execution that was not stopped compared with the same in memory.
  void CheckResult(const std::string& name, const Json& flow);

  const Json& FlowIn(const store::Record& record) { return flows_[record.body]; }
  void Violate(const std::string& invariant, std::string message) {
    sim_.Violate(invariant, std::move(message));
  }

 private:
  class Service;

  states::TaskOutcome Notify(const states::TaskCall& call);
  void Sends(const store::Change& change);
  void Changed(const store::Change& change, const std::optional<store::Record>& before,
               const std::optional<store::Record>& after);
  void CheckReady(const store::Change& change, const store::Record& after);
  void Created(const store::Record& record, const Json& flow);
  void CheckRest(const std::string& key, const Json& before, const Json& after);
  void CheckConcurrency(const std::string& key);
  void LostPower();
  // The difference of two is the most that the store's clock can have counted in between.
  nanoseconds StoresTime() const { return sim_.now() + store_->JumpedAhead(); }
  void Failed(const states::TaskCall& call) { failed_at_.try_emplace(call.token, StoresTime()); }
  bool ClocksAreWrong() const;
  void CheckRetry(const states::TaskCall& call);
  void Called(const states::TaskCall& call, const std::string& process);

  Simulation& sim_;
  Parsed<Json> flows_{[](const std::string& body) { return MemberIn(Json::parse(body), "flow"); }};
  std::unique_ptr<FaultyStore> store_;
  FaultyWire wire_;
  std::map<std::string, Json> inputs_;
  states::StatesOptions terms_;
  std::set<std::string> started_;                   // tokens whose start was stored
  std::set<std::string> closed_;                    // tokens whose answer was stored
  std::map<std::string, nanoseconds> rests_since_;  // by record, in StoresTime
  std::map<std::string, nanoseconds> failed_at_;    // when a call first failed, by token
  std::set<std::string> reached_;                   // tokens that the service has seen
  std::set<std::string> asked_;
  std::map<std::pair<std::string, std::string>, int64_t> known_epochs_;  // by process and record
  int64_t target_down_ = 0;                                // how many notifications are refused
  std::map<std::string, int> refused_;                     // by execution
  std::map<std::string, std::set<std::string>> notified_;  // tokens that arrived, by execution
};

}  // namespace muster::sim
