#pragma once

#include <span>
#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/store.h"
#include "states/durable/flow_record.h"

namespace muster::states {

// A flow whose record is leased. Changes succeed only while the lease lasts; kLeaseLost: another
// process continues the flow, or has ended it.
class Holder {
 public:
  Holder(store::Lease lease, FlowRecord record);

  FlowRecord& flow_record() { return record_; }
  const FlowRecord& flow_record() const { return record_; }
  MonoTime deadline() const { return lease_.deadline(); }
  bool Expired() const { return lease_.Expired(); }

  // The change that stores the record as it is now. `release`: it has no owner afterwards.
  struct Pending {
    store::Record next;
    std::vector<store::Change> parts;
    store::Due due;
    bool deferred;

    store::Change ToChange() const { return store::Change::Put(next, due, deferred); }
  };
  Pending Prepare(store::Due due, bool release, bool deferred);

  // Returns it as it was claimed, due at once.
  Pending PrepareReturn() const;

  // Makes one change, its parts first.
  Status Commit(Pending pending);

  // The change was applied by a write of several, sent at `asked`.
  void Applied(Pending pending, int64_t version, MonoTime asked);

  // Extends the lease.
  Status Renew(milliseconds lease);

 private:
  Status WriteParts(std::span<const store::Change> parts);
  Status CommitRecord(store::Record next, store::Due due, bool deferred);

  store::Lease lease_;
  FlowCodec codec_;
  FlowRecord record_;
  const std::string claimed_body_;
  const int claimed_attempt_;
};

}  // namespace muster::states
