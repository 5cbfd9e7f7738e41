#include <algorithm>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "cli/commands.h"
#include "cli/existing_store.h"
#include "cli/exit_codes.h"
#include "cli/failure_report.h"
#include "cli/flow.h"
#include "cli/left_out.h"
#include "cli/pipeline_settings.h"
#include "cli/progress.h"
#include "cli/serve_options.h"
#include "cli/signals.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/worker_name.h"
#include "cli/worker_tally.h"
#include "core/guard.h"
#include "core/interrupt.h"
#include "core/json.h"
#include "core/secrets.h"
#include "core/sha256.h"
#include "core/url.h"
#include "muster/work.h"
#include "work/work.h"

namespace muster::cli {
namespace {

struct WorkerCommandOptions {
  PipelineSettings flow;
  std::string run;
  std::string name;
  int slots = 1;
  bool forever = false;
  bool new_incarnation = false;
  double lease_s = 60;
  double max_hold_s = 600;
  double checkpoint_interval_s = 2;
  int max_attempts = work::WorkTerms{}.max_attempts;
  ServeBesideOptions serve;
};

milliseconds Seconds(double seconds) { return milliseconds(static_cast<int64_t>(seconds * 1000)); }

// Equal commands share a run.
std::string DerivedName(const work::RunSpec& spec, const std::string& source,
                        const std::string& sink) {
  std::string same = source + "\n" + sink + "\n" + spec.transforms;
  if (!spec.selection.empty()) same += "\n" + spec.selection;
  return "run-" + Sha256Hex(same).substr(0, 12);
}

class WorkerCommand {
 public:
  WorkerCommand(const WorkerCommandOptions& options, Context& context)
      : options_(options), context_(context) {}

  Result<int> Run() {
    StopOnSignals signals;
    // Slots, which have something to hand over, are other threads.
    const InterruptScope scope(signals.Token());
    MUSTER_ASSIGN(work::WorkerOptions worker, ReadOptions());
    std::unique_ptr<store::Store> opened;  // outlives everything that shows it
    DashboardBeside dashboard(context_, "muster worker", options_.serve);
    MUSTER_ASSIGN(const auto flow, Flow::Open(options_.flow, worker.run.name,
                                              worker.run.name + ".dead-letters.jsonl", context_.env,
                                              &dashboard.metrics()));
    worker.allowed = flow->allowed();
    left_out_ = LeftOutOf(flow->pipeline().source, flow->allowed());
    if (const auto none = flow->NothingSelected()) {
      Json report{{"collections", Json::object()}};
      AddLeftOut(left_out_, report);
      context_.out << (context_.json ? ToJsonText(report) : *none) << '\n';
      if (!context_.json) PrintLeftOut(context_.out, left_out_);
      return kNothingToDo;
    }
    MUSTER_ASSIGN(opened, store::OpenStore(context_.store, context_.env));
    const std::unique_ptr<store::Store> store = dashboard.Metered(*opened);
    MUSTER_TRY(dashboard.Start(context_.store, *opened));
    cli::Progress progress(context_.progress, context_.err, context_.env, "documents", 0,
                           [] { return TerminalWidth(STDERR_FILENO); });
    progress.Say("run " + worker.run.name + ", worker " + worker.worker);
    WorkerTally tally(progress);
    work::MeteredObserver observer(tally, dashboard.metrics(), dashboard.tracer(), context_.env,
                                   worker.run.name, worker.worker);
    std::jthread follower;
    if (context_.progress != ProgressMode::kNone) {
      follower = std::jthread([&](const std::stop_token& stop) {
        LogThrown("progress",
                  [&] { FollowRun(*store, worker.run.name, context_.env, tally, stop); });
      });
    }
    const auto before = work::ReadRun(*store, worker.run.name);
    auto report = work::RunWorker(*store, flow->pipeline(), worker, observer, signals.Token());
    follower = {};
    progress.Note("");  // the last look was seconds ago: the report has the final state
    progress.Finish();
    const auto totals = work::ReadTotals(*store, worker.run.name);
    if (report || tally.items() > 0) {
      Print(worker, tally, report ? *report : work::WorkerReport(), flow->dead_letters_path(),
            RestOf(totals, !report));
    }
    if (!report) return report.error();
    if (!report->quarantined.empty()) return kFailed;
    if (!report->all_done) return kInterrupted;
    if (before && before->finished && tally.items() == 0) return kNothingToDo;
    // The migration is done, so what others could not migrate counts as well.
    MUSTER_TRY(totals);
    return totals->counts.failed > 0 ? kDoneWithRejects : kDone;
  }

 private:
  Result<work::WorkerOptions> ReadOptions() const {
    MUSTER_ASSIGN(const std::string transforms, ReadTransforms(options_.flow));
    MUSTER_ASSIGN(const auto plan, pipeline::ParseTransforms(transforms, options_.flow.transforms));
    MUSTER_ASSIGN(const std::optional<work::FailureLimit> limit, LimitOf(options_.flow));
    work::WorkerOptions worker{
        .run = {.name = options_.run,
                .source = AbsoluteUrl(Redact(options_.flow.source)),
                .sink = AbsoluteUrl(Redact(options_.flow.sink)),
                .transforms = transforms.empty() ? "" : Sha256Hex(transforms + plan->Scripts()),
                .selection = SelectionOf(options_.flow),
                .former_source = Redact(options_.flow.source),
                .former_sink = Redact(options_.flow.sink),
                .new_incarnation = options_.new_incarnation,
                .max_failures = limit},
        .terms = {.lease = Seconds(options_.lease_s),
                  .checkpoint_interval = Seconds(options_.checkpoint_interval_s),
                  .max_hold = Seconds(options_.max_hold_s),
                  .max_attempts = options_.max_attempts},
        .worker = options_.name.empty() ? DefaultWorkerName() : options_.name,
        .slots = options_.slots,
        .forever = options_.forever};
    worker.terms.max_lease = std::max(worker.terms.max_lease, worker.terms.lease);
    worker.terms.idle_wait = std::min(worker.terms.idle_wait, worker.terms.lease / 3);
    MUSTER_TRY(NameRun(worker.run));
    return worker;
  }

  // Earlier versions derived a name from relative paths: their run goes on.
  Status NameRun(work::RunSpec& run) const {
    if (!run.name.empty()) return {};
    run.name = DerivedName(run, run.source, run.sink);
    const std::string former = DerivedName(run, run.former_source, run.former_sink);
    if (former == run.name || !CheckStoreExists(context_.store)) return {};
    MUSTER_ASSIGN(const auto store, store::OpenStore(context_.store, context_.env));
    const auto known = work::ReadRun(*store, former);
    if (!known && known.error().code == Code::kNotFound) return {};
    if (!known && known.error().code != Code::kCorrupt) return known.error();
    run.name = former;
    return {};
  }

  static int64_t Failed(const WorkerTally& tally) {
    int64_t failed = 0;
    for (const auto& [collection, counts] : tally.sums()) failed += counts.failed;
    return failed;
  }

  // What only the store knows: which documents of the run have failed, and how far it is.
  struct RunRest {
    int64_t failed = 0;
    std::vector<work::FailureReason> reasons = {};
    std::string words = "others continue with the rest";
  };

  static RunRest RestOf(const Result<work::RunTotals>& totals, bool by_error) {
    RunRest rest;
    if (totals) rest.failed = totals->counts.failed;
    if (totals) rest.reasons = totals->reasons;
    if (totals && by_error && totals->items == 0) {
      rest.words = "the run has no items";
    } else if (totals && by_error) {
      rest.words = std::to_string(totals->done) + " of " + std::to_string(totals->items) +
                   " items of the run are done";
    }
    return rest;
  }

  void Print(const work::WorkerOptions& worker, const WorkerTally& tally,
             const work::WorkerReport& report, const std::string& dead_letters,
             const RunRest& rest) {
    if (context_.json) {
      Json collections = Json::object();
      for (const auto& [collection, counts] : tally.sums()) {
        collections[collection] = CountsJson(counts);
      }
      Json json{{"run", worker.run.name},           {"worker", worker.worker},
                {"all_done", report.all_done},      {"items", tally.items()},
                {"collections", collections},       {"reasons", ReasonsJson(rest.reasons)},
                {"quarantined", report.quarantined}};
      AddLeftOut(left_out_, json);
      context_.out << ToJsonText(json) << '\n';
      return;
    }
    Table table({{"COLLECTION"},
                 {"READ", Table::Align::kRight},
                 {"WRITTEN", Table::Align::kRight},
                 {"SKIPPED", Table::Align::kRight},
                 {"FAILED", Table::Align::kRight}});
    int64_t added = 0;
    for (const auto& [collection, counts] : tally.sums()) {
      added += counts.added;
      table.AddRow(
          {{collection},
           {std::to_string(counts.read)},
           {std::to_string(counts.written)},
           {std::to_string(counts.skipped)},
           {std::to_string(counts.failed), counts.failed > 0 ? Style::kWarn : Style::kNone}});
    }
    table.Print(context_.out, context_.color);
    PrintLeftOut(context_.out, left_out_);
    if (added > 0) context_.out << '\n' << AddedText(added) << '\n';
    PrintReasons(context_.out, rest.reasons, context_.color);
    context_.out << "\nrun " << worker.run.name << ": this worker had " << tally.items()
                 << (tally.items() == 1 ? " item; " : " items; ")
                 << (report.all_done ? "all items of the run are done or quarantined\n"
                                     : rest.words + "\n");
    const int64_t failed = Failed(tally);
    if (failed > 0) {
      context_.out << "Documents that could not be migrated are in " << dead_letters << '\n';
    }
    if (rest.failed > failed) {
      context_.out << "Of the run, " << rest.failed
                   << (rest.failed == 1 ? " document" : " documents") << " could not be migrated"
                   << ": see the dead letters of the other workers, too\n";
    }
    for (const std::string& item : report.quarantined) {
      context_.out << "Quarantined: " << item << "; see: muster work show " << item << '\n';
    }
  }

  const WorkerCommandOptions& options_;
  Context& context_;
  std::vector<pipeline::LeftOut> left_out_;
};

}  // namespace

void AddWorkerCommand(Command& app, Context& context) {
  Command command = app.AddCommand("worker", "Join a migration shared by any number of workers");
  command.Group("Move data");
  auto options = std::make_shared<WorkerCommandOptions>();
  AddPipelineOptions(command, options->flow);
  command
      .AddOption("--run", options->run, "The migration's name; by default equal commands share one")
      .TypeName("NAME");
  command.AddOption("--name", options->name, "This worker's name, for people (host and process)")
      .TypeName("NAME");
  command.AddOption("--slots", options->slots, "Items to migrate concurrently (1)")
      .TypeName("N")
      .Range(1, 256);
  command.AddFlag("--forever", options->forever, "Keep running when all is done");
  command.AddFlag("--new-incarnation", options->new_incarnation,
                  "The store is new or was restored: continue from what the sink has");
  command
      .AddOption("--lease", options->lease_s,
                 "How long an item is held without progress, in seconds (60)")
      .TypeName("S")
      .Range(0.5, 86'400.0);
  command
      .AddOption("--max-hold", options->max_hold_s,
                 "Hand an item over after this many seconds (600); 0: never")
      .TypeName("S")
      .NonNegative();
  command
      .AddOption("--checkpoint-interval", options->checkpoint_interval_s,
                 "Checkpoint interval, in seconds (2)")
      .TypeName("S")
      .NonNegative();
  command
      .AddOption("--max-attempts", options->max_attempts,
                 "Attempts without progress before an item is quarantined (5)")
      .TypeName("N")
      .Range(1, 1000);
  AddServeOption(command, options->serve);
  command.Footer(
      "  muster worker --store sqlite:work.db jsonl:orders.jsonl sqlite:orders.db#orders\n"
      "  muster worker --store postgresql://me@db/app --slots 4 \\\n"
      "      opensearch+http://old:9200/logs-* opensearch+http://new:9200");
  command.Action(context, [options, &context] { return WorkerCommand(*options, context).Run(); });
}

}  // namespace muster::cli
