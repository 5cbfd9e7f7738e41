#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/result.h"
#include "muster/store.h"

namespace muster::store {

struct LeaseTerms {
  milliseconds lease{60'000};
  milliseconds max_lease{3'600'000};
};

// What to claim; the fields are those of a ClaimRequest.
struct LeaseRequest {
  std::string kind;
  std::string queue;
  std::string key = {};
  std::string owner;
  int limit = 1;
  LeaseTerms terms = {};
  bool deferred = false;
};

// A record that this process holds. Every change of it is a compare-and-swap that holds only while
// (owner, epoch) is still ours: that pair is the fence. Others may make a held record due earlier,
// which changes neither; a change of owner or body ends the lease. After any kLeaseLost the
// holder must stop at once; whatever it tries then changes nothing.
//
// A call whose outcome is unknown is read again and decided, or repeated, until the lease would
// have ended by this process's own monotonic clock, which started before the store's did. Past that
// it answers kLeaseLost without asking anybody. After any other failure of a change, too, the lease
// counts as lost.
//
// Used by one thread. Destroying a lease does nothing: an abandoned record is due again when its
// time is up.
class Lease {
 public:
  // Claims up to `limit` due records. A claim whose outcome is unknown is repeated, so that what it
  // took is not lost. Empty: nothing is due.
  static Result<std::vector<Lease>> Claim(Store& store, Env& env, const LeaseRequest& request,
                                          std::stop_token stop);

  // Creates a record that its owner holds from the start. kLeaseLost: there is another one of that
  // name, or others have changed it already.
  static Result<Lease> Create(Store& store, Env& env, Record record, milliseconds lease);

  const Record& record() const { return record_; }
  const std::string& key() const { return record_.key; }
  const std::string& queue() const { return record_.queue; }
  const std::string& body() const { return record_.body; }
  const std::string& owner() const { return record_.owner; }
  int64_t epoch() const { return record_.epoch; }
  int attempt() const { return record_.attempt; }
  Store& store() const { return *store_; }
  Env& env() const { return *env_; }

  // Until when the lease surely lasts, by this process's monotonic clock.
  MonoTime deadline() const { return deadline_; }
  bool Expired() const { return env_->MonoNow() >= deadline_; }

  // Whether the stored record still carries our fence.
  Result<bool> StillOurs() const;

  // Brings the stored record to `next`, a changed copy of record(): owner, attempt and body count.
  // While the owner stays, Due::After renews the lease for that long.
  Status Commit(Record next, Due due, bool deferred = false);

  // Says that `next` was stored as `version` by a write of several records that was sent at
  // `asked`.
  void Committed(Record next, int64_t version, Due due, MonoTime asked);

  // Stores what was achieved, which renews the lease and starts counting attempts anew. Only
  // progress renews: a holder that is stuck loses its record.
  Status Renew(std::string body);

  // Ends it: never due again.
  Status End(std::string body);

  // Takes it out of circulation: without an owner, and never due unless set due again.
  Status Park(std::string body);

  // Deletes the record: it should never have been there.
  Status Remove();

  // Gives it back, due at once. The attempt does not count: who stops in good order is not to
  // blame.
  Status Release();

  // Hands it over to the next claimer once `delay` has passed. This attempt counts, or they are
  // counted anew.
  enum class Attempts { kAnew, kOneMore };
  Status GiveBack(std::string body, milliseconds delay, Attempts attempts);

  // Counts it as lost: what the holder knows is no longer what is stored.
  void Abandon() { deadline_ = MonoTime::min(); }

  // Lets the next change try until `deadline`, whether or not the lease has ended: the fence alone
  // decides then. For what is better said late than never, about work that is over.
  void SetDeadline(MonoTime deadline) { deadline_ = deadline; }

  // What the store had in place of our record when a change failed with kLeaseLost; none: nothing,
  // or it was not read.
  const std::optional<Record>& lost_to() const { return lost_to_; }

 private:
  Lease(Store& store, Env& env, const LeaseTerms& terms, Record record, MonoTime deadline);

  enum class Verdict { kOurs, kCameThrough, kLost };

  Status TryCommit(Record& next, Due due, bool deferred);
  Verdict Judge(const std::optional<Record>& stored, const Record& next) const;
  Error Lost() const;
  Error Undecided() const;

  Store* store_;
  Env* env_;
  LeaseTerms terms_;
  Record record_;
  MonoTime deadline_;
  std::optional<Record> lost_to_;
};

}  // namespace muster::store
