#include "states/durable/holder.h"

#include <algorithm>
#include <utility>

#include "core/backoff.h"

namespace muster::states {
namespace {

constexpr size_t kPartsPerWrite = 16;

}  // namespace

Holder::Holder(store::Lease lease, FlowRecord record)
    : lease_(std::move(lease)),
      codec_(lease_.store()),
      record_(std::move(record)),
      claimed_body_(lease_.body()),
      claimed_attempt_(lease_.attempt()) {}

Holder::Pending Holder::Prepare(store::Due due, bool release, bool deferred) {
  FlowCodec::Encoded encoded = codec_.Encode(record_);
  Pending pending{
      .next = record_.record, .parts = std::move(encoded.parts), .due = due, .deferred = deferred};
  pending.next.body = std::move(encoded.body);
  pending.next.attempt = 0;
  if (release) pending.next.owner.clear();
  return pending;
}

Holder::Pending Holder::PrepareReturn() const {
  Pending pending{
      .next = record_.record, .parts = {}, .due = store::Due::AtOnce(), .deferred = true};
  pending.next.body = claimed_body_;
  pending.next.attempt = std::max(0, claimed_attempt_ - 1);
  pending.next.owner.clear();
  return pending;
}

void Holder::Applied(Pending pending, int64_t version, MonoTime asked) {
  lease_.Committed(std::move(pending.next), version, pending.due, asked);
  record_.record = lease_.record();
}

Status Holder::Commit(Pending pending) {
  if (Status written = WriteParts(pending.parts); !written) {
    lease_.Abandon();
    return written;
  }
  return CommitRecord(std::move(pending.next), pending.due, pending.deferred);
}

// Parts are written before the record that names them. One that exists is ours, from an earlier
// try.
Status Holder::WriteParts(std::span<const store::Change> parts) {
  while (!parts.empty()) {
    const auto some = parts.first(std::min(kPartsPerWrite, parts.size()));
    MUSTER_TRY(
        RetryBefore(lease_.deadline(), lease_.env(), [&] { return lease_.store().Write(some); }));
    parts = parts.subspan(some.size());
  }
  return {};
}

Status Holder::CommitRecord(store::Record next, store::Due due, bool deferred) {
  MUSTER_TRY(lease_.Commit(std::move(next), due, deferred));
  record_.record = lease_.record();
  return {};
}

Status Holder::Renew(milliseconds lease) {
  store::Record next = lease_.record();
  next.attempt = 0;
  return CommitRecord(std::move(next), store::Due::After(lease), true);
}

}  // namespace muster::states
