#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/result.h"
#include "muster/store.h"

namespace muster {

struct LeaseTerms {
  milliseconds lease{60'000};
  milliseconds max_lease{3'600'000};
};

// A claimed record. Every change of it is a compare-and-swap that holds only while (owner, epoch)
// is still ours: that pair is the fence. After any kLeaseLost the holder must stop at once;
// whatever it tries then changes nothing.
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
  // Claims up to `limit` due records of a queue. Empty: nothing is due.
  static Result<std::vector<Lease>> Claim(Store& store, Env& env, const std::string& kind,
                                          const std::string& queue, const std::string& owner,
                                          const LeaseTerms& terms, int limit, std::stop_token stop);

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

  // Stores what was achieved, which renews the lease and starts counting attempts anew. Only
  // progress renews: a holder that is stuck loses its record.
  Status Renew(std::string body);

  // Ends it: never due again.
  Status End(std::string body);

  // Takes it out of circulation: nobody's, and never due until somebody makes it so.
  Status Park(std::string body);

  // Deletes the record: it should never have been there.
  Status Remove();

  // Gives it back, due at once. The attempt does not count: who stops in good order is not to
  // blame.
  Status Release();

  // Gives it back, due when `delay` has passed. This attempt counts, or they are counted anew.
  enum class Attempts { kAnew, kOneMore };
  Status GiveBack(std::string body, milliseconds delay, Attempts attempts);

 private:
  Lease(Store& store, Env& env, const LeaseTerms& terms, Record record, MonoTime deadline);

  // Brings the stored record to `next`, whatever becomes of single calls. A failure ends the lease.
  Status Settle(Record next, Due due);
  Status TrySettle(Record next, Due due);
  bool Mine(const Record& stored) const;

  Store* store_;
  Env* env_;
  LeaseTerms terms_;
  Record record_;
  MonoTime deadline_;
};

}  // namespace muster
