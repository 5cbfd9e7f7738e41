#include "work/redrive_lease.h"

#include <utility>

#include "core/log.h"
#include "muster/store.h"

namespace muster::work {
namespace {

// As short as the store's longest request allows: this is how long a redrive waits for one that was
// killed.
constexpr milliseconds kLease{30'000};
constexpr milliseconds kWait = kLease + milliseconds(5'000);
constexpr milliseconds kLook{500};

Status EnsureRecord(store::Store& store, const std::string& run, const std::string& key) {
  const auto create =
      [&](const std::optional<store::Record>& stored) -> Result<std::optional<store::Change>> {
    if (stored) return std::nullopt;
    return store::Change::Put(store::Record{.kind = kRedriveLeaseKind,
                                            .queue = run,
                                            .key = key,
                                            .body = RedrivePageBody().ToJson()},
                              store::Due::AtOnce());
  };
  return store::Update(store, kRedriveLeaseKind, key, create);
}

// The name of the holder.
Result<std::string> HolderOf(store::Store& store, const std::string& key) {
  MUSTER_ASSIGN(const auto stored, store.Get(kRedriveLeaseKind, key));
  const std::string holder = stored ? store::NameOfOwner(stored->owner) : "";
  return holder.empty() ? "another process" : holder;
}

}  // namespace

Result<RedriveLease> RedriveLease::Acquire(store::Store& store, const std::string& run,
                                           const std::string& owner, Env& env,
                                           std::stop_token stop) {
  const std::string key = RedriveLeaseKey(run);
  MUSTER_TRY(EnsureRecord(store, run, key));
  const store::LeaseRequest request{.kind = kRedriveLeaseKind,
                                    .queue = run,
                                    .key = key,
                                    .owner = owner,
                                    .terms = {.lease = kLease, .max_lease = kLease}};
  const MonoTime deadline = env.MonoNow() + kWait;
  for (bool logged = false;;) {
    MUSTER_ASSIGN(auto leases, store::Lease::Claim(store, request, env, stop));
    if (!leases.empty()) {
      auto page = RedrivePageBody::FromJson(leases[0].body());
      if (page) return RedriveLease(std::move(leases[0]), *std::move(page), env);
      // Another version may be able to read it.
      static_cast<void>(leases[0].Release());
      return page.error();
    }
    MUSTER_ASSIGN(const std::string holder, HolderOf(store, key));
    if (env.MonoNow() >= deadline) {
      return Error{Code::kConflict, "letters of run '" + run + "' are being redriven by " + holder,
                   "wait until it has ended: one redrive of a run at a time"};
    }
    if (!std::exchange(logged, true)) {
      Log(Level::kWarning, "waiting for another redrive to end", {{"run", run}, {"by", holder}});
    }
    if (!env.Sleep(kLook, stop)) return Error{Code::kCancelled, "stopped on request"};
  }
}

MonoTime RedriveLease::WriteDeadline() const { return lease_.deadline() - kLease / 5; }

Status RedriveLease::Save(RedrivePageBody page) {
  MUSTER_TRY(lease_.Renew(page.ToJson()));
  page_ = std::move(page);
  renewed_ = env_->MonoNow();
  return {};
}

Status RedriveLease::KeepUp() {
  if (env_->MonoNow() - renewed_ < kLease / 6) return {};
  return Save(page_);
}

}  // namespace muster::work
