#include "serve/overview.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/json_fields.h"
#include "muster/work.h"
#include "serve/merge_patch.h"
#include "serve/offers.h"
#include "serve/work_view.h"

namespace muster::serve {
namespace {

constexpr size_t kMostOnOverview = 10;
constexpr size_t kMostGroups = 1'000;

}  // namespace

std::string RedriveJob(const std::string& file) { return "redrive of " + file; }

LetterRun FindLetterRun(const Site& site, const LetterFile& file) {
  for (const SiteStore& store : site.stores()) {
    if (const auto run = work::ReadRun(*store.store, file.run)) {
      return {&store, run->sink, run->removing};
    }
  }
  return {};
}

Json Overview::Stores() {
  Json stores = Json::object();
  for (const SiteStore& store : site_.stores()) {
    Json json{{"url", store.url}, {"reachable", true}};
    if (const auto now = store.store->Now(); !now) {
      json["reachable"] = false;
      json["why"] = now.error().ToString();
    }
    stores[store.number] = std::move(json);
  }
  return stores;
}

Json Overview::All() {
  Json json{{"stores", Stores()},
            {"migrations", Json::object()},
            {"work", Json::object()},
            {"replica_sets", Json::object()}};
  for (const SiteStore& store : site_.stores()) {
    Json& shown = json["stores"][store.number];
    if (!shown["reachable"].get<bool>()) continue;
    const auto check = [&](const Status& status) {
      if (status) return;
      shown["reachable"] = false;
      shown["why"] = status.error().ToString();
    };
    const auto more = migrations_.AddSummaries(store, json["migrations"]);
    if (more && *more) json["truncated"] = true;
    check(more ? Status{} : Status{more.error()});
    check(replicas_.AddSummaries(site_, store, json["replica_sets"]));
  }
  const FailureGroups failures = Collect(json["work"]);
  json["failures"] = failures.Largest(kMostOnOverview);
  json["failures_total"] = failures.total();
  int64_t letters = 0;
  if (const auto files = letters_.Files()) {
    for (const LetterFile& file : *files) letters += file.letters;
  }
  json["dead_letters"] = letters;
  return json;
}

Json Overview::Failures() {
  Json work = Json::object();
  const FailureGroups failures = Collect(work);
  return {{"total", failures.total()}, {"groups", failures.Largest(kMostGroups)}};
}

FailureGroups Overview::Collect(Json& work) {
  FailureGroups groups;
  for (const SiteStore& store : site_.stores()) {
    Status status = CollectMigrations(store, groups);
    if (status) status = AddWorkSummaries(store, tallies_.at(store.number), work, groups);
    if (status) status = CollectReplicas(store, groups);
    if (!status) {
      groups.Add({.kind = FailureKind::kStore,
                  .store = store.number,
                  .name = store.url,
                  .error = status.error().ToString(),
                  .path = ApiPath("overview")});
    }
  }
  CollectLetters(work, groups);
  return groups;
}

// The last attempt, if it failed or is backing off.
const plan::TaskAttempt* FailureOf(const plan::TaskView& task) {
  if (task.status == plan::TaskStatus::kSucceeded || task.attempts.empty()) return nullptr;
  const plan::TaskAttempt& last = task.attempts.back();
  return last.failure.error.empty() ? nullptr : &last;
}

Status Overview::CollectMigrations(const SiteStore& store, FailureGroups& groups) {
  MUSTER_ASSIGN(const auto runs, store.runs->List("", store::kMaxBatch));
  for (const plan::RunState& run : runs) {
    if (run.status == RunStatus::kCompleted || run.status == RunStatus::kCancelled) continue;
    const auto view = store.runs->View(run.id);
    bool reported = false;
    for (const plan::RankView& rank : view ? view->ranks : std::vector<plan::RankView>{}) {
      for (const plan::TaskView& task : rank.tasks) {
        const plan::TaskAttempt* last = FailureOf(task);
        if (last == nullptr) continue;
        const plan::CaughtError& failure = last->failure;
        reported = true;
        groups.Add({.kind = FailureKind::kTask,
                    .store = store.number,
                    .run = run.id,
                    .name = task.Key(),
                    .error = failure.error + (failure.cause.empty() ? "" : ": " + failure.cause),
                    .at = last->end,
                    .path = ApiPath("stores", store.number, "migrations", run.id, "tasks",
                                    NameOf(task.phase), task.name)});
      }
    }
    if (reported || (run.status != RunStatus::kFailed && run.status != RunStatus::kUnreadable))
      continue;
    groups.Add({.kind = FailureKind::kTask,
                .store = store.number,
                .run = run.id,
                .name = run.id,
                .error = run.error + (run.cause.empty() ? "" : ": " + run.cause),
                .at = run.stop,
                .path = ApiPath("stores", store.number, "migrations", run.id)});
  }
  return {};
}

Status Overview::CollectReplicas(const SiteStore& store, FailureGroups& groups) {
  MUSTER_ASSIGN(const std::vector<std::string> sets, replica::ListSets(*store.store));
  for (const std::string& set : sets) {
    const std::string path = ApiPath("stores", store.number, "replica-sets", set);
    const auto view = replica::ReadSet(*store.store, set);
    if (!view) {
      if (view.error().code != Code::kCorrupt) return view.error();
      groups.Add({.kind = FailureKind::kWorker,
                  .store = store.number,
                  .run = set,
                  .name = set,
                  .error = view.error().ToString(),
                  .path = path});
      continue;
    }
    for (const auto& [id, member] : view->members) {
      if (member.state.error.empty()) continue;
      groups.Add({.kind = FailureKind::kWorker,
                  .store = store.number,
                  .run = set,
                  .name = member.state.name.empty() ? id : member.state.name,
                  .error = member.state.error,
                  .path = path});
    }
    const SiteReplica* replica = site_.FindReplica(store.number, set);
    if (replica == nullptr) continue;
    std::vector<int> slots(static_cast<size_t>(replica->log->slots()));
    for (size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<int>(i);
    for (const std::string& projection : replica->projections) {
      MUSTER_ASSIGN(const replica::DesiredState desired,
                    replica::DesiredFor(*store.store, set, projection));
      MUSTER_ASSIGN(const auto parked,
                    replica->model->Parked({set, projection, desired.active}, slots));
      for (const replica::ParkedStream& stream : parked) {
        groups.Add({.kind = FailureKind::kStream,
                    .store = store.number,
                    .run = set,
                    .name = projection + "/" + stream.stream,
                    .error = stream.error,
                    .path = path});
      }
    }
  }
  return {};
}

// The number of failed documents of each run, by the summaries of all stores. Leaves out runs with
// unreadable items, whose counts are incomplete.
std::map<std::string, int64_t> FailedByRun(const Json& work) {
  std::map<std::string, int64_t> failed;
  std::set<std::string> unknown;
  const std::string_view unreadable = work::RunStateName(work::RunInfo::State::kUnreadable);
  for (const Json& run : work) {
    const std::string name = TextIn(run, "run");
    failed[name] += NumberIn(MemberIn(run, "counts"), "failed");
    if (run.contains("unreadable") || TextIn(run, "state") == unreadable) unknown.insert(name);
  }
  for (const std::string& name : unknown) failed.erase(name);
  return failed;
}

// Files keep letters that a redrive has settled, and a letter that failed again is also in another
// file. So a run has at most as many failures as its store counts, taken from its newest files.
void Overview::CollectLetters(const Json& work, FailureGroups& groups) {
  auto files = letters_.Files();
  if (!files) return;
  std::stable_sort(files->begin(), files->end(),
                   [](const auto& a, const auto& b) { return a.changed > b.changed; });
  std::map<std::string, int64_t> left = FailedByRun(work);
  for (const LetterFile& file : *files) {
    const auto most = left.find(file.run);
    for (const auto& [signature, letters] : file.signatures) {
      const int64_t count = most == left.end() ? letters : std::min(letters, most->second);
      if (count == 0) continue;
      if (most != left.end()) most->second -= count;
      const LetterHead& example = file.examples.at(signature);
      groups.Add({.kind = FailureKind::kDeadLetter,
                  .run = file.run,
                  .name = example.collection + "/" + example.id,
                  .error = example.error,
                  .path = ApiPath("dead-letters", file.name) +
                          "?after=" + std::to_string(example.offset) + "&limit=1"},
                 count);
    }
  }
}

Result<Json> Overview::DeadLetterFiles() {
  MUSTER_ASSIGN(const std::vector<LetterFile> files, letters_.Files());
  Json json{{"folder", letters_.folder()}, {"files", Json::object()}};
  for (const LetterFile& file : files) {
    const LetterRun run = FindLetterRun(site_, file);
    Json one{{"run", file.run},
             {"letters", file.letters},
             {"bytes", file.bytes},
             {"changed_at", Ms(file.changed)},
             {"signatures", file.signatures}};
    std::string why_not;
    if (run.store != nullptr) {
      one["store"] = run.store->number;
      one["sink"] = run.sink;
    } else {
      why_not = "no store has run '" + file.run +
                "', so the sink is unknown: use 'muster work redrive FILE SINK'";
    }
    const auto job = jobs_.Find(RedriveJob(file.name));
    if (job) {
      one["job"] = {{"running", job->running}, {"failed", job->failed}, {"text", job->text}};
      if (job->running) why_not = "it is running";
    }
    if (run.removing) why_not = "its run is being removed";
    if (file.letters == 0) why_not = "it has no letters";
    if (!file.problem.empty()) why_not = file.problem;
    one["actions"] = {
        {"redrive", Offer(ApiPath("dead-letters", file.name, "redrive"), Json::object(), why_not)}};
    AppendMember(json["files"], file.name, std::move(one));
  }
  return json;
}

}  // namespace muster::serve
