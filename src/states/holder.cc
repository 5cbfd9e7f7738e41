#include "states/holder.h"

#include <algorithm>
#include <span>

#include "base/planted_bug.h"

namespace muster::states {
namespace {

constexpr milliseconds kFirstPause{20};
constexpr milliseconds kLongestPause{2'000};
constexpr size_t kPartsPerWrite = 16;

}  // namespace

Holder::Holder(Store& store, Env& env, FlowRecord record, MonoTime deadline)
    : store_(store),
      env_(env),
      codec_(store),
      record_(std::move(record)),
      claimed_body_(record_.record.body),
      claimed_attempt_(record_.record.attempt),
      deadline_(deadline) {}

Holder::Pending Holder::Prepare(Due due, bool release, bool deferred) {
  FlowCodec::Encoded encoded = codec_.Encode(record_);
  Pending pending{
      .next = record_.record, .parts = std::move(encoded.parts), .due = due, .deferred = deferred};
  pending.next.body = std::move(encoded.body);
  pending.next.attempt = 0;
  if (release) pending.next.owner.clear();
  return pending;
}

Holder::Pending Holder::PrepareReturn() const {
  Pending pending{.next = record_.record, .parts = {}, .due = Due::Now(), .deferred = true};
  pending.next.body = claimed_body_;
  pending.next.attempt = std::max(0, claimed_attempt_ - 1);
  pending.next.owner.clear();
  return pending;
}

void Holder::Applied(Pending pending, int64_t version) {
  record_.record = std::move(pending.next);
  record_.record.version = version;
}

Status Holder::Commit(Pending pending) {
  Status committed = TryCommit(pending);
  if (!committed) Lost();
  return committed;
}

Status Holder::TryCommit(Pending& pending) {
  const Error lost{Code::kLeaseLost, "'" + record_.record.key + "' is no longer ours",
                   "another process goes on with it"};
  const std::string known_body = record_.record.body;
  const std::string owner = record_.record.owner;
  const int64_t known_version = record_.record.version;
  milliseconds pause = kFirstPause;
  // A record never names a part that is not there. One that exists is ours, from an earlier try.
  for (std::span<const Change> parts = pending.parts; !parts.empty();) {
    if (Expired()) return lost;
    const auto some = parts.first(std::min(kPartsPerWrite, parts.size()));
    const auto written = store_.Write(some);
    if (written) {
      parts = parts.subspan(some.size());
      continue;
    }
    if (!IsTransient(written.error().code)) return written.error();
    env_.Sleep(pause + env_.Jitter(pause), {});
    pause = std::min(pause * 2, kLongestPause);
  }
  for (;;) {
    if (Expired()) return lost;
    const Change change = pending.ToChange();
    auto written = store_.Write({&change, 1});
    if (written && written->front().applied) {
      Applied(std::move(pending), written->front().version);
      return {};
    }
    if (!written && !IsTransient(written.error().code)) return written.error();
    if (written || written.error().code == Code::kUnknownOutcome) {
      auto stored = store_.Get(record_.record.kind, record_.record.key);
      if (stored) {
        if (!*stored || (*stored)->epoch != pending.next.epoch) return lost;
        const bool came_through = (*stored)->version > known_version &&
                                  (*stored)->body == pending.next.body &&
                                  (*stored)->owner == pending.next.owner;
        if (came_through) {
          record_.record = **std::move(stored);
          return {};
        }
        // Somebody else has ended it.
        if (!PLANTED_BUG(a_stop_is_overwritten) &&
            ((*stored)->owner != owner || (*stored)->body != known_body))
          return lost;
        pending.next.version = (*stored)->version;
        if (written) continue;
      }
    }
    const std::chrono::nanoseconds wait = pause + env_.Jitter(pause);
    pause = std::min(pause * 2, kLongestPause);
    if (env_.MonoNow() + wait >= deadline_) return lost;
    env_.Sleep(wait, {});
  }
}

Status Holder::Renew(milliseconds lease) {
  const MonoTime asked = env_.MonoNow();
  Pending pending{.next = record_.record, .parts = {}, .due = Due::After(lease), .deferred = true};
  pending.next.attempt = 0;
  Status renewed = Commit(std::move(pending));
  if (renewed) deadline_ = asked + lease;
  return renewed;
}

}  // namespace muster::states
