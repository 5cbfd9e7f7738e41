#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/condition.h"
#include "core/mutex.h"
#include "core/planted_bug.h"
#include "store/backends.h"
#include "store/record_rules.h"

namespace muster::store {
namespace {

class MemoryStore final : public Store {
 public:
  explicit MemoryStore(Env& env) : env_(env) {}

  // A copy of the current state.
  std::unique_ptr<MemoryStore> Copy() {
    auto copy = std::make_unique<MemoryStore>(env_);
    const MutexLock lock(mutex_);
    const MutexLock theirs(copy->mutex_);
    copy->records_ = records_;
    copy->created_ = created_;
    for (auto& [name, entry] : copy->records_) copy->List(entry);
    return copy;
  }

  Result<std::optional<Record>> Get(std::string_view kind, std::string_view key) override {
    MUSTER_TRY(CheckKind(kind));
    MUSTER_TRY(CheckKey(key));
    const MutexLock lock(mutex_);
    auto found = records_.find({std::string(kind), std::string(key)});
    if (found == records_.end()) return std::optional<Record>{};
    return std::optional<Record>(found->second.record);
  }

  Result<std::vector<Record>> Scan(std::string_view kind, std::string_view prefix,
                                   std::string_view after, int limit) override {
    MUSTER_TRY(CheckScan(kind, prefix, after, limit));
    std::vector<Record> page;
    const MutexLock lock(mutex_);
    page.reserve(std::min(static_cast<size_t>(limit), records_.size()));
    auto it = after >= prefix ? records_.upper_bound({std::string(kind), std::string(after)})
                              : records_.lower_bound({std::string(kind), std::string(prefix)});
    for (; it != records_.end() && page.size() < static_cast<size_t>(limit); ++it) {
      const Record& record = it->second.record;
      if (record.kind != kind || !record.key.starts_with(prefix)) break;
      page.push_back(record);
    }
    return page;
  }

  Result<std::vector<Written>> Write(std::span<const Change> changes) override {
    MUSTER_TRY(CheckChanges(changes));
    std::vector<Written> answers;
    answers.reserve(changes.size());
    const MutexLock lock(mutex_);
    for (const Change& change : changes) answers.push_back(Apply(change));
    ++changes_;
    changed_.NotifyAll();
    return answers;
  }

  Result<std::vector<Record>> Claim(const ClaimRequest& request) override {
    MUSTER_TRY(CheckClaim(request));
    const MutexLock lock(mutex_);
    std::vector<Record> claimed;
    if (request.repeat) claimed = TakenBy(request);
    if (!claimed.empty()) return claimed;
    for (Entry* entry : DueNow(request)) {
      Record& record = entry->record;
      Unlist(*entry);
      const bool again = record.owner == request.owner;
      record.owner = request.owner;
      record.epoch += PLANTED_BUG(epoch_stays_for_the_same_owner) && again ? 0 : 1;
      record.attempt += 1;
      record.version += ClaimStep(request);
      record.due = env_.WallNow() + LeaseFor(record.attempt, request.lease, request.max_lease);
      entry->claim_id = request.claim_id;
      List(*entry);
      claimed.push_back(record);
    }
    return claimed;
  }

  std::vector<Record> Claimable(const ClaimRequest& request) {
    const MutexLock lock(mutex_);
    std::vector<Record> claimable;
    if (request.repeat) claimable = TakenBy(request);
    if (!claimable.empty()) return claimable;
    for (const Entry* entry : DueNow(request)) claimable.push_back(entry->record);
    return claimable;
  }

  Result<WallTime> Now() override { return env_.WallNow(); }

  void Wait(std::string_view /*kind*/, milliseconds timeout, std::stop_token stop) override {
    MutexLock lock(mutex_);
    const uint64_t seen = changes_;
    changed_.WaitFor(lock, timeout, stop, [&]() REQUIRES(mutex_) { return changes_ != seen; });
  }

 private:
  using Name = std::pair<std::string, std::string>;  // kind, key

  struct Entry {
    Record record;
    std::string claim_id;
    uint64_t number = 0;  // in the order of creation
  };

  Written Apply(const Change& change) REQUIRES(mutex_) {
    const Name name{change.record.kind, change.record.key};
    auto found = records_.find(name);
    const int64_t stored = found == records_.end() ? 0 : found->second.record.version;
    if (stored != change.record.version &&
        !(PLANTED_BUG(versions_are_not_compared) && stored != 0)) {
      return {};
    }
    if (change.op == Change::Op::kDelete) {
      Unlist(found->second);
      records_.erase(found);
      return {.applied = true};
    }
    Entry& entry = records_[name];
    Record& record = entry.record;
    if (stored == 0) {
      record = change.record;
      entry.number = ++created_;
      record.version = FirstVersion(env_);
      record.epoch = 0;
      record.due.reset();
    } else {
      Unlist(entry);
      record.version += 1;
      record.owner = change.record.owner;
      record.attempt = change.record.attempt;
      record.body = change.record.body;
    }
    if (change.due.kind == Due::Kind::kNever) record.due.reset();
    if (change.due.kind == Due::Kind::kAfter) record.due = env_.WallNow() + change.due.delay;
    if (change.due.kind == Due::Kind::kAtOnce) {
      const WallTime now = env_.WallNow();
      record.due = PLANTED_BUG(at_once_is_a_time) ? now : DueAtOnce(now);
    }
    List(entry);
    return {.applied = true, .version = record.version};
  }

  // What this claim took before, unless others have claimed it since.
  std::vector<Record> TakenBy(const ClaimRequest& request) REQUIRES(mutex_) {
    std::vector<Record> taken;
    for (const auto& due : due_) {
      const Entry& entry = *std::get<Entry*>(due);
      if (entry.record.kind == request.kind && entry.record.queue == request.queue &&
          entry.claim_id == request.claim_id) {
        taken.push_back(entry.record);
      }
    }
    return taken;
  }

  std::vector<Entry*> DueNow(const ClaimRequest& request) REQUIRES(mutex_) {
    const WallTime now = env_.WallNow();
    std::vector<Entry*> due;
    if (!request.key.empty()) {
      auto found = records_.find({request.kind, request.key});
      if (found == records_.end()) return due;
      const Record& record = found->second.record;
      if (record.queue == request.queue && record.due && *record.due <= now) {
        due.push_back(&found->second);
      }
      return due;
    }
    auto it = due_.lower_bound({request.kind, request.queue, WallTime::min(), 0, nullptr});
    for (; it != due_.end() && due.size() < static_cast<size_t>(request.limit); ++it) {
      const auto& [kind, queue, time, number, entry] = *it;
      if (kind != request.kind || queue != request.queue ||
          (time > now && !PLANTED_BUG(leases_are_not_respected))) {
        break;
      }
      due.push_back(entry);
    }
    return due;
  }

  void List(Entry& entry) REQUIRES(mutex_) {
    const Record& r = entry.record;
    if (r.due) due_.emplace(r.kind, r.queue, *r.due, entry.number, &entry);
  }

  void Unlist(Entry& entry) REQUIRES(mutex_) {
    const Record& r = entry.record;
    if (r.due) due_.erase({r.kind, r.queue, *r.due, entry.number, &entry});
  }

  Env& env_;
  Mutex mutex_;
  Condition changed_{env_};
  uint64_t changes_ GUARDED_BY(mutex_) = 0;
  uint64_t created_ GUARDED_BY(mutex_) = 0;
  std::map<Name, Entry> records_ GUARDED_BY(mutex_);
  // By kind, queue, due time and number: of those due at the same time the oldest comes first.
  std::set<std::tuple<std::string, std::string, WallTime, uint64_t, Entry*>> due_
      GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Store> NewMemoryStore(Env& env) { return std::make_unique<MemoryStore>(env); }

std::unique_ptr<Store> CopyMemoryStore(Store& store) {
  return dynamic_cast<MemoryStore&>(store).Copy();
}

std::vector<Record> ClaimableIn(Store& store, const ClaimRequest& request) {
  return dynamic_cast<MemoryStore&>(store).Claimable(request);
}

}  // namespace muster::store
