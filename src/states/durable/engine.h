#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/env_wrapper.h"
#include "muster/states.h"
#include "states/asl/jsonata_engine.h"
#include "states/durable/driver_signals.h"
#include "states/durable/holder.h"
#include "states/durable/machine_cache.h"

namespace muster::states {

// How many children of a flow may run at once.
int64_t MostOpen(const ChildrenProgress& children);

// Ends a flow from outside. Its next holder ends its branches, and cancels its call.
void EndFlow(FlowRecord& record, Interpreter& interpreter, FlowStatus status,
             const Failure& failure, WallTime now);

// The store's time, without asking for it: that of the last claim plus what has passed since. Times
// in records are compared with it, because the clocks of processes differ.
class StoreClock final : public EnvWrapper {
 public:
  explicit StoreClock(Env& env) : EnvWrapper(env) {}

  void Set(WallTime store_now, MonoTime at) {
    store_now_ = store_now;
    at_ = at;
  }

  WallTime WallNow() override {
    if (!store_now_) return inner().WallNow();
    return *store_now_ + std::chrono::duration_cast<milliseconds>(inner().MonoNow() - at_);
  }

 private:
  std::optional<WallTime> store_now_;
  MonoTime at_;
};

// Claims flows and drives each from effect to effect. Used by one thread; any number of drivers may
// work on a store.
class Driver {
 public:
  Driver(store::Store& store, Env& env, const std::vector<TaskExecutor*>& executors,
         const StatesOptions& options, MachineCache& machines, JsonataEngine* jsonata,
         DriverSignals& signals);

  // Claims due flows and drives them until they wait or end. False: nothing was due. A transient
  // error may be tried again.
  Result<bool> WorkOnce(std::stop_token stop);

  // Ends a flow, held or not, unless it has ended.
  Status EndFrom(const std::string& key, FlowStatus status, const Failure& failure);

 private:
  // What is left to do once a flow's record is written.
  enum class Next { kRest, kCall, kStartChildren, kLookForCallback, kNotifyParent };

  // A claimed flow.
  struct Drive {
    Drive(store::Lease lease, FlowRecord record)
        : holder(std::move(lease), std::move(record)), log(holder.flow_record()) {}
    FlowRecord& record() { return holder.flow_record(); }
    const FlowRecord& record() const { return holder.flow_record(); }
    Flow& flow() { return holder.flow_record().flow; }
    Holder holder;
    FlowLog log;
    std::unique_ptr<Interpreter> interpreter;
    store::Due due = store::Due::Never();
    bool release = true;
    bool deferred = false;  // the write may be lost with the power
    bool orphaned = false;  // a branch whose execution has ended
    Next next = Next::kRest;
  };

  // What an executor sees during a call.
  class CallContext final : public TaskContext {
   public:
    CallContext(Driver& driver, Drive& drive, std::stop_token stop);
    Env& env() override { return driver_.env_; }
    std::stop_token stop() const override { return stop_; }
    bool KeepAlive() override;
    bool stopped() const { return stopped_ || stop_.stop_requested(); }
    bool lost() const { return lost_; }

   private:
    Driver& driver_;
    Drive& drive_;
    std::stop_token stop_;
    MonoTime renewed_;
    MonoTime looked_;
    bool stopped_ = false;
    bool lost_ = false;
  };

  Result<std::vector<std::unique_ptr<Drive>>> Claim(std::stop_token stop);
  Result<std::unique_ptr<Drive>> Open(store::Lease lease);
  Status LookAtExecution(Drive& drive);
  // Provides what the flow waited for, and runs it to its next effect. Only reads the store.
  Status Advance(Drive& drive);
  void Decide(Drive& drive);
  void DecideEnd(Drive& drive, WallTime now);
  void Hold(Drive& drive, Next next);
  Status CommitAll(std::vector<std::unique_ptr<Drive>>& drives);
  // Does what follows a commit, until the flow waits or ends.
  Status Finish(Drive& drive, std::stop_token stop);
  Status Commit(Drive& drive);

  Status Call(Drive& drive, std::stop_token stop);
  static TaskOutcome Ask(Drive& drive, TaskExecutor* executor, const TaskCall& call,
                         CallContext& context);
  void Accept(Drive& drive, TaskOutcome outcome);
  std::optional<WallTime> NextCallbackPoll(FlowRecord& record, WallTime now) const;
  Status LookForCallback(Drive& drive);
  Result<bool> TakeCallback(Drive& drive);
  Status StartChildren(Drive& drive);
  Status SettleChildren(Drive& drive);
  // The results of a Map's children; refers to `drive`.
  ChildResults ResultsOf(Drive& drive);
  Result<std::vector<ChildResult>> ResultsFrom(Drive& drive, int64_t from);
  Status AbortChildren(Drive& drive);
  Status CleanUp(Drive& drive);
  // Makes parents of ended branches due. Returns how many there were.
  size_t NotifyParents();
  void NotifyParent(const std::string& key);
  bool TimedOut(const Drive& drive);
  // Whether the answer to a flow's call is still of use: false once the flow, its parent or its
  // execution has been ended. True if the store does not answer.
  bool IsWanted(const FlowRecord& record);
  Result<bool> HasEnded(const std::string& key);
  void TimeOut(Drive& drive);
  TaskExecutor* ExecutorFor(const std::string& resource) const;

  store::Store& store_;
  StoreClock env_;
  const std::vector<TaskExecutor*>& executors_;
  const StatesOptions& options_;
  MachineCache& machines_;
  JsonataEngine* jsonata_;
  DriverSignals& signals_;
  FlowCodec codec_;
  int batch_ = 1;                  // how many records the next claim takes
  std::set<std::string> parents_;  // of branches that have ended, to be notified
  // Inputs of recent executions, by key and start.
  std::map<std::pair<std::string, WallTime>, Value> inputs_;
};

}  // namespace muster::states
