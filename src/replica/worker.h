#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "muster/replica.h"
#include "replica/follower.h"
#include "replica/member.h"
#include "replica/read_model.h"

namespace muster {

// Who runs the followers between two looks at the set: threads in production, the caller itself
// in the simulator. A follower is in one hand at a time.
class FollowerRunner {
 public:
  virtual ~FollowerRunner() = default;

  // Whether others than the caller may work at the same time.
  virtual bool HaveThreads() const = 0;

  // Lets a follower step until it is taken back.
  virtual void Start(Follower& follower) = 0;

  // Takes it back, after the step that it is in. False: it has not come back within `patience`.
  virtual bool Take(Follower& follower, milliseconds patience) = 0;

  // Lets time pass, until something of the set may have changed.
  virtual void Wait(std::chrono::nanoseconds duration, std::stop_token stop) = 0;

  // What a follower failed with since it was last asked for, if it did.
  virtual std::optional<Error> Failure(Follower& follower) = 0;
};

// A worker of a replica set, from registration to leave: does what the set's record says, and
// nothing after its deadline. See Orchestrator.
class Worker {
 public:
  Worker(Store& store, EventLog& log, ReadModel& model, Env& env, const ReplicaOptions& options,
         std::vector<std::shared_ptr<Projection>> projections, FollowerRunner& runner);

  Status Run(std::stop_token stop);

  // Looks at the set once, and does what follows from it. Run calls it all the time; the simulator
  // also while a batch takes its time, for want of threads. After kLeaseLost the worker is out.
  Status Look();

  // Until when followers may step, by Env::MonoNow. Read by their threads.
  int64_t DeadlineNs() const { return deadline_ns_.load(); }

 private:
  struct Running {
    std::shared_ptr<Projection> projection;
    std::unique_ptr<Follower> follower;
    bool active = true;
    int64_t touched = 0;
    std::string definition = {};  // its hash
    bool given = false;
    bool asked_back = false;   // it steps no more, whatever has been wanted of it since
    std::string trouble = {};  // that it is in
  };
  using Name = std::pair<std::string, int>;  // projection, version

  // How long a heartbeat may have to wait for batches to end.
  static constexpr milliseconds kStopPatience{700};

  Status Serve(std::stop_token stop);
  Status Follow(const SetView& view);
  Status Prepare(const SetView& view, const std::vector<int>& slots, int partition);
  Status EnsureFollowers(const SetView& view);
  Result<std::string> HashOf(const Projection& projection, int version,
                             const DesiredState& desired);
  Result<std::shared_ptr<Projection>> DefinedBy(const std::shared_ptr<Projection>& given,
                                                int version, const std::string& hash);
  static bool MayStart(const SetView& view);
  Status Start(const SetView& view);
  bool StopAll(milliseconds patience);
  bool Stop(Running& running, milliseconds patience);
  Status EndBatches();
  Status LookForHangs();
  std::vector<std::string> Serialized(const SetView& view);
  Status ManageFollowers(const SetView& view);
  Status NoteInFlight(const Instance& instance, const std::vector<int64_t>& positions, int hangs);
  Status NoteHang(const Running& running);
  Status Enter();
  void CountHandled();
  void DropFollowers();
  void Reset();
  void Report(ReplicaEvent::Kind kind, const std::string& error = {});
  void ReportTrouble(std::string& trouble, const std::string& error);
  void Recover(std::string& trouble);
  Status SetUpOnce(Projection& projection, int version);
  static DesiredState DesiredOf(const SetView& view, const std::string& projection);

  Store& store_;
  EventLog& log_;
  ReadModel& model_;
  Env& env_;
  const ReplicaOptions options_;
  const std::vector<std::shared_ptr<Projection>> projections_;
  FollowerRunner& runner_;
  Member member_;
  std::map<Name, Running> running_;
  std::set<Name> set_up_;
  int failed_set_ups_ = 0;
  std::string trouble_;   // of the worker itself, beside those of its followers
  int64_t prepared_ = 0;  // the generation that we are ready for; 0: none
  int64_t started_ = 0;   // the one that we are running in
  bool go_ = false;       // followers may run
  bool paused_ = false;   // they had to stop for it
  std::vector<int> slots_;
  ReplicaPartition partition_;
  int64_t handled_before_ = 0;
  std::atomic<int64_t> deadline_ns_ = 0;
};

}  // namespace muster
