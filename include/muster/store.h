#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/env.h"
#include "muster/result.h"

namespace muster::store {

// The limits of every backend; beyond them a call fails with kInvalid and nothing is applied.
inline constexpr size_t kMaxKeyBytes = 500;
inline constexpr size_t kMaxNameBytes = 200;  // kind, queue, owner, claim_id
inline constexpr size_t kMaxBodyBytes = 350 * 1024;
inline constexpr int kMaxBodyDepth = 500;
inline constexpr int kMaxBatch = 1000;  // changes in a Write, records of a Claim or a Scan

// Something that must happen later, once, despite crashes. Identified by `kind` and `key`.
struct Record {
  std::string kind;
  std::string queue;  // claims are made within one queue; fixed at creation
  std::string key;
  int64_t version = 0;               // grows at every change; 0: not stored yet
  std::optional<WallTime> due = {};  // by the store's clock; none: never
  std::string owner = {};            // the last claimer; empty: free
  int64_t epoch = 0;                 // grows by one at every claim; fences sinks
  int attempt = 0;                   // claims since the last progress
  std::string body = "{}";           // a JSON text, kept byte for byte

  bool operator==(const Record&) const = default;
};

// When a written record becomes due.
struct Due {
  enum class Kind { kNever, kUnchanged, kAfter, kAtOnce };
  Kind kind = Kind::kNever;
  milliseconds delay{0};

  static Due Never() { return {Kind::kNever, milliseconds{0}}; }
  static Due Unchanged() { return {Kind::kUnchanged, milliseconds{0}}; }
  // Without a delay, at once.
  static Due After(milliseconds delay) {
    return delay.count() == 0 ? AtOnce() : Due{Kind::kAfter, delay};
  }
  // Due before everything that had to wait, and by any clock: it is no time, so setting the store's
  // clock back does not delay it.
  static Due AtOnce() { return {Kind::kAtOnce, milliseconds{0}}; }

  bool IsTimed() const { return kind == Kind::kAfter || kind == Kind::kAtOnce; }
  bool HasCome() const { return kind == Kind::kAtOnce; }
};

// The due time of a record that is due at once: so far in the past that no clock is behind it. The
// order of moments is preserved.
MUSTER_EXPORT WallTime DueAtOnce(WallTime moment);
MUSTER_EXPORT bool IsDueAtOnce(WallTime due);

// One change of one record, applied only if the stored version is still `record.version` (0: only
// if there is no such record).
struct Change {
  enum class Op { kPut, kDelete };
  Op op = Op::kPut;
  Record record;
  Due due = Due::Unchanged();
  // A power failure may undo it, together with everything after it, until something not deferred
  // has been written. No other crash does. For changes that would be repeated identically: the
  // store need not wait for its disk.
  bool deferred = false;

  // Creates (version 0) or replaces: owner, attempt and body are stored as in `record`. queue
  // matters only at creation, epoch not at all: a new record has epoch 0 and only a claim raises
  // it.
  static Change Put(Record record, Due due, bool deferred = false) {
    return {Op::kPut, std::move(record), due, deferred};
  }
  static Change Delete(Record record) {
    return {Op::kDelete, std::move(record), Due::Never(), false};
  }
};

// The outcome of one change.
struct Written {
  bool applied = false;  // false: the expected version did not match, nothing was changed
  int64_t version = 0;   // the new version after a put
};

struct ClaimRequest {
  std::string kind;
  std::string queue;
  // Only this record, if due; empty: any that are due, oldest first. The order may differ where
  // that keeps workers from colliding.
  std::string key = {};
  int limit = 1;
  std::string owner;
  std::string claim_id;  // new for every claim; see Env::NewId
  bool repeat = false;   // this claim_id was tried before with an unknown outcome
  milliseconds lease{60'000};
  milliseconds max_lease{3'600'000};
  bool deferred = false;  // as in a Change: a power failure may grant the same epoch again
};

// The lease of a claim that raises `attempt` to this: the base lease, doubled for every attempt
// after the first, up to the maximum.
MUSTER_EXPORT milliseconds LeaseFor(int attempt, milliseconds lease, milliseconds max_lease);

// Where processes coordinate: records with due times. Every backend keeps the same promises; the
// contract suite in tests/contract checks them.
//
// - A change of a single record is atomic, and durable before the call returns unless it is
//   deferred. Several changes in one call are only an optimisation: some may be applied and others
//   not.
// - kUnavailable, kReadOnly, kFull, kInvalid: nothing was applied. kUnknownOutcome: it may have
//   been, or may still be, applied: read again, then decide.
// - All times are by the store's clock. A caller's clock does not matter.
// - A record that is deleted and recreated starts at a new version and at epoch 0: protocols that
//   fence a sink by epoch must not delete the record.
// - Thread-safe. Calls block, for seconds at most (a third of the shortest useful lease).
class Store {
 public:
  virtual ~Store() = default;

  virtual Result<std::optional<Record>> Get(std::string_view kind, std::string_view key) = 0;

  // Up to `limit` records of a kind whose keys start with `prefix` and come after `after`, in byte
  // order of the keys.
  virtual Result<std::vector<Record>> Scan(std::string_view kind, std::string_view prefix,
                                           std::string_view after, int limit) = 0;

  // Applies each change whose expected version matches; results are in the order of `changes`. Two
  // changes of one record in one call are kInvalid.
  virtual Result<std::vector<Written>> Write(std::span<const Change> changes) = 0;

  // Claims up to `limit` due records for `owner`: epoch + 1, attempt + 1, due after
  // LeaseFor(attempt). No two claims ever get the same epoch of a record. With `repeat`, returns
  // what this claim_id took before and still holds; only if that is nothing, claims records.
  virtual Result<std::vector<Record>> Claim(const ClaimRequest& request) = 0;

  // The store's clock.
  virtual Result<WallTime> Now() = 0;

  // Returns when something of this kind may have changed, after `timeout`, or on a stop request,
  // whichever comes first. A hint: it may be late or spurious, and nothing may rely on it.
  virtual void Wait(std::string_view kind, milliseconds timeout, std::stop_token stop) = 0;
};

// Opens a store by URL, creating it if possible:
//   memory:                        in this process, lost when it ends
//   sqlite:PATH                    a file, shared by the processes of one machine
//   postgresql://USER@HOST/DB      a server
//   opensearch+https://HOST:PORT   a cluster of OpenSearch or Elasticsearch (or opensearch+http)
//   dynamodb://REGION/TABLE        an AWS table; created only with ?create=true
// `?namespace=NAME` separates several deployments in one database (default: muster). Passwords and
// keys must be references: ${env:NAME} or ${file:PATH}. `env` must outlive the store.
MUSTER_EXPORT Result<std::unique_ptr<Store>> OpenStore(const std::string& url, Env& env);

struct LeaseTerms {
  milliseconds lease{60'000};
  milliseconds max_lease{3'600'000};
};

// The owner of a claimed record: the claimer's name and the first digits of the holder's id, which
// is new for every claim. A store that went back in time may grant an epoch again, even to another
// thread of the same process; the owner distinguishes the two.
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

  // Deletes the record. Success: it is gone.
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
