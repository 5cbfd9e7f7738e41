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

namespace muster::replica {

// Runs the followers between two looks at the set: on threads in production, on the caller in the
// simulator. A follower is run by one thread at a time.
class FollowerRunner {
 public:
  virtual ~FollowerRunner() = default;

  // Whether followers run concurrently with the caller.
  virtual bool HaveThreads() const = 0;

  // Runs a follower until Take.
  virtual void Start(Follower& follower) = 0;

  // Stops it after its current step. False: it did not stop within `patience`.
  virtual bool Take(Follower& follower, milliseconds patience) = 0;

  // Waits until the set may have changed.
  virtual void Wait(std::chrono::nanoseconds duration, std::stop_token stop) = 0;

  // The follower's failure since the last call, if any.
  virtual std::optional<Error> Failure(Follower& follower) = 0;
};

// A worker of a replica set, from registration to leaving: does what the set's record says, and
// nothing after its deadline. See Orchestrator.
class Worker {
 public:
  Worker(store::Store& store, events::EventLog& log, ReadModel& model,
         std::vector<std::shared_ptr<Projection>> projections, const ReplicaOptions& options,
         ReplicaObserver& observer, FollowerRunner& runner, Env& env);

  Status Run(std::stop_token stop);

  // Reads the set once and acts on it. Run calls it continuously; the simulator, without threads,
  // also during a slow batch. After kLeaseLost the worker is out.
  Status Look();

  // Deadline for followers' steps, by Env::MonoNow. Read by their threads.
  int64_t DeadlineNs() const { return deadline_ns_.load(); }

 private:
  struct Running {
    std::shared_ptr<Projection> projection;
    std::unique_ptr<Follower> follower;
    bool active = true;
    int64_t touched = 0;
    std::string definition = {};  // its hash
    bool given = false;
    bool asked_back = false;   // stopping; must not be started again yet
    std::string trouble = {};  // its current failure
  };
  using Name = std::pair<std::string, int>;  // projection, version

  // How long a heartbeat may be delayed by ending batches.
  static constexpr milliseconds kStopPatience{700};

  Status Serve(std::stop_token stop);
  Status Follow(const SetView& view);
  Status Prepare(const SetView& view, const std::vector<int>& slots, int partition);
  Status EnsureFollowers(const SetView& view);
  Result<bool> EnsureFollower(const std::shared_ptr<Projection>& given, int version,
                              const DesiredState& desired, const SetView& view, size_t followers);
  std::unique_ptr<Follower> NewFollower(const std::shared_ptr<Projection>& projection, int version,
                                        bool active, milliseconds flush_every, size_t page_bytes);
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
  ReplicaEvent EventOf(ReplicaEvent::Kind kind) const;
  void Report(ReplicaEvent::Kind kind, const std::string& error = {});
  void ReportTrouble(std::string& trouble, const std::string& error);
  void Recover(std::string& trouble);
  Status SetUpOnce(Projection& projection, int version);
  static DesiredState DesiredOf(const SetView& view, const std::string& projection);

  store::Store& store_;
  events::EventLog& log_;
  ReadModel& model_;
  Env& env_;
  const ReplicaOptions options_;
  const std::vector<std::shared_ptr<Projection>> projections_;
  ReplicaObserver& observer_;
  FollowerRunner& runner_;
  Member member_;
  std::map<Name, Running> running_;
  std::set<Name> set_up_;
  int failed_set_ups_ = 0;
  std::string trouble_;   // the worker's own, beside its followers'
  int64_t prepared_ = 0;  // the generation we are ready for; 0: none
  int64_t started_ = 0;   // the one we are running in
  bool go_ = false;       // followers may run
  bool paused_ = false;   // they had to stop for it
  std::vector<int> slots_;
  ReplicaPartition partition_;
  int64_t handled_before_ = 0;
  std::atomic<int64_t> deadline_ns_ = 0;
};

}  // namespace muster::replica
