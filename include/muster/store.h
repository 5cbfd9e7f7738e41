#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
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
#include "muster/version.h"

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
  static Due After(milliseconds delay) { return {Kind::kAfter, delay}; }
  static Due Now() { return After(milliseconds{0}); }
  // Due before everything else, even if the store's clock is set back later.
  static Due AtOnce() { return {Kind::kAtOnce, milliseconds{0}}; }

  bool IsTimed() const { return kind == Kind::kAfter || kind == Kind::kAtOnce; }
  bool HasCome() const { return IsTimed() && delay.count() == 0; }
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

}  // namespace muster::store
