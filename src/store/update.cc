#include <optional>
#include <string>
#include <utility>

#include "core/backoff.h"
#include "muster/store.h"

namespace muster::store {
namespace {

constexpr int kMaxConflicts = 20;
constexpr int kMaxFailures = 8;
constexpr Backoff::Pauses kPauses{.first = milliseconds(20), .longest = milliseconds(2'000)};

class Updating {
 public:
  Updating(Store& store, const std::string& kind, const std::string& key)
      : store_(store), kind_(kind), key_(key) {}

  Status Run(const UpdateFunction& update) {
    for (;;) {
      Result<bool> updated = Try(update);
      if (updated && *updated) return {};
      if (updated && ++conflicts_ == kMaxConflicts) {
        return Error{Code::kUnavailable,
                     "concurrent updates to record '" + key_ + "'; gave up after " +
                         std::to_string(kMaxConflicts) + " attempts",
                     "try again"};
      }
      if (!updated && (!may_repeat_ || ++failures_ == kMaxFailures)) return updated.error();
      // After the first conflict, retry at once: the other writer is done.
      if (!updated || conflicts_ > 1) Pause();
    }
  }

 private:
  // False: a conflict.
  Result<bool> Try(const UpdateFunction& update) {
    may_repeat_ = false;
    auto stored = store_.Get(kind_, key_);
    if (!stored) return Failed(stored.error());
    const bool moved = unknown_ && VersionOf(*stored) != unknown_->record.version;
    if (moved && WasApplied(*stored)) return true;
    Result<std::optional<Change>> change = update(*std::move(stored));
    if (!change && moved) {
      return Error{Code::kUnknownOutcome,
                   "the update of record '" + key_ +
                       "' may have been applied; now: " + change.error().message,
                   change.error().hint};
    }
    if (!change) return Failed(change.error());
    if (!*change) return true;
    auto written = store_.Write({&**change, 1});
    if (written) return written->front().applied;
    if (written.error().code == Code::kUnknownOutcome) unknown_ = **std::move(change);
    return Failed(written.error());
  }

  // The store wakes us when another attempt may succeed, and callers need no clock.
  void Pause() { store_.Wait(kind_, kPauses.After(++pauses_), {}); }

  Error Failed(const Error& error) {
    may_repeat_ = IsTransient(error.code);
    return error;
  }

  static int64_t VersionOf(const std::optional<Record>& stored) {
    return stored ? stored->version : 0;
  }

  // Whether the record is what the write of unknown outcome would have made it.
  bool WasApplied(const std::optional<Record>& stored) const {
    if (unknown_->op == Change::Op::kDelete) return !stored;
    return stored && stored->body == unknown_->record.body &&
           stored->owner == unknown_->record.owner;
  }

  Store& store_;
  const std::string& kind_;
  const std::string& key_;
  std::optional<Change> unknown_;  // the last write of unknown outcome
  bool may_repeat_ = false;
  int conflicts_ = 0;
  int failures_ = 0;
  int pauses_ = 0;
};

}  // namespace

Status Update(Store& store, const std::string& kind, const std::string& key,
              const UpdateFunction& update) {
  return Updating(store, kind, key).Run(update);
}

}  // namespace muster::store
