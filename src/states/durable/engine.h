#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/env_wrapper.h"
#include "muster/states.h"
#include "states/asl/definition.h"
#include "states/asl/jsonata_engine.h"
#include "states/durable/agenda.h"
#include "states/durable/holder.h"

namespace muster::states {

// Definitions that were read once, by the key of their text.
class MachineCache {
 public:
  MachineCache(store::Store& store, JsonataEngine* jsonata) : store_(store), jsonata_(jsonata) {}

  Result<std::shared_ptr<const Definition>> Find(const std::string& key);
  // That of a flow. kCorrupt: it has no such state.
  Result<std::shared_ptr<const Definition>> FindFor(const FlowRecord& record);
  // Only if it was read or put before; null: it was not.
  std::shared_ptr<const Definition> Known(const std::string& key);
  void Put(const std::string& key, std::shared_ptr<const Definition> definition);

 private:
  store::Store& store_;
  JsonataEngine* jsonata_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Definition>> machines_;
};

// How many children of a flow may run at once.
int64_t MostOpen(const ChildrenProgress& children);

// Ends a flow from outside: its branches and what its call has started are left to whoever claims
// it next, if there are any.
void EndFlow(FlowRecord& record, Interpreter& interpreter, FlowStatus status,
             const Failure& failure, WallTime now);

// The store's clock without asking for it: what it said at the last claim, and what has passed
// since. Times in records are judged by it, not by the clocks of processes, which differ.
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

// Claims flows and drives each from effect to effect. One thread's; any number may work on a store.
class Driver {
 public:
  Driver(store::Store& store, Env& env, const std::vector<TaskExecutor*>& executors,
         const StatesOptions& options, MachineCache& machines, JsonataEngine* jsonata,
         Agenda& agenda);

  // Takes what is due and drives it until it waits or ends. False: nothing was due. Fails only when
  // no waiting can mend it.
  Result<bool> WorkOnce(std::stop_token stop);

  // Ends a flow that may be somebody else's, unless it has ended.
  Status EndFrom(const std::string& key, FlowStatus status, const Failure& failure);

 private:
  // What is left to do once a flow's record is written.
  enum class Next { kRest, kCall, kStartChildren, kLookForCallback, kTellParent };

  // A flow in hand.
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
    bool deferred = false;  // what is to be written may be lost with the power
    bool orphaned = false;  // a branch whose execution has ended
    Next next = Next::kRest;
  };

  // What an executor sees while the thread waits for it.
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
    bool stopped_ = false;
    bool lost_ = false;
  };

  Result<std::vector<std::unique_ptr<Drive>>> Claim(std::stop_token stop);
  Result<std::unique_ptr<Drive>> Open(store::Lease lease);
  Status LookAtExecution(Drive& drive);
  // Gives the flow what it waited for and runs it up to its next effect. Only reads the store.
  Status Advance(Drive& drive);
  void Decide(Drive& drive);
  Status CommitAll(std::vector<std::unique_ptr<Drive>>& drives);
  // What comes after a commit, until the flow rests.
  Status Finish(Drive& drive, std::stop_token stop);
  Status Commit(Drive& drive);

  Status Call(Drive& drive, std::stop_token stop);
  Status LookForCallback(Drive& drive);
  Result<bool> TakeCallback(Drive& drive);
  Status StartChildren(Drive& drive);
  Status SettleChildren(Drive& drive);
  // What became of a Map's children; refers to `drive`.
  ChildResults ResultsOf(Drive& drive);
  Result<std::vector<ChildResult>> ResultsFrom(Drive& drive, int64_t from);
  Status AbortChildren(Drive& drive, const ChildrenProgress& children);
  Status CleanUp(Drive& drive);
  // How many.
  size_t TellParents();
  void TellParent(const std::string& key);
  bool TimedOut(const Drive& drive);
  void TimeOut(Drive& drive);
  TaskExecutor* ExecutorFor(const std::string& resource) const;

  store::Store& store_;
  StoreClock env_;
  const std::vector<TaskExecutor*>& executors_;
  const StatesOptions& options_;
  MachineCache& machines_;
  JsonataEngine* jsonata_;
  Agenda& agenda_;
  FlowCodec codec_;
  int batch_ = 1;                  // how many records the next claim takes
  std::set<std::string> parents_;  // those with branches that have ended
  // Of executions whose branches were claimed lately, by key and start.
  std::map<std::pair<std::string, WallTime>, Value> inputs_;
};

}  // namespace muster::states
