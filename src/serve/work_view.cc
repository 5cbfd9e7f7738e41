#include "serve/work_view.h"

#include <cmath>
#include <map>

#include "muster/work.h"
#include "serve/merge_patch.h"
#include "serve/offers.h"

namespace muster::serve {
namespace {

constexpr size_t kMaxItems = 100'000;

Json CountsOf(const pipeline::Counts& counts) {
  return {{"read", counts.read},       {"added", counts.added},   {"written", counts.written},
          {"skipped", counts.skipped}, {"failed", counts.failed}, {"bytes", counts.bytes}};
}

Json SummaryOf(const SiteStore& store, const work::RunInfo& run, const work::RunTotals& totals) {
  Json json{{"store", store.number},
            {"run", run.name},
            {"state", work::RunStateName(work::RunStateOf(run, totals))},
            {"source", run.source},
            {"sink", run.sink},
            {"created_at", Ms(run.created)},
            {"items", totals.items},
            {"done", totals.done},
            {"held", totals.held},
            {"waiting", totals.waiting},
            {"quarantined", totals.quarantined},
            {"counts", CountsOf(totals.counts)},
            {"max_failures", run.max_failures.ToString()},
            {"docs_per_second", std::round(totals.docs_per_second)}};
  if (!run.stopped.empty()) json["stopped"] = run.stopped;
  if (totals.unreadable > 0) json["unreadable"] = totals.unreadable;
  if (const std::string why = work::WhyRun(run, totals); !why.empty()) json["why"] = why;
  if (totals.documents) json["documents"] = std::llround(*totals.documents);
  const auto left = work::TimeLeft(totals, totals.docs_per_second);
  if (left && !run.finished && run.stopped.empty()) json["left_ms"] = left->count();
  return json;
}

Json ReasonsOf(const std::vector<work::FailureReason>& reasons) {
  Json json = Json::array();
  for (const work::FailureReason& reason : reasons) {
    json.push_back({{"reason", reason.reason},
                    {"count", reason.count},
                    {"id", reason.id},
                    {"message", reason.message}});
  }
  return json;
}

std::string OnRun(const std::string& command, const std::string& run) {
  return "work " + command + " --run " + Quoted(run);
}

double Tenths(double value) { return std::round(value * 10) / 10; }

// 0 waiting, 1 held, 2 backing off, 3 done, 4 quarantined, 5 unreadable.
int CodeOf(const work::ItemInfo& item) {
  if (item.state == work::ItemInfo::State::kDone) return 3;
  if (item.state == work::ItemInfo::State::kQuarantined) return 4;
  if (item.state == work::ItemInfo::State::kUnreadable) return 5;
  if (work::IsHeld(item)) return 1;
  return item.due_in && item.due_in->count() > 0 ? 2 : 0;
}

int PercentOf(const work::ItemInfo& item) {
  if (item.state == work::ItemInfo::State::kDone) return 100;
  if (item.fraction) return static_cast<int>(*item.fraction * 100);
  return item.progress.position.empty() ? 0 : -1;
}

// A run's items by worker and by collection.
struct RunShares {
  struct Share {
    int64_t items = 0;
    int64_t done = 0;
    work::RecentRate recent;
    pipeline::Counts counts;
  };
  std::map<std::string, Share> workers;
  std::map<std::string, Share> collections;

  void Add(const work::ItemInfo& item) {
    Share& collection = collections[item.partition.collection];
    ++collection.items;
    collection.counts += item.counts;
    if (item.state == work::ItemInfo::State::kDone) ++collection.done;
    if (!work::IsHeld(item) && item.recent.span.count() == 0) return;
    Share& worker = workers[item.holder];
    if (work::IsHeld(item)) ++worker.items;
    worker.recent += item.recent;
  }

  Json Workers() const {
    Json json = Json::object();
    for (const auto& [worker, share] : workers) {
      AppendMember(
          json, worker,
          {{"items", share.items}, {"docs_per_second", std::round(share.recent.PerSecond())}});
    }
    return json;
  }

  Json Collections() const {
    Json json = Json::object();
    for (const auto& [collection, share] : collections) {
      AppendMember(
          json, collection,
          {{"items", share.items}, {"done", share.done}, {"counts", CountsOf(share.counts)}});
    }
    return json;
  }
};

SeriesBook::Point PointOf(WallTime now, const work::RunTotals& totals,
                          const std::optional<Metrics::Digest>& writes) {
  SeriesBook::Point point{.at = now,
                          .totals = {{"docs", static_cast<double>(totals.counts.read)},
                                     {"bytes", static_cast<double>(totals.counts.bytes)},
                                     {"failed", static_cast<double>(totals.counts.failed)}},
                          .levels = {{"held", static_cast<double>(totals.held)}}};
  if (writes) {
    point.levels.emplace_back("write_p50_ms", writes->p50 * 1e3);
    point.levels.emplace_back("write_p99_ms", writes->p99 * 1e3);
  }
  return point;
}

void AddLatency(const std::optional<Metrics::Digest>& writes, Json& json) {
  if (!writes) {
    json["why_no_latency"] =
        "write latency is measured by the workers: see the dashboard of one with --serve, or its "
        "muster_sink_write_seconds";
    return;
  }
  json["latency"] = {{"writes", writes->count},
                     {"mean_ms", Tenths(writes->mean * 1e3)},
                     {"p50_ms", Tenths(writes->p50 * 1e3)},
                     {"p99_ms", Tenths(writes->p99 * 1e3)}};
}

// A claim fences the sink against all earlier holders.
int64_t FencedOf(const work::ItemInfo& item) { return std::max<int64_t>(0, item.epoch - 1); }

}  // namespace

Status AddWorkSummaries(const SiteStore& store, RunTallies& tallies, Json& into,
                        FailureGroups& failures) {
  MUSTER_ASSIGN(const std::vector<RunTallies::Run> runs, tallies.Refresh(store));
  for (const RunTallies::Run& run : runs) {
    const std::string& name = run.info.name;
    if (!run.info.unreadable.empty()) {
      failures.Add({.kind = FailureKind::kItem,
                    .store = store.number,
                    .run = name,
                    .name = name,
                    .error = run.info.unreadable,
                    .path = ApiPath("stores", store.number, "work", name)});
    }
    failures.Add(run.failures);
    AppendMember(into, store.number + "/" + name, SummaryOf(store, run.info, run.totals));
  }
  return {};
}

Result<Json> WorkDetail(const SiteStore& store, const std::string& name, SeriesBook& series,
                        const Metrics& metrics) {
  MUSTER_ASSIGN(const work::RunInfo run, work::ReadRun(*store.store, name));
  RunShares shares;
  MUSTER_ASSIGN(
      const work::RunTotals totals,
      work::EachItem(*store.store, name, [&](const work::ItemInfo& item) { shares.Add(item); }));
  MUSTER_ASSIGN(const WallTime now, store.store->Now());
  const auto writes = metrics.DigestOf("muster_sink_write_seconds", {{"run", name}});
  const std::string key = store.number + "/work/" + name;
  series.Add(key, PointOf(now, totals, writes));
  Json json = SummaryOf(store, run, totals);
  json["incarnation"] = run.incarnation;
  json["workers"] = shares.Workers();
  json["collections"] = shares.Collections();
  if (!totals.reasons.empty()) json["reasons"] = ReasonsOf(totals.reasons);
  json["series"] = series.Columns(key);
  AddLatency(writes, json);
  json["commands"] = {
      CommandLine("Show it", CommandOn(store, OnRun("status", name))),
      CommandLine("List its items", CommandOn(store, OnRun("list", name))),
      CommandLine("Retry quarantined items", CommandOn(store, OnRun("retry --all", name)))};
  json["actions"] = {
      {"retry", Offer(ApiPath("stores", store.number, "work", name, "retry"), Json::object(),
                      totals.quarantined > 0 ? "" : "no item is quarantined")}};
  return json;
}

Result<Json> WorkItems(const SiteStore& store, const std::string& run) {
  MUSTER_TRY(work::ReadRun(*store.store, run));
  std::map<std::string, int> holders;
  Json items = Json::object();
  bool truncated = false;
  MUSTER_TRY(work::EachItem(*store.store, run, [&](const work::ItemInfo& item) {
    if (items.size() >= kMaxItems) {
      truncated = true;
      return;
    }
    int holder = -1;
    if (work::IsHeld(item)) {
      holder = holders.emplace(item.holder, static_cast<int>(holders.size())).first->second;
    }
    const int code = CodeOf(item);
    const bool timed = code == 1 || code == 2;
    AppendMember(items, item.name,
                 Json::array({code, PercentOf(item), holder, timed ? Ms(*item.due) : 0,
                              item.attempt, item.epoch, item.counts.read, item.counts.failed,
                              code == 1 ? std::llround(item.docs_per_second) : 0, FencedOf(item)}));
  }));
  Json json{{"columns",
             {"state", "percent", "holder", "due_at", "attempt", "epoch", "read", "failed",
              "docs_per_second", "fenced"}},
            {"holders", Json::object()},
            {"items", std::move(items)}};
  for (const auto& [name, number] : holders) json["holders"][std::to_string(number)] = name;
  if (truncated) json["truncated"] = true;
  return json;
}

Result<Json> WorkItemDetail(const SiteStore& store, const std::string& run,
                            const std::string& name) {
  MUSTER_ASSIGN(const work::ItemInfo item, work::ReadItem(*store.store, run, name));
  Json json{{"store", store.number},
            {"run", run},
            {"item", item.name},
            {"collection", item.partition.collection},
            {"shard", item.partition.shard},
            {"state", work::ItemStateName(item.state)},
            {"why", work::WhyItem(item)},
            {"epoch", item.epoch},
            {"attempt", item.attempt},
            {"fenced", FencedOf(item)},
            {"counts", CountsOf(item.counts)},
            {"successors", item.successors}};
  if (!item.holder.empty()) json["holder"] = item.holder;
  if (item.due && item.state == work::ItemInfo::State::kOpen) json["due_at"] = Ms(*item.due);
  if (item.fraction) json["fraction"] = *item.fraction;
  if (work::IsHeld(item)) json["docs_per_second"] = std::round(item.docs_per_second);
  if (const auto left = work::TimeLeft(item)) json["left_ms"] = left->count();
  if (!item.progress.position.empty()) json["position"] = item.progress.position;
  if (!item.progress.end.empty()) json["end"] = item.progress.end;
  if (!item.error.empty()) json["error"] = item.error;
  if (!item.reasons.empty()) json["reasons"] = ReasonsOf(item.reasons);
  const std::string quoted = Quoted(name);
  json["commands"] = {
      CommandLine("Show it", CommandOn(store, OnRun("show " + quoted, run))),
      CommandLine("Retry it", CommandOn(store, OnRun("retry " + quoted, run))),
      CommandLine("Take it from its holder", CommandOn(store, OnRun("release " + quoted, run)))};
  const bool has_holder = item.state == work::ItemInfo::State::kOpen && !item.holder.empty();
  json["actions"] = {
      {"retry",
       Offer(ApiPath("stores", store.number, "work", run, "items", name, "retry"), Json::object(),
             work::MayRetry(item) ? ""
                                  : "it is neither quarantined nor waiting for its next attempt")},
      {"release", Offer(ApiPath("stores", store.number, "work", run, "items", name, "release"),
                        Json::object(), has_holder ? "" : "no worker holds it")}};
  return json;
}

}  // namespace muster::serve
