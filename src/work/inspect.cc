#include <algorithm>

#include "muster/store.h"
#include "muster/work.h"
#include "store/store.h"
#include "work/item_body.h"
#include "work/records.h"
#include "work/redriven.h"
#include "work/run_summary.h"

namespace muster::work {
namespace {

using namespace std::chrono_literals;

constexpr milliseconds kRecently{30'000};

Error NoRun(const std::string& run) {
  return Error{Code::kNotFound, "no run '" + run + "' in this store",
               "'muster work status' lists the runs"};
}

Error NoItem(const std::string& run, const std::string& name) {
  return Error{Code::kNotFound, "run '" + run + "' has no item '" + name + "'",
               "'muster work list' lists its items"};
}

Result<RunInfo> Describe(store::Store& store, const store::Record& record) {
  const auto body = RunBody::FromJson(record.body);
  if (!body) return body.error().Within("run '" + record.key + "'");
  MUSTER_ASSIGN(const bool finished, IsFinished(store, record.key, *body));
  return RunInfo{.name = record.key,
                 .source = body->source,
                 .sink = body->sink,
                 .incarnation = body->incarnation,
                 .ready = body->ready,
                 .finished = finished,
                 .removing = body->removing,
                 .max_failures = body->max_failures,
                 .stopped = WhyStopped(*body),
                 .created = WallTime(milliseconds(body->created_ms))};
}

ItemInfo::State StateOf(ItemBody::State state) {
  switch (state) {
    case ItemBody::State::kDone:
      return ItemInfo::State::kDone;
    case ItemBody::State::kQuarantined:
      return ItemInfo::State::kQuarantined;
    default:
      return ItemInfo::State::kOpen;
  }
}

void ReportWhenDue(const store::Record& record, WallTime now, ItemInfo& info) {
  if (!record.due) return;
  info.due = store::IsDueAtOnce(*record.due) ? now : *record.due;
  info.due_in = *info.due - now;
}

// By the holder's clock and ours, which may differ slightly: less than a second counts as one. From
// a time that is still to come, since the clock was set back, there is no rate.
void ReportPace(const store::Record& record, const ItemBody& body, WallTime now, ItemInfo& info) {
  const bool done = body.state == ItemBody::State::kDone && body.until_ms > 0;
  const bool held = body.state == ItemBody::State::kOpen && !record.owner.empty();
  if (body.since_ms == 0 || (!done && !held)) return;
  if (now + 1s < WallTime(milliseconds(done ? body.until_ms : body.since_ms))) return;
  const auto ago = [&](int64_t ms, milliseconds least) {
    return std::max(now.time_since_epoch() - milliseconds(ms), least);
  };
  const milliseconds ended = done ? ago(body.until_ms, 0ms) : 0ms;
  const milliseconds begun = ago(body.since_ms, ended + 1s);
  const auto took = static_cast<double>((begun - ended).count());
  const auto read = static_cast<double>(body.progress.counts.read - body.since_read);
  if (held) info.docs_per_second = read * 1000 / took;
  if (ended >= kRecently) return;
  info.recent.span = std::min(begun, kRecently);
  info.recent.documents = read * static_cast<double>((info.recent.span - ended).count()) / took;
}

// A sink that keeps progress may know of failures whose reasons were not stored any more.
void ReportReasons(const ItemBody& body, ItemInfo& info) {
  FailureReasons reasons = body.reasons;
  const int64_t lacking = body.progress.counts.failed - reasons.total();
  if (lacking > 0) {
    reasons.AddOther({.reason = {},
                      .count = lacking,
                      .message = "recorded only in the dead letters: the worker has ended since"});
  }
  info.reasons = reasons.List();
}

Result<ItemInfo> Describe(const store::Record& record, WallTime now) {
  auto body = ItemBody::FromJson(record.body);
  if (!body) return body.error().Within("item '" + record.key + "'");
  ItemInfo info{.key = record.key,
                .name = NameOf(body->partition),
                .state = StateOf(body->state),
                .holder = store::NameOfOwner(record.owner),
                .epoch = record.epoch,
                .attempt = record.attempt,
                .partition = body->partition,
                .progress = body->progress,
                .counts = body->progress.counts,
                .fraction = body->fraction,
                .error = body->error};
  ReportWhenDue(record, now, info);
  ReportPace(record, *body, now, info);
  ReportReasons(*body, info);
  for (const pipeline::Partition& part : body->Successors())
    info.successors.push_back(NameOf(part));
  return info;
}

ItemInfo Unreadable(const store::Record& record, const std::string& run, const Error& error,
                    WallTime now) {
  ItemInfo info{.key = record.key,
                .name = record.key.substr(run.size() + 1),
                .state = ItemInfo::State::kUnreadable,
                .holder = store::NameOfOwner(record.owner),
                .epoch = record.epoch,
                .attempt = record.attempt,
                .error = error.ToString()};
  ReportWhenDue(record, now, info);
  return info;
}

Status Edit(store::Store& store, const std::string& run, const std::string& name,
            const std::function<Status(store::Record&, ItemBody&)>& edit) {
  const auto update =
      [&](std::optional<store::Record> record) -> Result<std::optional<store::Change>> {
    if (!record) return NoItem(run, name);
    MUSTER_ASSIGN(ItemBody body, ItemBody::FromJson(record->body));
    MUSTER_TRY(edit(*record, body));
    record->body = body.ToJson();
    return store::Change::Put(*std::move(record), store::Due::AtOnce());
  };
  return store::Update(store, kWorkKind, ItemKey(run, name), update);
}

}  // namespace

Result<std::vector<RunInfo>> ListRuns(store::Store& store) {
  std::vector<RunInfo> runs;
  for (store::RecordScan records(store, kRunKind, "");;) {
    MUSTER_ASSIGN(const std::optional<store::Record> record, records.Next());
    if (!record) return runs;
    auto info = Describe(store, *record);
    if (!info && (info.error().code == Code::kCorrupt || IsNewer(info.error()))) {
      info = RunInfo{.name = record->key, .unreadable = info.error().ToString()};
    }
    if (!info) return info.error();
    runs.push_back(*std::move(info));
  }
}

Result<RunInfo> ReadRun(store::Store& store, const std::string& run) {
  MUSTER_ASSIGN(const std::optional<store::Record> record, store.Get(kRunKind, run));
  if (!record) return NoRun(run);
  return Describe(store, *record);
}

Result<std::vector<ItemInfo>> ListItemsAsMigrated(store::Store& store, const std::string& run,
                                                  const std::string& after, int limit) {
  MUSTER_ASSIGN(const WallTime now, store.Now());
  MUSTER_ASSIGN(const std::vector<store::Record> records,
                store.Scan(kWorkKind, run + "/", after, limit));
  std::vector<ItemInfo> items;
  for (const store::Record& record : records) {
    auto info = Describe(record, now);
    items.push_back(info ? *std::move(info) : Unreadable(record, run, info.error(), now));
  }
  return items;
}

Result<std::vector<ItemInfo>> ListItems(store::Store& store, const std::string& run,
                                        const std::string& after, int limit) {
  MUSTER_ASSIGN(const Redriven redriven, Redriven::Of(store, run));
  MUSTER_ASSIGN(std::vector<ItemInfo> items, ListItemsAsMigrated(store, run, after, limit));
  for (ItemInfo& item : items) redriven.ApplyTo(item);
  return items;
}

Result<ItemInfo> ReadItem(store::Store& store, const std::string& run, const std::string& name) {
  MUSTER_ASSIGN(const WallTime now, store.Now());
  MUSTER_ASSIGN(const std::optional<store::Record> record,
                store.Get(kWorkKind, ItemKey(run, name)));
  if (!record) return NoItem(run, name);
  MUSTER_ASSIGN(ItemInfo item, Describe(*record, now));
  MUSTER_ASSIGN(const Redriven redriven, Redriven::Of(store, run));
  redriven.ApplyTo(item);
  return item;
}

Status RetryItem(store::Store& store, const std::string& run, const std::string& name) {
  MUSTER_ASSIGN(const WallTime now, store.Now());
  return Edit(store, run, name, [&](store::Record& record, ItemBody& body) -> Status {
    const bool waits = body.state == ItemBody::State::kOpen && record.owner.empty() &&
                       !body.error.empty() && record.due && *record.due > now;
    if (body.state != ItemBody::State::kQuarantined && !waits) {
      return Error{Code::kConflict,
                   "item '" + name + "' is neither quarantined nor waiting for its next attempt",
                   "'muster work release' takes an item from its holder"};
    }
    body.state = ItemBody::State::kOpen;
    body.ForgetFailures();
    record.attempt = 0;
    record.owner.clear();
    return {};
  });
}

Status ReleaseItem(store::Store& store, const std::string& run, const std::string& name) {
  MUSTER_ASSIGN(const WallTime now, store.Now());
  return Edit(store, run, name, [&](store::Record& record, ItemBody& body) -> Status {
    const bool waits = record.due && *record.due > now;
    if (body.state != ItemBody::State::kOpen || (record.owner.empty() && !waits)) {
      return Error{Code::kConflict,
                   "no worker holds item '" + name + "', and it waits for nothing"};
    }
    record.owner.clear();
    return {};
  });
}

}  // namespace muster::work
