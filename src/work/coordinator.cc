#include "work/coordinator.h"

#include <algorithm>
#include <set>

#include "core/json.h"
#include "core/log.h"
#include "core/planted_bug.h"
#include "core/timestamp.h"
#include "pipeline/pipeline.h"
#include "store/store.h"
#include "work/records.h"
#include "work/roster.h"
#include "work/target_check.h"
#include "work/whole_run.h"

namespace muster::work {
namespace {

bool SameSelection(const RunSpec& spec, const RunBody& stored) {
  return stored.selection.value_or(spec.selection) == spec.selection;
}

std::string SelectionWords(const std::string& selection) {
  return selection.empty() ? "all of its collections" : "of its collections " + selection;
}

Error OtherMigration(const RunSpec& spec, const RunBody& stored) {
  return Error{Code::kConflict,
               "run '" + spec.name + "' in this store migrates " + stored.source + " to " +
                   stored.sink +
                   (stored.transforms == spec.transforms ? "" : " by other transforms") +
                   (SameSelection(spec, stored) ? "" : ", " + SelectionWords(*stored.selection)),
               "give this migration another name with --run, or start it as the others were"};
}

// A later reader is authoritative over what earlier ones read.
int64_t RankOf(const ItemBody& item, int64_t epoch) {
  if (PLANTED_BUG(ranks_are_not_in_order)) return 1;
  const int64_t rank = item.rank + epoch;
  if (item.partition.follows)
    return rank < pipeline::kFirstFollowerRank ? rank + pipeline::kFirstFollowerRank : rank;
  return std::min(rank, pipeline::kFirstFollowerRank - 1);
}

bool IsSame(const std::string& given, const std::string& former, const std::string& stored) {
  return given == stored || (!former.empty() && former == stored);
}

bool SameMigration(const RunSpec& spec, const RunBody& stored) {
  return IsSame(spec.source, spec.former_source, stored.source) &&
         IsSame(spec.sink, spec.former_sink, stored.sink) && spec.transforms == stored.transforms &&
         SameSelection(spec, stored);
}

void LogUnreadable(const std::string& key, const Error& error) {
  Log(Level::kError, "an item cannot be read", {{"item", key}, {"error", error.ToString()}});
}

// Creates the run record, or starts a new incarnation of it.
class Joining {
 public:
  Joining(store::Store& store, Env& env, const RunSpec& spec)
      : store_(store),
        env_(env),
        spec_(spec),
        // Alone, there is only one: to the sink all runs of that name are the same.
        incarnation_(spec.alone ? spec.name : env.NewId()) {}

  Status Join() {
    return store::Update(store_, kRunKind, spec_.name, [&](std::optional<store::Record> stored) {
      return stored ? Enter(*std::move(stored)) : Create();
    });
  }

 private:
  Result<std::optional<store::Change>> Create() {
    MUSTER_ASSIGN(const int64_t start_ms, NextStartMs(store_));
    const RunBody body{.incarnation = incarnation_,
                       .adopts = spec_.new_incarnation,
                       .source = spec_.source,
                       .sink = spec_.sink,
                       .transforms = spec_.transforms,
                       .selection = spec_.selection,
                       .max_failures = spec_.max_failures.value_or(FailureLimit()),
                       .created_ms = env_.WallNow().time_since_epoch().count(),
                       .since_ms = start_ms,
                       .begun_ms = spec_.new_incarnation ? 0 : start_ms};
    // Written last: a process that finds the run finds everything it needs.
    MUSTER_TRY(BeginPreparation(store_, spec_.name, incarnation_));
    MUSTER_TRY(BeginBudget(store_, spec_.name, {}));
    return store::Change::Put(
        store::Record{
            .kind = kRunKind, .queue = spec_.name, .key = spec_.name, .body = body.ToJson()},
        store::Due::Never());
  }

  Result<std::optional<store::Change>> Enter(store::Record stored) {
    MUSTER_ASSIGN(RunBody body, RunBody::FromJson(stored.body));
    if (!SameMigration(spec_, body)) return OtherMigration(spec_, body);
    if (body.removing) return CheckGoesOn(spec_.name, body).error();
    MUSTER_TRY(BeginBudget(store_, spec_.name, {}));
    MUSTER_ASSIGN(const bool changed, SetLimit(store_, spec_.name, spec_.max_failures, body));
    if (!spec_.new_incarnation || body.incarnation == incarnation_) {
      if (!changed) return std::nullopt;
      stored.body = body.ToJson();
      return store::Change::Put(std::move(stored), store::Due::Never());
    }
    if (body.ready) {
      MUSTER_ASSIGN(body.ready, IsWhole(store_, spec_.name, body.pages));
      if (!body.ready) MUSTER_TRY(BeginPreparation(store_, spec_.name, body.incarnation));
    }
    MUSTER_ASSIGN(body.since_ms, NextStartMs(store_));
    body.finished = false;  // this incarnation decides what has been done
    body.incarnation = incarnation_;
    body.adopts = true;
    stored.body = body.ToJson();
    return store::Change::Put(std::move(stored), store::Due::Never());
  }

  store::Store& store_;
  Env& env_;
  const RunSpec& spec_;
  const std::string incarnation_;
};

}  // namespace

Result<std::unique_ptr<WorkCoordinator>> WorkCoordinator::Join(store::Store& store, Env& env,
                                                               const RunSpec& run,
                                                               const WorkTerms& terms,
                                                               const std::string& worker,
                                                               std::shared_ptr<WorkerState> state) {
  MUSTER_TRY(CheckRunName(run.name));
  MUSTER_TRY(Joining(store, env, run).Join());
  if (!state) state = std::make_shared<WorkerState>(env, terms);
  std::unique_ptr<WorkCoordinator> joined(
      new WorkCoordinator(store, env, run, terms, worker, std::move(state)));
  joined->budget().Begin();
  return joined;
}

WorkCoordinator::WorkCoordinator(store::Store& store, Env& env, RunSpec run, WorkTerms terms,
                                 std::string worker, std::shared_ptr<WorkerState> state)
    : store_(store),
      env_(env),
      spec_(std::move(run)),
      terms_(terms),
      worker_(std::move(worker)),
      state_(std::move(state)),
      pass_(state_->gate),
      roster_(std::make_unique<RunRoster>(store, env, spec_.name)),
      targets_(std::make_unique<TargetCheck>(store, spec_.name)),
      budget_(store, env, spec_.name, worker_, terms_.lease, state_->failures) {}

WorkCoordinator::~WorkCoordinator() = default;

Result<std::optional<LeasedItem>> WorkCoordinator::AcquireNext(std::stop_token stop) {
  // Read before the claim: the sink would refuse a holder that does not know the item's incarnation
  // yet.
  MUSTER_ASSIGN(const std::optional<store::Record> run, store_.Get(kRunKind, spec_.name));
  if (!run) {
    return Error{Code::kIncompatible, "run '" + spec_.name + "' is gone from the store", kGoneHint};
  }
  MUSTER_ASSIGN(const RunBody body, RunBody::FromJson(run->body));
  MUSTER_TRY(CheckGoesOn(spec_.name, body));
  const std::string holder = env_.NewId();
  MUSTER_ASSIGN(std::optional<store::Lease> lease, ClaimItem(holder, stop));
  if (!lease) return std::nullopt;
  CancelSplitRequest();
  auto item = ItemBody::FromJson(lease->body());
  if (!item) return item.error().Within("item '" + lease->key() + "'");
  const pipeline::Partition& partition = item->partition;
  pipeline::Fence fence{
      .run = spec_.name,
      .incarnation = body.incarnation,
      .adopts = body.adopts,
      .alone = spec_.alone,
      .item = NameOf(partition),
      .epoch = PLANTED_BUG(one_epoch_for_all) ? 1 : lease->epoch(),
      .origin = partition.collection + "/" + std::to_string(partition.shard) + "/" + partition.part,
      .since_ms = body.since_ms,
      .rank = RankOf(*item, lease->epoch()),
      .holder = holder};
  item->since_ms = env_.WallNow().time_since_epoch().count();
  item->since_read = item->progress.counts.read;
  return LeasedItem(*std::move(lease), *std::move(item), std::move(fence));
}

// None: nothing is due. A store that went back may receive an item from a worker that remembers a
// split which the store has forgotten. What its predecessor does not know of is not work.
Result<std::optional<store::Lease>> WorkCoordinator::ClaimItem(const std::string& holder,
                                                               const std::stop_token& stop) {
  const store::LeaseRequest request{.kind = kWorkKind,
                                    .queue = spec_.name,
                                    .owner = worker_,
                                    .terms = {.lease = terms_.lease, .max_lease = terms_.max_lease},
                                    .holder = holder};
  for (;;) {
    MUSTER_ASSIGN(std::vector<store::Lease> claimed,
                  store::Lease::Claim(store_, request, env_, stop));
    if (claimed.empty()) return std::nullopt;
    store::Lease& lease = claimed.front();
    const auto item = ItemBody::FromJson(lease.body());
    if (!item && IsNewer(item.error())) {
      static_cast<void>(lease.Release());
      return item.error().Within("item '" + lease.key() + "'");
    }
    // An unreadable item keeps its lease, which grows with each claim: the other items continue,
    // and the roster counts it as quarantined.
    if (!item) {
      LogUnreadable(lease.key(), item.error());
      continue;
    }
    if (item->from.empty()) return std::move(lease);
    auto given = WasSplitOff(*item);
    if (!given && given.error().code == Code::kCorrupt) {
      LogUnreadable(ItemKey(spec_.name, item->from), given.error());
      continue;
    }
    if (!given) {
      static_cast<void>(lease.Release());
      return given.error();
    }
    if (*given) return std::move(lease);
    Log(Level::kWarning, "removed an item that its predecessor does not know",
        {{"item", lease.key()}, {"from", item->from}});
    // Lost: its next holder removes it.
    Status removed = lease.Remove();
    if (!removed && removed.error().code != Code::kLeaseLost) return removed.error();
  }
}

Result<bool> WorkCoordinator::WasSplitOff(const ItemBody& item) {
  MUSTER_ASSIGN(const std::optional<store::Record> record,
                store_.Get(kWorkKind, ItemKey(spec_.name, item.from)));
  if (!record) return false;
  MUSTER_ASSIGN(const ItemBody former, ItemBody::FromJson(record->body));
  return former.HasSplitOff(item);
}

Result<bool> WorkCoordinator::AllSettled() {
  MUSTER_ASSIGN(const bool settled, roster_->Settled());
  if (settled) CancelSplitRequest();
  return settled;
}

Result<bool> WorkCoordinator::IsItsTurn(const pipeline::Partition& follower) {
  const std::string name =
      pipeline::WorkItemName{follower.collection, follower.shard, {}}.ToString();
  // Their keys share a prefix, unless they are so long that they are hashed.
  std::string prefix = spec_.name + "/" + name.substr(0, name.rfind("__") + 2);
  if (prefix.size() > store::kMaxKeyBytes / 2) prefix = spec_.name + "/";
  std::set<std::string> there;
  std::set<std::string> needed;
  for (store::RecordScan items(store_, kWorkKind, prefix);;) {
    MUSTER_ASSIGN(const std::optional<store::Record> record, items.Next());
    if (!record) break;
    const auto body = ItemBody::FromJson(record->body);
    if (!body && IsNewer(body.error())) return body.error();
    // An unreadable item counts as quarantined, which the follower does not wait for either.
    if (!body || body->partition.collection != follower.collection ||
        body->partition.shard != follower.shard || body->partition.follows) {
      continue;
    }
    if (body->state == ItemBody::State::kOpen) return false;
    there.insert(NameOf(body->partition));
    for (const pipeline::Partition& part : body->Successors()) needed.insert(NameOf(part));
  }
  // A scan may lag: a part that was split off and is not there yet counts too.
  return std::includes(there.begin(), there.end(), needed.begin(), needed.end());
}

Result<bool> WorkCoordinator::WakeFollower() {
  const std::vector<RunRoster::OpenItem>& open = roster_->open();
  const auto is_before = [](const pipeline::Partition& one, const pipeline::Partition& follower) {
    return !one.follows && one.shard == follower.shard && one.collection == follower.collection;
  };
  for (const RunRoster::OpenItem& item : open) {
    const pipeline::Partition& follower = item.body.partition;
    // One that has failed waits for its retry.
    if (!follower.follows || !item.holder.empty() || !item.body.error.empty()) continue;
    const bool obviously_not = std::any_of(
        open.begin(), open.end(),
        [&](const RunRoster::OpenItem& one) { return is_before(one.body.partition, follower); });
    if (obviously_not) continue;
    MUSTER_ASSIGN(std::optional<store::Record> record, store_.Get(kWorkKind, item.key));
    MUSTER_ASSIGN(const WallTime now, store_.Now());
    const bool waits = record && record->owner.empty() && record->due && *record->due > now;
    if (!waits) continue;
    MUSTER_ASSIGN(const bool due, IsItsTurn(follower));
    if (!due) continue;
    // A conflict means that another slot was faster.
    const store::Change change = store::Change::Put(*std::move(record), store::Due::AtOnce());
    MUSTER_TRY(store_.Write({&change, 1}));
    return true;
  }
  return false;
}

Result<bool> WorkCoordinator::IsCurrent(const WorkItem& item) {
  MUSTER_ASSIGN(const std::optional<store::Record> run, store_.Get(kRunKind, spec_.name));
  if (!run) return false;
  MUSTER_ASSIGN(const RunBody body, RunBody::FromJson(run->body));
  return body.incarnation == item.fence().incarnation;
}

const std::vector<std::string>& WorkCoordinator::quarantined() const {
  return roster_->quarantined();
}

const std::string& WorkCoordinator::judged() const { return roster_->incarnation(); }

Result<bool> WorkCoordinator::End() { return roster_->End(); }

std::string WorkCoordinator::HeldByOthers() const {
  const RunRoster::OpenItem* first = nullptr;
  for (const RunRoster::OpenItem& item : roster_->open()) {
    if (item.holder == worker_) return "";
    if (item.holder.empty() || !item.due) continue;
    if (first == nullptr || *item.due < *first->due) first = &item;
  }
  if (first == nullptr) return "";
  return "item " + NameOf(first->body.partition) + ", held by " + first->holder + " until " +
         FormatTimestamp(*first->due);
}

Status WorkCoordinator::RequestSplit() {
  if (split_request_) {
    MUSTER_ASSIGN(const std::optional<store::Record> stored,
                  store_.Get(kSplitRequestKind, split_request_->key));
    if (stored && stored->version == split_request_->version) return {};
    split_request_.reset();
  }
  std::vector<const RunRoster::OpenItem*> candidates;
  for (const RunRoster::OpenItem& item : roster_->open()) {
    if (!item.holder.empty() && !item.body.whole) candidates.push_back(&item);
  }
  std::sort(candidates.begin(), candidates.end(),
            [](const auto* a, const auto* b) { return a->body.Left() > b->body.Left(); });
  for (const RunRoster::OpenItem* item : candidates) {
    store::Record request{.kind = kSplitRequestKind,
                          .queue = spec_.name,
                          .key = item->key,
                          .body = SplitRequestBody{.by = worker_}.ToJson()};
    const store::Change change = store::Change::Put(request, store::Due::Never());
    MUSTER_ASSIGN(const std::vector<store::Written> written, store_.Write({&change, 1}));
    if (!written.front().applied) continue;  // another worker's request
    request.version = written.front().version;
    split_request_ = std::move(request);
    break;
  }
  return {};
}

// Best effort: a leftover request splits one item once for nothing.
void WorkCoordinator::CancelSplitRequest() {
  if (!split_request_) return;
  const store::Change change = store::Change::Delete(*split_request_);
  static_cast<void>(store_.Write({&change, 1}));
  split_request_.reset();
}

Result<bool> WorkCoordinator::TakeSplitRequest(const WorkItem& item) {
  MUSTER_ASSIGN(std::optional<store::Record> request,
                store_.Get(kSplitRequestKind, ItemKey(spec_.name, item.name())));
  if (!request) return false;
  MUSTER_TRY(SplitRequestBody::FromJson(request->body));
  const store::Change change = store::Change::Delete(*std::move(request));
  MUSTER_ASSIGN(const std::vector<store::Written> written, store_.Write({&change, 1}));
  return written.front().applied;
}

}  // namespace muster::work
