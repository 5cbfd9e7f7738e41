#include "muster/store.h"

#include <algorithm>
#include <utility>

#include "core/backoff.h"
#include "core/interrupt.h"
#include "core/log.h"
#include "core/planted_bug.h"

namespace muster::store {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kSilence{3'000};  // a longer outage is logged
constexpr int kMaxClaimTries = 8;

// A holder must reach the store a few times within a lease.
void WarnIfSlow(Env& env, const std::string& what, MonoTime asked, milliseconds lease) {
  const auto took = std::chrono::duration_cast<milliseconds>(env.MonoNow() - asked);
  if (took < lease / 3) return;
  Log(Level::kWarning,
      "the store is too slow for the lease: raise --lease, or use a store that is closer",
      {{"item", what},
       {"took_ms", took.count()},
       {"lease_ms", lease.count()},
       {"lease_needed_ms", 4 * took.count()}});
}

// Failures of the store during one change. A long outage is logged once.
class StoreOutage {
 public:
  StoreOutage(Env& env, const std::string& item) : env_(env), item_(item), since_(env.MonoNow()) {}

  void Note(const Error& error) {
    met_ = true;
    if (logged_ || env_.MonoNow() - since_ < kSilence) return;
    logged_ = true;
    Log(Level::kWarning, "waiting for the store", {{"item", item_}, {"error", error.ToString()}});
  }
  bool met() const { return met_; }
  MonoTime since() const { return since_; }

 private:
  Env& env_;
  const std::string item_;
  const MonoTime since_;
  bool met_ = false;
  bool logged_ = false;
};

constexpr size_t kHolderDigits = 8;

bool IsUnknown(const Error& error) { return error.code == Code::kUnknownOutcome; }

}  // namespace

std::string OwnerName(const std::string& name, const std::string& holder) {
  return name + "#" + holder.substr(0, kHolderDigits);
}

std::string NameOfOwner(const std::string& owner) { return owner.substr(0, owner.rfind('#')); }

struct Lease::State {
  enum class Verdict { kOurs, kApplied, kLost };

  Store& store;
  Env& env;
  LeaseTerms terms;
  Record record;
  MonoTime deadline;
  std::optional<Record> lost_to = {};

  bool Expired() const { return env.MonoNow() >= deadline; }

  // Makes the change, retrying calls that fail, and sets its record's new version.
  Status TryChange(Change& change) {
    Backoff backoff(env);
    StoreOutage outage(env, record.key);
    bool may_be_applied = false;
    for (;;) {
      if (Expired() && !PLANTED_BUG(retries_outlive_the_lease)) return Lost();
      const auto written = store.Write({&change, 1});
      if (!written) outage.Note(written.error());
      if (!outage.met()) WarnIfSlow(env, record.key, outage.since(), terms.lease);
      if (written && written->front().applied) {
        change.record.version = written->front().version;
        return {};
      }
      if (!written && !IsTransient(written.error().code)) return written.error();
      if (!written && PLANTED_BUG(unknown_outcome_is_success) && IsUnknown(written.error()))
        return {};
      if (written || IsUnknown(written.error())) {
        may_be_applied = true;
        auto stored = store.Get(record.kind, record.key);
        if (stored) {
          const Verdict verdict = Judge(*stored, change);
          if (verdict == Verdict::kLost) {
            lost_to = *std::move(stored);
            return lost_to ? Lost() : Gone();
          }
          change.record.version = *stored ? (*stored)->version : 0;
          if (verdict == Verdict::kApplied) return {};
          if (written) continue;  // only the version was stale: retry at once
        }
      }
      // Past the hand-over deadline, waiting is pointless: the lease expires by itself.
      if ((!written && Interrupted()) || !backoff.PauseBefore(deadline)) {
        if (may_be_applied) return Undecided();
        return written.error();
      }
    }
  }

  // Judges by the stored record whether the change was made, after a conflict or unknown outcome.
  Verdict Judge(const std::optional<Record>& stored, const Change& change) const {
    if (!stored && change.op == Change::Op::kDelete) return Verdict::kApplied;
    if (!stored) return record.version == 0 ? Verdict::kOurs : Verdict::kLost;
    const Record& next = change.record;
    const bool as_known = stored->owner == record.owner && stored->body == record.body;
    const bool as_next = stored->owner == next.owner && stored->body == next.body;
    const bool same_claim = stored->epoch == record.epoch;
    // If only the due time was to change, the record does not show whether it did: try again.
    if (same_claim && stored->version > record.version && as_next && !as_known)
      return Verdict::kApplied;
    if (PLANTED_BUG(fence_off)) return Verdict::kOurs;
    if (!same_claim) return Verdict::kLost;
    return as_known || PLANTED_BUG(a_stop_is_overwritten) ? Verdict::kOurs : Verdict::kLost;
  }

  Error Lost() const {
    return {Code::kLeaseLost, "the lease of '" + record.key + "' is lost",
            "another process continues from the last checkpoint"};
  }

  Error Gone() const {
    return {Code::kLeaseLost, "the record of '" + record.key + "' is gone from the store",
            "it was removed, or the store was restored or replaced"};
  }

  Error Undecided() const {
    return {Code::kUnknownOutcome,
            "the last change of '" + record.key + "' may not have been stored",
            "the next holder continues from what is stored"};
  }
};

Result<std::vector<Lease>> Lease::Claim(Store& store, const LeaseRequest& wanted, Env& env,
                                        std::stop_token stop) {
  const LeaseTerms& terms = wanted.terms;
  const std::string holder = wanted.holder.empty() ? env.NewId() : wanted.holder;
  ClaimRequest request{.kind = wanted.kind,
                       .queue = wanted.queue,
                       .key = wanted.key,
                       .limit = wanted.limit,
                       .owner = OwnerName(wanted.owner, holder),
                       .claim_id = env.NewId(),
                       .lease = terms.lease,
                       .max_lease = terms.max_lease,
                       .deferred = wanted.deferred};
  Backoff backoff(env, stop);
  // The lease runs from the moment the store grants it. We count from before the first request that
  // may have been granted, so that we always stop earlier than the store does.
  MonoTime asked = env.MonoNow();
  Result<std::vector<Record>> claimed = store.Claim(request);
  for (int tries = 1; !claimed && IsTransient(claimed.error().code); ++tries) {
    if (tries == kMaxClaimTries || !backoff.PauseBefore(asked + terms.lease))
      return claimed.error();
    if (IsUnknown(claimed.error()) && !PLANTED_BUG(claim_is_not_repeated)) request.repeat = true;
    if (!request.repeat || PLANTED_BUG(lease_counted_from_the_last_try)) asked = env.MonoNow();
    claimed = store.Claim(request);
  }
  if (!claimed) return claimed.error();
  if (!claimed->empty()) WarnIfSlow(env, claimed->front().key, asked, terms.lease);
  std::vector<Lease> leases;
  leases.reserve(claimed->size());
  for (Record& record : *claimed) {
    const MonoTime deadline = asked + LeaseFor(record.attempt, terms.lease, terms.max_lease);
    leases.push_back(Lease(State{store, env, terms, std::move(record), deadline}));
  }
  return leases;
}

Result<Lease> Lease::Create(Store& store, Record record, milliseconds lease, Env& env) {
  const MonoTime deadline = env.MonoNow() + lease;
  const LeaseTerms terms{.lease = lease, .max_lease = lease};
  Lease created(State{store, env, terms, std::move(record), deadline});
  MUSTER_TRY(created.Commit(created.record(), Due::After(lease)));
  return created;
}

Lease::Lease(State state) : state_(std::make_unique<State>(std::move(state))) {}
Lease::Lease(Lease&& other) noexcept = default;
Lease& Lease::operator=(Lease&& other) noexcept = default;
Lease::~Lease() = default;

const Record& Lease::record() const { return state_->record; }
Store& Lease::store() const { return state_->store; }
Env& Lease::env() const { return state_->env; }
MonoTime Lease::deadline() const { return state_->deadline; }
bool Lease::Expired() const { return state_->Expired(); }
void Lease::SetDeadline(MonoTime deadline) { state_->deadline = deadline; }
const std::optional<Record>& Lease::lost_to() const { return state_->lost_to; }

Result<bool> Lease::StillOurs() const {
  MUSTER_ASSIGN(const std::optional<Record> stored, store().Get(record().kind, key()));
  // Every claim raises the epoch, including one of ours that a restart has forgotten: the holder of
  // an older epoch holds nothing.
  return stored &&
         (PLANTED_BUG(fence_off) || (stored->epoch == epoch() && stored->owner == owner()));
}

Status Lease::Renew(std::string body) {
  Record next = record();
  next.body = std::move(body);
  if (!PLANTED_BUG(progress_is_not_counted)) next.attempt = 0;
  return Commit(std::move(next), Due::After(state_->terms.lease));
}

Status Lease::End(std::string body) {
  Record next = record();
  next.body = std::move(body);
  return Commit(std::move(next), Due::Never());
}

Status Lease::Park(std::string body) {
  Record next = record();
  next.owner.clear();
  next.body = std::move(body);
  return Commit(std::move(next), Due::Never());
}

Status Lease::Remove() {
  Change change = Change::Delete(record());
  Status removed = state_->TryChange(change);
  Abandon();
  return removed;
}

Status Lease::Release() {
  Record next = record();
  next.owner.clear();
  next.attempt = std::max(0, next.attempt - 1);
  return Commit(std::move(next),
                PLANTED_BUG(release_keeps_the_lease) ? Due::Unchanged() : Due::AtOnce());
}

Status Lease::GiveBack(std::string body, milliseconds delay, Attempts attempts) {
  Record next = record();
  next.owner.clear();
  next.body = std::move(body);
  if (attempts == Attempts::kAnew) next.attempt = 0;
  return Commit(std::move(next), Due::After(delay));
}

Status Lease::Commit(Record next, Due due, bool deferred) {
  const MonoTime asked = env().MonoNow();
  Change change = Change::Put(std::move(next), due, deferred);
  Status committed = state_->TryChange(change);
  if (committed) {
    const int64_t version = change.record.version;
    Committed(std::move(change.record), version, due, asked);
  } else {
    // Our copy may be out of date, so nothing more may be written from it.
    Abandon();
  }
  return committed;
}

void Lease::Committed(Record next, int64_t version, Due due, MonoTime asked) {
  const bool held = !next.owner.empty() && next.owner == owner();
  if (held && due.kind == Due::Kind::kAfter) SetDeadline(asked + due.delay);
  state_->record = std::move(next);
  state_->record.version = version;
}

}  // namespace muster::store
