#pragma once

#include <optional>
#include <stop_token>
#include <vector>

#include "muster/env.h"
#include "muster/store.h"
#include "states/flow_record.h"

namespace muster::states {

// A claimed record of a flow. Every change is a compare-and-swap that holds only while the claim
// does; kLeaseLost means that somebody else goes on with it, or ended it.
//
// A conflict need not mean that: others may have made the record due earlier (a branch that has
// ended, a callback), which leaves its body as it was. Then the change is simply made again.
class Holder {
 public:
  Holder(Store& store, Env& env, FlowRecord record, MonoTime deadline);

  FlowRecord& flow_record() { return record_; }
  const FlowRecord& flow_record() const { return record_; }
  MonoTime deadline() const { return deadline_; }
  bool Expired() const { return env_.MonoNow() >= deadline_; }

  // The change that stores what the record says now. `release`: nobody holds it afterwards.
  struct Pending {
    Record next;
    std::vector<Change> parts;
    Due due;
    bool deferred;

    Change ToChange() const { return Change::Put(next, due, deferred); }
  };
  Pending Prepare(Due due, bool release, bool deferred);

  // Gives it back as it was claimed, due at once.
  Pending PrepareReturn() const;

  // Makes one change, whatever becomes of single calls.
  Status Commit(Pending pending);

  // A change that was written together with others.
  void Applied(Pending pending, int64_t version);

  // Keeps the claim for another `lease`.
  Status Renew(milliseconds lease);

  void Lost() { deadline_ = MonoTime::min(); }

 private:
  Status TryCommit(Pending& pending);

  Store& store_;
  Env& env_;
  FlowCodec codec_;
  FlowRecord record_;
  std::string claimed_body_;
  int claimed_attempt_;
  MonoTime deadline_;
};

}  // namespace muster::states
