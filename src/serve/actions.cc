#include "serve/actions.h"

#include <algorithm>

#include "core/enum_names.h"
#include "muster/work.h"
#include "serve/migration_driver.h"
#include "serve/overview.h"

namespace muster::serve {
namespace {

using plan::RunView;
using plan::TaskStatus;

constexpr size_t kMostAffected = 1'000;

// What can be done to a projection, as its path ends.
enum class Steering { kPause, kResume, kReplay };
constexpr EnumNames<Steering, 3> kSteerings{{{
    {Steering::kPause, "pause"},
    {Steering::kResume, "resume"},
    {Steering::kReplay, "replay"},
}}};

// An ActionResult while it is put together.
class Outcome {
 public:
  Outcome(const ActionCall& call, std::string what, std::string command)
      : json_{{"preview", call.preview},
              {"what", std::move(what)},
              {"affects", Json::array()},
              {"command", std::move(command)}} {}

  void Affects(const std::string& kind, const std::string& name, const std::string& effect) {
    ++affected_;
    if (json_["affects"].size() < kMostAffected) {
      json_["affects"].push_back({{"kind", kind}, {"name", name}, {"effect", effect}});
    }
  }

  Json Take() {
    json_["affected"] = affected_;
    return std::move(json_);
  }

 private:
  Json json_;
  int64_t affected_ = 0;
};

// The effects of a retry.
void DescribeRetry(const RunView& view, const std::vector<std::string>& again, Outcome& outcome) {
  for (const plan::RankView& rank : view.ranks) {
    for (const plan::TaskView& task : rank.tasks) {
      const bool asked = std::find(again.begin(), again.end(), task.Key()) != again.end();
      if (task.status == TaskStatus::kSucceeded && !asked) continue;
      outcome.Affects("task", task.Key(),
                      task.status == TaskStatus::kSucceeded ? "is repeated although it succeeded"
                      : task.attempts.empty()               ? "runs"
                                                            : "is retried");
    }
  }
}

}  // namespace

Status Actions::StartJob(const ActionCall& call, const std::string& name, Jobs::Work work) {
  return jobs_.Start(
      name, std::move(work), [this, name, actor = call.actor](const Result<std::string>& ended) {
        static_cast<void>(audit_.Add(actor, name, ended ? "ended" : "failed",
                                     {{"text", ended ? *ended : ended.error().ToString()}}));
      });
}

Result<Json> Actions::CancelMigration(const ActionCall& call) {
  MUSTER_ASSIGN(const SiteStore* store, site_.FindStore(call.names[0]));
  const std::string& id = call.names[1];
  MUSTER_ASSIGN(const plan::RunState run, store->runs->Find(id));
  if (run.status != RunStatus::kInProgress)
    return Error{Code::kConflict,
                 "migration '" + id + "' has ended: " + std::string(NameOf(run.status))};
  Outcome outcome(call, "migration '" + id + "' is cancelled, with everything it has started",
                  CommandOn(*store, "cancel " + Quoted(id)));
  outcome.Affects("migration", id, "ends as CANCELLED; a retry resumes it");
  if (const auto view = store->runs->View(id)) {
    for (const plan::RankView& rank : view->ranks) {
      for (const plan::TaskView& task : rank.tasks) {
        if (task.status == TaskStatus::kSucceeded || task.status == TaskStatus::kFailed) continue;
        const bool waits = task.status == TaskStatus::kWaiting;
        outcome.Affects("task", task.Key(), waits ? "is not started" : "is stopped");
      }
    }
  }
  if (!call.preview) MUSTER_TRY(MigrationDriver(*store, site_.env()).Cancel(id));
  return outcome.Take();
}

Result<Json> Actions::RetryMigration(const ActionCall& call) {
  MUSTER_ASSIGN(const SiteStore* store, site_.FindStore(call.names[0]));
  const std::string& id = call.names[1];
  plan::ResumeOptions options;
  std::string arguments = "retry " + Quoted(id);
  if (call.body.contains("rank")) {
    options.again.rank = call.body["rank"].get<int64_t>();
    arguments += " --rank " + std::to_string(*options.again.rank);
  }
  if (call.body.contains("task")) {
    options.again.task = call.body["task"].get<std::string>();
    arguments += " --task " + Quoted(*options.again.task);
  }
  MUSTER_ASSIGN(const plan::RunState run, store->runs->Find(id));
  if (run.status == RunStatus::kInProgress && run.driven)
    return Error{Code::kConflict, "migration '" + id + "' is running",
                 "wait until it has ended, or cancel it first"};
  if (run.status == RunStatus::kCompleted && !options.again.rank && !options.again.task)
    return Error{Code::kConflict, "migration '" + id + "' is completed",
                 "name a rank or task to repeat"};
  MUSTER_TRY(site_.CheckRun(run));
  Outcome outcome(call, "this server resumes migration '" + id + "'", CommandOn(*store, arguments));
  const auto engine = plan::NewRunEngine(*store->store, {}, {}, site_.env());
  MUSTER_ASSIGN(const auto again, engine->Repeats(id, options));
  if (const auto view = store->runs->View(id)) DescribeRetry(*view, again, outcome);
  if (call.preview) return outcome.Take();
  MUSTER_TRY(
      StartJob(call, "retry of " + id,
               [this, store, id, options](const std::stop_token& stop) -> Result<std::string> {
                 MUSTER_ASSIGN(const plan::RunState ended,
                               MigrationDriver(*store, site_.env()).Retry(id, options, stop));
                 return id + ": " + std::string(NameOf(ended.status));
               }));
  return outcome.Take();
}

Result<Json> Actions::RetryOne(const ActionCall& call) {
  MUSTER_ASSIGN(const SiteStore* store, site_.FindStore(call.names[0]));
  const std::string& run = call.names[1];
  const std::string& name = call.names[2];
  MUSTER_ASSIGN(const work::ItemInfo item, work::ReadItem(*store->store, run, name));
  if (!work::MayRetry(item)) {
    return Error{Code::kConflict,
                 "item '" + name + "' is neither quarantined nor waiting for its next attempt"};
  }
  Outcome outcome(call, "item '" + name + "' is reopened",
                  CommandOn(*store, "work retry " + Quoted(name) + " --run " + Quoted(run)));
  outcome.Affects("item", name,
                  "is retried after the " + std::to_string(item.progress.counts.read) +
                      " documents already read");
  if (!call.preview) MUSTER_TRY(work::RetryItem(*store->store, run, name));
  return outcome.Take();
}

Result<Json> Actions::ReleaseOne(const ActionCall& call) {
  MUSTER_ASSIGN(const SiteStore* store, site_.FindStore(call.names[0]));
  const std::string& run = call.names[1];
  const std::string& name = call.names[2];
  MUSTER_ASSIGN(const work::ItemInfo item, work::ReadItem(*store->store, run, name));
  const bool waits = item.due_in && item.due_in->count() > 0;
  if (item.state != work::ItemInfo::State::kOpen || (item.holder.empty() && !waits)) {
    return Error{Code::kConflict, "item '" + name + "' is neither held nor backing off"};
  }
  Outcome outcome(call, "item '" + name + "' is released; its holder stops at its next renewal",
                  CommandOn(*store, "work release " + Quoted(name) + " --run " + Quoted(run)));
  outcome.Affects("item", name,
                  item.holder.empty() ? std::string("is due at once")
                                      : "is taken from " + item.holder + " and is due at once");
  if (!call.preview) MUSTER_TRY(work::ReleaseItem(*store->store, run, name));
  return outcome.Take();
}

Result<Json> Actions::RetryAll(const ActionCall& call) {
  MUSTER_ASSIGN(const SiteStore* store, site_.FindStore(call.names[0]));
  const std::string& run = call.names[1];
  MUSTER_TRY(work::ReadRun(*store->store, run));
  std::vector<std::string> names;
  MUSTER_TRY(work::EachItem(*store->store, run, [&](const work::ItemInfo& item) {
    if (work::MayRetry(item)) names.push_back(item.name);
  }));
  Outcome outcome(call, std::to_string(names.size()) + " items are reopened",
                  CommandOn(*store, "work retry --all --run " + Quoted(run)));
  for (const std::string& name : names) {
    outcome.Affects("item", name, "is retried");
    if (call.preview) continue;
    const Status retried = work::RetryItem(*store->store, run, name);
    // kConflict: already retried, by another caller.
    if (!retried && retried.error().code != Code::kConflict) return retried.error();
  }
  return outcome.Take();
}

Result<Json> Actions::Scale(const ActionCall& call) {
  MUSTER_ASSIGN(const SiteStore* store, site_.FindStore(call.names[0]));
  const std::string& set = call.names[1];
  MUSTER_ASSIGN(const replica::SetView view, replica::ReadSet(*store->store, set));
  std::optional<int> workers;
  if (call.body.contains("workers")) workers = call.body["workers"].get<int>();
  const SiteReplica* replica = site_.FindReplica(store->number, set);
  // Scaling a set that does not exist would create it.
  if (replica == nullptr && !view.Exists())
    return Error{Code::kNotFound, "replica set '" + set + "' not found in this store"};
  const std::string count = workers ? std::to_string(*workers) : "all";
  Outcome outcome(call,
                  workers ? "at most " + count + " workers of set '" + set + "' get a partition"
                          : "all workers of set '" + set + "' get a partition",
                  "muster replica scale " + (replica == nullptr ? "FILE" : Quoted(replica->path)) +
                      " " + count);
  for (const auto& [id, member] : view.members) {
    if (!member.state.Alive()) continue;
    outcome.Affects("worker", member.state.name.empty() ? id : member.state.name,
                    "gets a partition in the next generation, or stands by");
  }
  if (!call.preview) {
    MUSTER_TRY(replica::ScaleSet(*store->store, set, workers));
    replica::SignalSet(*store->store, set);
  }
  return outcome.Take();
}

Result<Json> Actions::SteerProjection(const ActionCall& call) {
  MUSTER_ASSIGN(const SiteStore* store, site_.FindStore(call.names[0]));
  const std::string& set = call.names[1];
  const std::string& name = call.names[2];
  const auto action = kSteerings.Find(call.names[3]);
  if (!action) return Error{Code::kNotFound, "unknown action '" + call.names[3] + "'"};
  MUSTER_ASSIGN(const replica::SetView view, replica::ReadSet(*store->store, set));
  const auto& known = view.generation.projections;
  if (std::find(known.begin(), known.end(), name) == known.end())
    return Error{Code::kNotFound, "set '" + set + "' has no projection '" + name + "'"};
  const SiteReplica* replica = site_.FindReplica(store->number, set);
  const std::string file = replica == nullptr ? "FILE" : Quoted(replica->path);
  const std::string stream = call.body.value("stream", "");
  const std::string of = stream.empty() ? "" : " --stream " + Quoted(stream);
  Outcome outcome(call,
                  action == Steering::kPause    ? "projection '" + name + "' is paused"
                  : action == Steering::kResume ? "projection '" + name + "' is resumed"
                                                : "parked streams of '" + name + "' are retried",
                  "muster replica " + call.names[3] + " " + file + " " + Quoted(name) + of);
  if (action != Steering::kReplay) {
    const bool pause = action == Steering::kPause;
    outcome.Affects("projection", name,
                    pause ? "stops; its lag grows" : "continues where it stopped");
    if (!call.preview) MUSTER_TRY(replica::PauseProjection(*store->store, set, name, pause));
    return outcome.Take();
  }
  if (replica == nullptr) {
    return Error{Code::kConflict, "the file of set '" + set + "' is not known",
                 "start the server with --replica FILE"};
  }
  MUSTER_ASSIGN(const replica::DesiredState desired, replica::DesiredFor(*store->store, set, name));
  const replica::Instance instance{set, name, desired.active};
  std::vector<int> slots(static_cast<size_t>(replica->log->slots()));
  for (size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<int>(i);
  MUSTER_ASSIGN(const auto parked, replica->model->Parked(instance, slots));
  for (const replica::ParkedStream& one : parked) {
    if (!stream.empty() && one.stream != stream) continue;
    outcome.Affects("stream", one.stream,
                    std::to_string(one.versions.size()) + " events are retried");
  }
  if (!call.preview)
    MUSTER_TRY(replica::ReplayParked(*store->store, *replica->model, instance, stream));
  return outcome.Take();
}

Result<Json> Actions::Redrive(const ActionCall& call) {
  MUSTER_ASSIGN(const LetterFile file, letters_.Find(call.names[0]));
  const LetterRun run = FindLetterRun(site_, file);
  if (run.store == nullptr) {
    return Error{Code::kConflict, "no store has the run '" + file.run + "' of " + file.name,
                 "use 'muster work redrive " + file.name + " SINK'"};
  }
  if (!file.problem.empty()) return Error{Code::kConflict, file.name + ": " + file.problem};
  if (file.letters == 0) return Error{Code::kConflict, file.name + " has no letters"};
  if (run.removing) {
    return Error{Code::kConflict, "run '" + file.run + "' is being removed",
                 "'muster work delete' or 'reset' completes that; then redrive with 'muster work "
                 "redrive'"};
  }
  Outcome outcome(
      call,
      "of " + std::to_string(file.letters) +
          " dead letters, those not redriven before are written to " + run.sink +
          "; what fails again goes to " + work::AgainPathOf(file.name),
      CommandOn(*run.store, "work redrive " + Quoted(file.path) + " " + Quoted(run.sink)));
  for (const auto& [signature, count] : file.signatures) {
    outcome.Affects("dead_letter", signature, std::to_string(count) + " letters");
  }
  if (call.preview) return outcome.Take();
  MUSTER_TRY(
      StartJob(call, RedriveJob(file.name),
               [this, path = file.path, sink = run.sink,
                store = run.store->store](const std::stop_token& stop) -> Result<std::string> {
                 const work::RedriveRequest request{
                     .letters = path, .sink = sink, .store = [store]() -> Result<store::Store*> {
                       return store;
                     }};
                 MUSTER_ASSIGN(const work::RedriveReport report,
                               work::RedriveDeadLetters(request, site_.env(), stop));
                 std::string text = std::to_string(report.counts.written) + " of " +
                                    std::to_string(report.counts.read + report.counts.added) +
                                    " documents written";
                 if (report.earlier > 0)
                   text += "; " + std::to_string(report.earlier) + " redriven before";
                 if (report.former > 0)
                   text += "; " + std::to_string(report.former) + " of an earlier start left out";
                 if (report.bad_lines.count > 0) text += "; " + report.bad_lines.ToString();
                 return text;
               }));
  return outcome.Take();
}

}  // namespace muster::serve
