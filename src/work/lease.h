#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/result.h"
#include "muster/store.h"

namespace muster {

// How items are leased.
struct LeaseTerms {
  milliseconds lease{60'000};
  milliseconds max_lease{3'600'000};
  int max_attempts = 5;  // claims without progress before an item is quarantined
};

// What the body of an item says about it: {"state":"open","progress":…,"error":"…"}.
struct ItemState {
  enum class Phase { kOpen, kDone, kQuarantined };
  Phase phase = Phase::kOpen;
  std::string progress = "null";  // JSON that only the item's handler understands
  std::string error = {};         // the last failure, for people

  std::string ToBody() const;
  static Result<ItemState> FromBody(const std::string& body);
};

// A claimed item. Every change of it is a compare-and-swap that holds only while (owner, epoch) is
// still ours: that pair is the fence. After any kLeaseLost the holder must stop at once; whatever
// it tries then changes nothing.
//
// A call whose outcome is unknown is read again and decided, or repeated, until the lease would
// have ended by this process's own monotonic clock, which started before the store's did. Past that
// it answers kLeaseLost without asking anybody. After any other failure of a change, too, the lease
// counts as lost.
//
// Used by one thread. Destroying a lease does nothing: an abandoned item is due again when its time
// is up.
class Lease {
 public:
  // Claims up to `limit` due items of a queue. Empty: nothing is due.
  static Result<std::vector<Lease>> Claim(Store& store, Env& env, const std::string& kind,
                                          const std::string& queue, const std::string& owner,
                                          const LeaseTerms& terms, int limit, std::stop_token stop);

  const std::string& key() const { return record_.key; }
  int64_t epoch() const { return record_.epoch; }
  int attempt() const { return record_.attempt; }
  const ItemState& state() const { return state_; }

  // Until when the lease surely lasts, by this process's monotonic clock.
  MonoTime deadline() const { return deadline_; }
  bool Expired() const { return env_->MonoNow() >= deadline_; }

  // Stores progress, which renews the lease and starts counting attempts anew. Only progress
  // renews: a holder that is stuck loses its item.
  Status Checkpoint(std::string progress);

  // Ends the item for good.
  Status Complete(std::string progress);

  // Gives the item back, due at once. The attempt does not count: who stops in good order is not
  // to blame.
  Status Release();

  // Gives the item back after a failure, due when `delay` has passed. The attempt counts.
  Status Fail(const std::string& error, milliseconds delay);

  // Takes the item out of circulation with its error, until a person retries it.
  Status Quarantine(const std::string& error);

 private:
  Lease(Store& store, Env& env, const LeaseTerms& terms, Record record, ItemState state,
        MonoTime deadline);

  // Brings the stored record to `next`, whatever becomes of single calls. A failure ends the lease.
  Status Settle(Record next, Due due);
  Status TrySettle(Record next, Due due);
  bool Mine(const Record& stored) const;

  Store* store_;
  Env* env_;
  LeaseTerms terms_;
  Record record_;
  ItemState state_;
  MonoTime deadline_;
};

}  // namespace muster
