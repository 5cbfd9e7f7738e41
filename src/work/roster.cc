#include "work/roster.h"

#include <algorithm>

#include "core/planted_bug.h"
#include "muster/store.h"
#include "store/store.h"

namespace muster::work {
namespace {

Error Missing(const std::string& what) {
  return Error{Code::kIncompatible, what + " is missing in the store",
               "if the store was restored from a backup, or lost commits in a failover, start one"
               " worker with --new-incarnation"};
}

}  // namespace

Result<bool> IsWhole(store::Store& store, const std::string& run, int pages) {
  std::set<std::string> stored;
  for (store::RecordScan items(store, kWorkKind, run + "/");;) {
    MUSTER_ASSIGN(const std::optional<store::Record> item, items.Next());
    if (!item) break;
    stored.insert(item->key);
  }
  for (int page = 1; page <= pages; ++page) {
    MUSTER_ASSIGN(const std::optional<store::Record> record,
                  store.Get(kPageKind, PageKey(run, page)));
    if (!record) return false;
    MUSTER_ASSIGN(const PageBody body, PageBody::FromJson(record->body));
    for (const std::string& name : body.items) {
      if (!stored.contains(ItemKey(run, name))) return false;
    }
  }
  return true;
}

Result<bool> RunRoster::Settled() {
  Result<bool> settled = AllPagesSettled();
  const bool missing = !settled && settled.error().code == Code::kIncompatible;
  if ((!missing && (!settled || !*settled)) || (done_.empty() && done_pages_.empty())) {
    return settled;
  }
  // A store that lost commits may have reverted what we remember. Now only page markers count,
  // which are written after everything they cover.
  done_.clear();
  done_pages_.clear();
  return AllPagesSettled();
}

Result<bool> RunRoster::AllPagesSettled() {
  MUSTER_ASSIGN(const std::optional<store::Record> record, store_.Get(kRunKind, run_));
  open_.clear();
  quarantined_.clear();
  if (!record) return false;
  MUSTER_ASSIGN(const RunBody run, RunBody::FromJson(record->body));
  if (run.incarnation != incarnation_) {
    done_.clear();
    done_pages_.clear();
    incarnation_ = run.incarnation;
  }
  MUSTER_ASSIGN(const bool finished, IsFinished(store_, run_, run));
  if (finished) return true;
  if (!run.ready) return false;
  if (first_page_ == 0 && run.pages > 0) {
    first_page_ = 1 + static_cast<int>(env_.Random() % static_cast<uint64_t>(run.pages));
  }
  for (int i = 0; i < run.pages; ++i) {
    const int page = 1 + (first_page_ - 1 + i) % run.pages;
    if (done_pages_.contains(page)) continue;
    MUSTER_ASSIGN(const bool settled, PageSettled(page));
    if (settled) continue;
    // The next scan starts after it, so that split requests rotate.
    first_page_ = page % run.pages + 1;
    return false;
  }
  return true;
}

Result<bool> RunRoster::PageSettled(int page) {
  MUSTER_ASSIGN(const std::optional<store::Record> end,
                store_.Get(kEndKind, EndKey(run_, incarnation_, page)));
  if (end) {
    MUSTER_TRY(EndBody::FromJson(end->body));
    done_pages_.insert(page);
    return true;
  }
  MUSTER_ASSIGN(const std::optional<store::Record> record,
                store_.Get(kPageKind, PageKey(run_, page)));
  if (!record) return Missing("page " + PageKey(run_, page));
  MUSTER_ASSIGN(const PageBody body, PageBody::FromJson(record->body));
  const size_t quarantined_before = quarantined_.size();
  std::vector<Named> items;
  do {
    items.clear();
    for (const std::string& name : body.items) items.push_back({name, std::nullopt});
    quarantined_.resize(quarantined_before);
    remembered_ = doubtful_ = false;
    for (size_t i = 0; i < items.size(); ++i) {
      Done found;
      MUSTER_TRY(Look(items[i], found));
      if (PLANTED_BUG(settled_without_successors)) found.successors.clear();
      const std::string from = items[i].name;
      for (const pipeline::Partition& part : found.successors) {
        items.push_back({NameOf(part), part, from, found.rank});
      }
    }
    if (!open_.empty()) return false;
    if (!doubtful_ && quarantined_.size() > quarantined_before) return true;
    // The marker must reflect the store, not our memory.
    for (const Named& item : items) done_.erase(item.name);
  } while (remembered_);
  done_pages_.insert(page);
  // A hint for the others, so a failure does not matter.
  const store::Change change =
      store::Change::Put(store::Record{.kind = kEndKind,
                                       .queue = run_,
                                       .key = EndKey(run_, incarnation_, page),
                                       .body = EndBody().ToJson()},
                         store::Due::Never());
  static_cast<void>(store_.Write({&change, 1}));
  return true;
}

// A store may lose its last commits between judging and recording the end, and would then contain
// the record without the work that it confirms. So the end is announced, everything is read again,
// and only then is the announcement confirmed: if it is still there, so is everything done before
// it.
Result<bool> RunRoster::End() {
  const std::string key = EndKey(run_, incarnation_);
  const store::Record announced{
      .kind = kEndKind, .queue = run_, .key = key, .body = EndBody().ToJson()};
  const store::Change announce = store::Change::Put(announced, store::Due::Never());
  // A conflict means that it already exists, which is just as good.
  MUSTER_TRY(store_.Write({&announce, 1}));
  MUSTER_ASSIGN(std::optional<store::Record> end, store_.Get(kEndKind, key));
  if (!end) return false;
  MUSTER_ASSIGN(EndBody body, EndBody::FromJson(end->body));
  if (body.confirmed) return true;
  MUSTER_ASSIGN(const bool done, AllDoneNow());
  if (!done && !PLANTED_BUG(ends_are_not_looked_at_again)) return false;
  body.confirmed = true;
  end->body = body.ToJson();
  const store::Change confirm = store::Change::Put(*std::move(end), store::Due::Never());
  MUSTER_TRY(store_.Write({&confirm, 1}));
  MUSTER_ASSIGN(end, store_.Get(kEndKind, key));
  if (!end) return false;
  MUSTER_ASSIGN(body, EndBody::FromJson(end->body));
  return body.confirmed;
}

// From the store alone: no memory, no markers.
Result<bool> RunRoster::AllDoneNow() {
  if (PLANTED_BUG(settled_without_successors)) return true;
  std::set<std::string> done;
  std::set<std::string> needed;
  for (store::RecordScan items(store_, kWorkKind, run_ + "/");;) {
    MUSTER_ASSIGN(const std::optional<store::Record> item, items.Next());
    if (!item) break;
    MUSTER_ASSIGN(const ItemBody body, ItemBody::FromJson(item->body));
    if (body.state != ItemBody::State::kDone) return false;
    done.insert(item->key);
    for (const pipeline::Partition& part : body.Successors())
      needed.insert(ItemKey(run_, NameOf(part)));
  }
  MUSTER_ASSIGN(const std::optional<store::Record> record, store_.Get(kRunKind, run_));
  if (!record) return false;
  MUSTER_ASSIGN(const RunBody run, RunBody::FromJson(record->body));
  if (!run.ready || run.incarnation != incarnation_) return false;
  for (int page = 1; page <= run.pages; ++page) {
    MUSTER_ASSIGN(const std::optional<store::Record> stored,
                  store_.Get(kPageKind, PageKey(run_, page)));
    if (!stored) return false;
    MUSTER_ASSIGN(const PageBody body, PageBody::FromJson(stored->body));
    for (const std::string& name : body.items) needed.insert(ItemKey(run_, name));
  }
  return std::includes(done.begin(), done.end(), needed.begin(), needed.end());
}

Status RunRoster::Look(const Named& item, Done& found) {
  if (auto done = done_.find(item.name); done != done_.end()) {
    found = done->second;
    remembered_ = true;
    return {};
  }
  const std::string key = ItemKey(run_, item.name);
  MUSTER_ASSIGN(std::optional<store::Record> record, store_.Get(kWorkKind, key));
  if (!record) {
    // A successor that is named but missing belongs to an item that is itself open.
    if (!open_.empty()) return {};
    if (!item.successor) return Missing("item '" + key + "'");
    // Its predecessor is done, so it must have existed: a store that lost commits has forgotten it.
    // It may also have forgotten that the predecessor was split there, and ours would then overlap
    // with what others have made of it since: read the predecessor again.
    doubtful_ = remembered_;
    if (doubtful_) return {};
    const ItemBody body = ItemBody::Of(*item.successor, item.from, item.rank);
    const store::Change change = NewItem(run_, body);
    MUSTER_TRY(store_.Write({&change, 1}));
    open_.push_back({key, "", body});
    return {};
  }
  auto body = ItemBody::FromJson(record->body);
  if (!body && IsNewer(body.error())) return body.error().Within("item '" + key + "'");
  if (!body) {
    // No worker can process it and an operator has to look at it: counts as quarantined.
    quarantined_.push_back(item.name);
    return {};
  }
  found = {body->Successors(), body->rank + record->epoch};
  switch (body->state) {
    case ItemBody::State::kDone:
      done_[item.name] = found;
      break;
    case ItemBody::State::kQuarantined:
      quarantined_.push_back(item.name);
      break;
    case ItemBody::State::kOpen:
      open_.push_back({key, store::NameOfOwner(record->owner), *std::move(body), record->due});
      break;
  }
  return {};
}

}  // namespace muster::work
