#include "work/whole_run.h"

#include <algorithm>

#include "core/backoff.h"
#include "muster/store.h"
#include "store/store.h"
#include "work/coordinator.h"
#include "work/item_body.h"
#include "work/records.h"

namespace muster::work {
namespace {

// Rounds in a row in which every record had changed since it was read.
constexpr int kMaxFruitless = 20;
constexpr Backoff::Pauses kPauses{.first = milliseconds(20), .longest = milliseconds(2'000)};

Error Incomplete(const std::string& run, const std::string& what) {
  return Error{Code::kIncompatible, "run '" + run + "': " + what};
}

// Some of the records of a run but its own.
Result<std::vector<store::Change>> SomeToRemove(store::Store& store, const std::string& run) {
  std::vector<store::Change> changes;
  for (const char* kind : {kWorkKind, kSplitRequestKind, kPageKind, kEndKind, kTargetKind,
                           kRedriveKind, kRedriveLeaseKind}) {
    const int room = store::kMaxBatch - static_cast<int>(changes.size());
    if (room == 0) return changes;
    MUSTER_ASSIGN(std::vector<store::Record> records, store.Scan(kind, run + "/", "", room));
    for (store::Record& one : records) changes.push_back(store::Change::Delete(std::move(one)));
  }
  if (changes.size() + 2 > static_cast<size_t>(store::kMaxBatch)) return changes;
  for (const char* kind : {kPrepareKind, kBudgetKind}) {
    MUSTER_ASSIGN(std::optional<store::Record> one, store.Get(kind, run));
    if (one) changes.push_back(store::Change::Delete(*std::move(one)));
  }
  return changes;
}

}  // namespace

Result<int64_t> NextStartMs(store::Store& store) {
  MUSTER_ASSIGN(const WallTime now, store.Now());
  int64_t start_ms = now.time_since_epoch().count();
  for (store::RecordScan runs(store, kRunKind, "");;) {
    MUSTER_ASSIGN(const std::optional<store::Record> run, runs.Next());
    if (!run) return start_ms;
    const auto body = RunBody::FromJson(run->body);
    if (body) start_ms = std::max(start_ms, body->since_ms + 1);
  }
}

Status CreateRun(store::Store& store, const RunSpec& run, const WorkTerms& terms, Env& env) {
  MUSTER_TRY(WorkCoordinator::Join(store, env, run, terms, "creator"));
  return {};
}

Result<std::vector<ItemInfo>> ItemsInOrder(store::Store& store, const std::string& run) {
  MUSTER_ASSIGN(const std::optional<store::Record> record, store.Get(kRunKind, run));
  if (!record) return Incomplete(run, "it is gone from the store");
  MUSTER_ASSIGN(const RunBody body, RunBody::FromJson(record->body));
  std::vector<ItemInfo> items;
  for (int page = 1; page <= body.pages; ++page) {
    MUSTER_ASSIGN(const std::optional<store::Record> stored,
                  store.Get(kPageKind, PageKey(run, page)));
    if (!stored) return Incomplete(run, "page " + std::to_string(page) + " is missing");
    MUSTER_ASSIGN(const PageBody names, PageBody::FromJson(stored->body));
    for (const std::string& name : names.items) {
      std::vector<std::string> next = {name};
      while (!next.empty()) {
        auto found = ReadItem(store, run, next.back());
        if (!found && found.error().code == Code::kNotFound) {
          return Incomplete(run, "item '" + next.back() + "' is missing");
        }
        MUSTER_ASSIGN(ItemInfo item, std::move(found));
        next.pop_back();
        if (item.state != ItemInfo::State::kDone) {
          return Incomplete(run, "item '" + item.name + "' is not done");
        }
        // The first split gave away the end, so the last part named is the one that follows.
        next.insert(next.end(), item.successors.begin(), item.successors.end());
        items.push_back(std::move(item));
      }
    }
  }
  return items;
}

Status ReleaseAll(store::Store& store, const std::string& run) {
  const auto info = ReadRun(store, run);
  if (!info && info.error().code == Code::kNotFound) {
    return Incomplete(run, "it is gone from the store");
  }
  MUSTER_TRY(info);
  if (!info->ready) MUSTER_TRY(BeginPreparation(store, run, info->incarnation));
  std::vector<std::string> open;
  MUSTER_TRY(EachItem(store, run, [&](const ItemInfo& item) {
    if (item.state == ItemInfo::State::kOpen) open.push_back(item.name);
  }));
  for (const std::string& name : open) {
    Status released = ReleaseItem(store, run, name);
    if (!released && released.error().code == Code::kNotFound) {
      return Incomplete(run, "item '" + name + "' is missing");
    }
    // kConflict: it is due already.
    if (!released && released.error().code != Code::kConflict) return released;
  }
  return {};
}

Result<int64_t> RemoveRecords(store::Store& store, const std::string& run,
                              const std::string& incarnation) {
  int64_t removed = 0;
  for (int fruitless = 0; fruitless < kMaxFruitless;) {
    // Read each time: another incarnation may begin at any time, and keeps its records.
    MUSTER_ASSIGN(const std::optional<store::Record> record, store.Get(kRunKind, run));
    if (record) {
      MUSTER_ASSIGN(const RunBody body, RunBody::FromJson(record->body));
      if (body.incarnation != incarnation) return removed;
    }
    MUSTER_ASSIGN(const std::vector<store::Change> changes, SomeToRemove(store, run));
    if (changes.empty()) return removed;
    MUSTER_ASSIGN(const std::vector<store::Written> written, store.Write(changes));
    const auto applied = std::count_if(written.begin(), written.end(),
                                       [](const store::Written& one) { return one.applied; });
    removed += applied;
    fruitless = applied > 0 ? 0 : fruitless + 1;
    if (fruitless > 0) store.Wait(kWorkKind, kPauses.After(fruitless), {});
  }
  return Error{Code::kConflict, "concurrent updates to run '" + run + "'; gave up removing it"};
}

Status RemoveRun(store::Store& store, const std::string& run, const std::string& incarnation) {
  MUSTER_TRY(RemoveRecords(store, run, incarnation));
  return store::Update(
      store, kRunKind, run,
      [&](std::optional<store::Record> record) -> Result<std::optional<store::Change>> {
        if (!record) return std::nullopt;
        MUSTER_ASSIGN(const RunBody body, RunBody::FromJson(record->body));
        if (body.incarnation != incarnation) return std::nullopt;
        return store::Change::Delete(*std::move(record));
      });
}

}  // namespace muster::work
