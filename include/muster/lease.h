#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/result.h"
#include "muster/store.h"
#include "muster/version.h"

namespace muster::store {

struct LeaseTerms {
  milliseconds lease{60'000};
  milliseconds max_lease{3'600'000};
};

// The owner of a claimed record: the claimer's name and the first digits of the holder's id, which
// is new for every claim. A store that went back in time may grant an epoch again, even to another
// thread of the same process; the owner tells the two apart.
MUSTER_EXPORT std::string OwnerName(const std::string& name, const std::string& holder);

// The claimer's name in it.
MUSTER_EXPORT std::string NameOfOwner(const std::string& owner);

// What to claim. The fields are those of a ClaimRequest, but for `holder`.
struct LeaseRequest {
  std::string kind;
  std::string queue;
  std::string key = {};
  std::string owner;  // the claimer's name; the record's owner is OwnerName(owner, holder)
  int limit = 1;
  LeaseTerms terms = {};
  bool deferred = false;
  std::string holder = {};  // empty: drawn
};

// A record that this process holds for a limited time:
//
//   MUSTER_ASSIGN(std::vector<Lease> leases, Lease::Claim(store, request, env, stop));
//   for (Lease& lease : leases) {
//     ...                                        // work on lease.body()
//     MUSTER_TRY(lease.Renew(checkpoint));       // progress, before deadline()
//     MUSTER_TRY(lease.End(result));
//   }
//
// Fence: every change is a compare-and-swap that succeeds only while (owner, epoch) is still ours.
// Other processes may make a held record due earlier, which changes neither; a change of owner or
// body ends the lease.
//
// Errors: kLeaseLost means that another process may hold the record. Stop at once: no further call
// changes anything. Any other failure of a change also ends the lease for this object.
//
// Unknown outcomes are resolved here: the call is read back and decided, or repeated, until the
// lease would have ended by this process's monotonic clock, which started before the store's. After
// that it returns kLeaseLost without a request.
//
// Crashes: a lease that is destroyed, or whose process dies, does nothing. Its record is due again
// when its time is up, with the body of the last successful call, and the next claim has a higher
// epoch. So work since then is repeated, and a target must accept that or fence by epoch.
//
// Used by one thread at a time. The store and `env` must outlive it. One that was moved from may
// only be destroyed or assigned to.
class MUSTER_EXPORT Lease {
 public:
  // Claims up to `limit` due records. A claim whose outcome is unknown is repeated, so that what it
  // took is not lost. Empty: nothing is due. Errors are those of Store::Claim, after retries.
  static Result<std::vector<Lease>> Claim(Store& store, const LeaseRequest& request, Env& env,
                                          std::stop_token stop);

  // Creates a record that its owner holds from the start. kLeaseLost: a record of that name exists,
  // or another process has already changed it.
  static Result<Lease> Create(Store& store, Record record, milliseconds lease, Env& env);

  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&& other) noexcept;
  ~Lease();

  const Record& record() const;
  const std::string& key() const { return record().key; }
  const std::string& queue() const { return record().queue; }
  const std::string& body() const { return record().body; }
  const std::string& owner() const { return record().owner; }
  int64_t epoch() const { return record().epoch; }
  int attempt() const { return record().attempt; }
  Store& store() const;
  Env& env() const;

  // How long the lease certainly lasts, by this process's monotonic clock.
  MonoTime deadline() const;
  bool Expired() const;

  // Whether the stored record still carries our fence.
  Result<bool> StillOurs() const;

  // Stores `next`, a changed copy of record(): its owner, attempt and body. While the owner stays,
  // Due::After renews the lease for that long.
  Status Commit(Record next, Due due, bool deferred = false);

  // Records that `next` was stored as `version` by a Write of several records that was sent at
  // `asked`.
  void Committed(Record next, int64_t version, Due due, MonoTime asked);

  // Stores progress, which renews the lease and resets the attempts. Only progress renews: a holder
  // that is stuck loses its record.
  Status Renew(std::string body);

  // Completes the record: never due again.
  Status End(std::string body);

  // Takes the record out of circulation: without an owner, and never due unless set due again.
  Status Park(std::string body);

  // Deletes the record.
  Status Remove();

  // Gives the record back, due at once. This attempt does not count: an orderly stop is no failure.
  Status Release();

  // Leaves the record to the next claimer, due after `delay`. This attempt counts, or attempts are
  // reset.
  enum class Attempts { kAnew, kOneMore };
  Status GiveBack(std::string body, milliseconds delay, Attempts attempts);

  // Treats the lease as lost: what the holder knows is no longer what is stored.
  void Abandon() { SetDeadline(MonoTime::min()); }

  // Lets the next change try until `deadline` even if the lease has ended; the fence alone decides
  // then. For reporting work that is over: late is better than never.
  void SetDeadline(MonoTime deadline);

  // After kLeaseLost: what the store has instead of our record; none: nothing, or it was not read.
  const std::optional<Record>& lost_to() const;

 private:
  struct State;
  explicit Lease(State state);

  std::unique_ptr<State> state_;
};

// The change to make to a record as it is stored now (none: it does not exist). No change: leave it
// as it is. An error that is not transient ends the update.
using UpdateFunction = std::function<Result<std::optional<Change>>(std::optional<Record> stored)>;

// Read-modify-write of one record that this caller does not hold. `update` runs again on the stored
// record after a conflict or a transient failure. Attempts are bounded, and the pauses between them
// grow.
//
// An unknown outcome is read back: if the record is what was written, the update has succeeded. If
// others have changed it since, that cannot be seen, and `update` runs on the result; if it then
// returns an error, the update fails with kUnknownOutcome.
//
// kUnavailable: too many conflicts. Other errors are those of the store and of `update`.
// Thread-safe. A crash leaves the record either as it was or as `update` made it.
MUSTER_EXPORT Status Update(Store& store, const std::string& kind, const std::string& key,
                            const UpdateFunction& update);

}  // namespace muster::store
