#include "work/roster.h"

#include "base/planted_bug.h"

namespace muster {
namespace {

Error Missing(const std::string& what) {
  return Error{Code::kIncompatible, what + " is missing in the store",
               "if the store was restored from a backup, or lost commits in a failover, start one"
               " worker with --new-incarnation"};
}

}  // namespace

Result<bool> RunRoster::Settled() {
  Result<bool> settled = AllPagesSettled();
  const bool missing = !settled && settled.error().code == Code::kIncompatible;
  if ((!missing && (!settled || !*settled)) || (done_.empty() && done_pages_.empty())) {
    return settled;
  }
  // A store that lost commits may have taken back what we remember. Now only marks of pages count,
  // which were written after all that they stand for.
  done_.clear();
  done_pages_.clear();
  return AllPagesSettled();
}

Result<bool> RunRoster::AllPagesSettled() {
  MUSTER_ASSIGN(const std::optional<Record> record, store_.Get(kRunKind, run_));
  open_.clear();
  quarantined_.clear();
  if (!record) return false;
  MUSTER_ASSIGN(const RunBody run, RunBody::FromJson(record->body));
  if (run.finished) return true;
  if (!run.ready) return false;
  if (first_page_ == 0 && run.pages > 0) {
    first_page_ = 1 + static_cast<int>(env_.Random() % static_cast<uint64_t>(run.pages));
  }
  for (int i = 0; i < run.pages; ++i) {
    const int page = 1 + (first_page_ - 1 + i) % run.pages;
    if (done_pages_.contains(page)) continue;
    MUSTER_ASSIGN(const bool settled, PageSettled(page));
    if (settled) continue;
    // The next look begins behind it, so that wishes go round.
    first_page_ = page % run.pages + 1;
    return false;
  }
  return true;
}

Result<bool> RunRoster::PageSettled(int page) {
  MUSTER_ASSIGN(std::optional<Record> record, store_.Get(kPageKind, PageKey(run_, page)));
  if (!record) {
    return Missing("page " + PageKey(run_, page));
  }
  MUSTER_ASSIGN(PageBody body, PageBody::FromJson(record->body));
  if (body.done) {
    done_pages_.insert(page);
    return true;
  }
  const size_t quarantined_before = quarantined_.size();
  std::vector<std::string> names = body.items;
  for (size_t i = 0; i < names.size(); ++i) {
    std::vector<std::string> further;
    MUSTER_TRY(Look(names[i], further));
    if (PLANTED_BUG(settled_without_successors)) further.clear();
    names.insert(names.end(), further.begin(), further.end());
  }
  if (!open_.empty()) return false;
  if (quarantined_.size() > quarantined_before) return true;
  for (const std::string& name : names) done_.erase(name);
  done_pages_.insert(page);
  // For the others' sake; whether it came through is for them to find out.
  body.done = true;
  record->body = body.ToJson();
  const Change change = Change::Put(*std::move(record), Due::Never());
  static_cast<void>(store_.Write({&change, 1}));
  return true;
}

Status RunRoster::Look(const std::string& name, std::vector<std::string>& further) {
  if (auto done = done_.find(name); done != done_.end()) {
    further = done->second;
    return {};
  }
  const std::string key = ItemKey(run_, name);
  MUSTER_ASSIGN(std::optional<Record> record, store_.Get(kWorkKind, key));
  // A successor that is named but not there yet belongs to an item that is open itself.
  if (!record) {
    if (!open_.empty()) return {};
    return Missing("item '" + key + "'");
  }
  auto body = ItemBody::FromJson(record->body);
  if (!body) return body.error().Within("item '" + key + "'");
  for (const Partition& part : body->Successors()) further.push_back(NameOf(part));
  switch (body->state) {
    case ItemBody::State::kDone:
      done_[name] = further;
      break;
    case ItemBody::State::kQuarantined:
      quarantined_.push_back(name);
      break;
    case ItemBody::State::kOpen:
      open_.push_back({key, record->owner, *std::move(body)});
      break;
  }
  return {};
}

}  // namespace muster
