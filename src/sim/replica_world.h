#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "replica/replica.h"
#include "sim/faulty_store.h"
#include "sim/parsed.h"
#include "sim/replica_runner.h"
#include "sim/replica_services.h"
#include "sim/workload.h"

namespace muster::sim {

// Workers, an appender and an operator of one replica set, and its invariants.
class ReplicaWorld final : public Workload {
 public:
  void Setup(Simulation& sim) override;
  void Check() override;

 private:
  class SimProcessor;
  class SimProjection;

  static inline const std::string kSet = "orders";
  static inline const std::string kProjection = "totals";

  // replica_workload.cc: what takes part
  static replica::ReplicaOptions Terms(Random& random);
  void Draw(Simulation& sim);
  [[noreturn]] void CrashIn(int64_t number);
  void Work(const std::string& name, Env& env, std::stop_token stop);
  Status RunWorker(const std::string& name, Env& env, std::stop_token stop);
  void AppendAll(Env& env, std::stop_token stop);
  void AppendNext();
  std::set<int> Versions();
  bool AllDone();
  bool AllDone(int version);
  std::map<std::string, replica::ParkedStream> Parked(int version);
  // Null: not found, or unreadable. Valid until the next call.
  const replica::Generation* Current();
  const replica::MemberState* StateOf(const std::string& id);
  void Violate(const std::string& invariant, std::string message);
  std::shared_ptr<replica::Projection> NewProjection(InlineRunner* runner);

  // replica_operator.cc: what the operator does
  void Operate(Env& env, std::stop_token stop);
  void RebuildSome(Env& env, std::stop_token stop);
  void EndRebuild(Env& env);
  void Pause(bool paused);
  void Replay();

  // replica_restore.cc: the log goes back and gets other events
  void MaybeRestoreLog();
  void Spoil(int version);
  bool IsOfThisLog(const replica::ReadModelProgress& progress);
  void CheckHalt(int version);
  void Reset(int version);
  void Halted(const Error& why, Env& env, std::stop_token stop);
  void Remedy(Env& env);

  // replica_checks.cc: what must be true, at every change and in the end
  void CheckGuilt(const replica::ParkedEvent& parked);
  void CheckHandled(int version, const std::vector<events::Event>& all);
  void CheckEffects(const events::Event& event);
  void CheckOrder(int version, const std::vector<replica::MemoryReadModel::Statement>& statements);
  void CheckAudit(int version, const std::vector<events::Event>& all);
  void TakenOver(int version, int64_t generation, std::span<const int> slots);
  void Committed(int version, const replica::ReadModelProgress& progress,
                 const std::vector<replica::MemoryReadModel::Statement>& statements,
                 const std::string& sender);
  void NoteParked(int version, const replica::ReadModelProgress& progress);
  void Changed(const store::Change& change, const std::optional<store::Record>& before,
               const std::optional<store::Record>& after);
  void SetChanged(const store::Change& change, const std::optional<store::Record>& before,
                  const std::optional<store::Record>& after);
  void Went(const replica::Generation& now);
  void NoteRestart(const std::string& name);

  Simulation* sim_ = nullptr;
  std::unique_ptr<FaultyStore> store_;
  Parsed<Result<replica::Generation>> generations_seen_{
      [](const std::string& body) { return replica::Generation::FromBody(body); }};
  Parsed<Result<replica::MemberState>> states_seen_{
      [](const std::string& body) { return replica::MemberState::FromBody(body); }};
  Parsed<std::set<int>> versions_seen_{[](const std::string& body) {
    const auto versions = replica::DesiredState::FromBody(body).value().versions;
    return std::set<int>(versions.begin(), versions.end());
  }};
  std::unique_ptr<SimReadModel> model_;
  std::unique_ptr<SimEventLog> log_;
  bool crowd_ = false;
  replica::ReplicaOptions terms_;
  int64_t events_ = 0;
  int64_t streams_ = 1;
  nanoseconds append_for_ = std::chrono::seconds(240);
  bool paused_ = false;
  int64_t pauses_ = 0;
  bool late_ = false;  // the last event is appended when the operator is finished
  int64_t poison_ = -1;
  bool cured_ = false;  // it is harmless now
  bool rebuilds_ = false;
  bool is_beginning_ = false;  // the operator begins a version
  int64_t needy_ = -1;         // an event that needs a service which is down this many times
  int refusals_ = 0;
  int64_t crash_ = -1;
  int crashes_ = 0;
  int tries_ = 0;  // how often the operator restarted everything
  int64_t hang_ = -1;
  int hangs_ = 0;
  nanoseconds slow_{0};  // duration of an event
  bool heeds_turns_ = false;
  int64_t appended_ = 0;
  int64_t life_ = 0;         // of the log: how often it was restored
  int64_t other_place_ = 0;  // what streams its events go to, as against those that were lost
  int halts_ = 0;
  int generations_ = 0;
  size_t partitions_ = 0;
  std::string creator_;
  nanoseconds proposed_at_{0};
  std::set<std::string> started_;
  std::set<std::pair<std::string, int64_t>> ready_;   // (worker, generation) once ready
  std::map<std::string, int64_t> effects_;            // of an event, by its id
  std::map<int64_t, std::set<std::string>> in_hand_;  // by position: workers that noted it
  // By version of the read model.
  std::set<int> dropped_;
  // Has handled or passed over what the log has lost since, and when that began.
  std::map<int, nanoseconds> spoiled_;
  bool ever_spoiled_ = false;
  std::map<int, int64_t> committed_;
  std::set<std::pair<int, std::string>> replaying_;  // streams that the operator has requested
  std::map<std::pair<int, std::string>, int64_t> handled_;  // the last event of a stream
  std::map<std::pair<int, int>, int64_t> fence_;            // of a slot
  std::map<std::pair<int, int>, int64_t> position_;
  std::map<std::tuple<int, int, int64_t>, std::string> owner_;  // of a slot in a generation
};

}  // namespace muster::sim
