#include "serve/run_tally.h"

#include <algorithm>

#include "core/mutex.h"
#include "serve/offers.h"

namespace muster::serve {
namespace {

void AddFailure(const SiteStore& store, const std::string& run, const work::ItemInfo& item,
                FailureGroups& failures) {
  if (item.error.empty() || item.state == work::ItemInfo::State::kDone) return;
  failures.Add({.kind = FailureKind::kItem,
                .store = store.number,
                .run = run,
                .name = item.name,
                .error = item.error,
                .path = ApiPath("stores", store.number, "work", run, "items", item.name)});
}

// Moves up to `most` of those that fit from the front of `from`.
template <class Due, class Fits>
void Take(std::vector<Due>& from, size_t most, std::vector<Due>& to, const Fits& fits) {
  std::erase_if(from, [&](const Due& due) {
    if (most == 0 || !fits(due)) return false;
    --most;
    to.push_back(due);
    return true;
  });
}

}  // namespace

Result<std::vector<RunTallies::Run>> RunTallies::Refresh(const SiteStore& store) {
  const MutexLock lock(mutex_);
  MUSTER_ASSIGN(const std::vector<work::RunInfo> infos, work::ListRuns(*store.store));
  ++refreshes_;
  Keep(infos);
  for (const Due& due : Choose()) MUSTER_TRY(ReadAgain(store, due));
  MUSTER_TRY(ReadNewRuns(store));
  std::vector<Run> runs;
  for (const work::RunInfo& info : infos) {
    Run& run = runs.emplace_back(Run{.info = info, .totals = {}, .failures = {}});
    work::RunSummary sum;
    for (const Page& page : tallies_.at(info.name).pages) {
      sum.Add(page.sum);
      run.failures.Add(page.failures);
    }
    MUSTER_ASSIGN(const auto redriven, work::Redriven::Of(*store.store, info.name));
    run.totals = sum.Totals(redriven);
  }
  return runs;
}

void RunTallies::Keep(const std::vector<work::RunInfo>& runs) {
  std::map<std::string, Tally> kept;
  for (const work::RunInfo& run : runs) {
    Tally& tally = kept[run.name];
    const auto found = tallies_.find(run.name);
    if (found != tallies_.end() && found->second.incarnation == run.incarnation) {
      tally = std::move(found->second);
    }
    tally.incarnation = run.incarnation;
    // Its last items were completed since they were read: read the whole run once more.
    if (run.finished && !tally.finished) tally.pages.clear();
    tally.finished = run.finished;
  }
  tallies_ = std::move(kept);
}

Status RunTallies::ReadNewRuns(const SiteStore& store) {
  for (auto& [run, tally] : tallies_) {
    if (!tally.pages.empty()) continue;
    MUSTER_ASSIGN(tally.pages, ReadRange(store, run, "", ""));
  }
  return {};
}

// Half of the budget is for pages with held items, a quarter for the other pages of open runs. The
// rest cycles through all pages, since even finished ones may change: an item is split, or a store
// restored.
std::vector<RunTallies::Due> RunTallies::Choose() const {
  std::vector<Due> oldest;
  for (const auto& [run, tally] : tallies_) {
    for (const Page& page : tally.pages) {
      oldest.push_back({run, page.after, page.read, page.sum.held() > 0, tally.finished});
    }
  }
  std::stable_sort(oldest.begin(), oldest.end(),
                   [](const Due& a, const Due& b) { return a.read < b.read; });
  std::vector<Due> chosen;
  Take(oldest, kMaxPages / 2, chosen, [](const Due& due) { return due.active; });
  Take(oldest, kMaxPages / 4, chosen, [](const Due& due) { return !due.finished; });
  Take(oldest, kMaxPages - chosen.size(), chosen, [](const Due&) { return true; });
  return chosen;
}

Status RunTallies::ReadAgain(const SiteStore& store, const Due& due) {
  std::vector<Page>& pages = tallies_.at(due.run).pages;
  const auto page = std::find_if(pages.begin(), pages.end(),
                                 [&](const Page& one) { return one.after == due.after; });
  MUSTER_ASSIGN(std::vector<Page> now, ReadRange(store, due.run, page->after, page->last));
  const auto at = pages.erase(page);
  pages.insert(at, std::make_move_iterator(now.begin()), std::make_move_iterator(now.end()));
  return {};
}

Result<std::vector<RunTallies::Page>> RunTallies::ReadRange(const SiteStore& store,
                                                            const std::string& run,
                                                            std::string after,
                                                            const std::string& last) const {
  std::vector<Page> pages;
  while (true) {
    MUSTER_ASSIGN(const std::vector<work::ItemInfo> items,
                  work::ListItemsAsMigrated(*store.store, run, after, store::kMaxBatch));
    Page& page = pages.emplace_back(Page{.after = after, .last = last, .read = refreshes_});
    bool end = items.size() < static_cast<size_t>(store::kMaxBatch);
    for (const work::ItemInfo& item : items) {
      end = end || (!last.empty() && item.key >= last);
      if (!last.empty() && item.key > last) break;
      page.sum.Add(item);
      AddFailure(store, run, item, page.failures);
    }
    if (end) return pages;
    page.last = after = items.back().key;
  }
}

}  // namespace muster::serve
