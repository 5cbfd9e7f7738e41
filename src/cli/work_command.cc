#include <memory>

#include "cli/commands.h"
#include "cli/existing_store.h"
#include "cli/exit_codes.h"
#include "cli/pipeline_settings.h"
#include "cli/signals.h"
#include "cli/table.h"
#include "cli/work_report.h"
#include "cli/worker_name.h"
#include "core/file.h"
#include "core/interrupt.h"
#include "core/json.h"
#include "core/timestamp.h"
#include "muster/work.h"

namespace muster::cli {
namespace {

constexpr size_t kMaxTransformsBytes = size_t{1} << 20;

struct WorkCommandOptions {
  std::string run;
  std::string item;
  std::string state;
  bool all = false;
  bool merge = false;
  bool force = false;
  std::string letters;  // a file
  std::string sink;
  std::string transforms;  // a file; empty: none
};

std::string Percent(const work::ItemInfo& item) {
  if (item.state == work::ItemInfo::State::kDone) return "100%";
  if (!item.fraction) return item.progress.position.empty() ? "0%" : "?";
  return std::to_string(static_cast<int>(*item.fraction * 100)) + "%";
}

Json ToJson(const work::RedriveReport& report) {
  return Json{{"read", report.counts.read},
              {"added", report.counts.added},
              {"written", report.counts.written},
              {"skipped", report.counts.skipped},
              {"failed", report.counts.failed},
              {"earlier", report.earlier},
              {"former", report.former},
              {"bad_lines", report.bad_lines.count},
              {"recorded", report.recorded},
              {"record", report.record},
              {"notes", report.notes}};
}

class WorkCommand {
 public:
  WorkCommand(const WorkCommandOptions& options, Context& context)
      : options_(options), context_(context) {}

  Result<int> Status() {
    MUSTER_TRY(Open());
    if (!options_.run.empty()) MUSTER_TRY(OpenRun());
    MUSTER_ASSIGN(const std::vector<work::RunInfo> runs, work::ListRuns(*store_));
    Table table = RunTable();
    Json list = Json::array();
    int exit_code = kDone;
    std::string notes;
    for (const work::RunInfo& run : runs) {
      if (!options_.run.empty() && run.name != options_.run) continue;
      MUSTER_ASSIGN(const work::RunTotals totals, work::ReadTotals(*store_, run.name));
      if (!run.unreadable.empty() || totals.unreadable > 0) exit_code = kFailed;
      if (const std::string why = work::WhyRun(run, totals); !why.empty()) {
        notes += run.name + ": " + why + "\n";
      }
      AddRun(run, totals, table);
      list.push_back(RunJson(run, totals));
    }
    PrintList(table, list, context_);
    if (!context_.json) context_.out << notes;
    return exit_code;
  }

  Result<int> List() {
    MUSTER_ASSIGN(const std::string run, OpenRun());
    Table table({{"ITEM"},
                 {"STATE"},
                 {"HOLDER"},
                 {"DONE", Table::Align::kRight},
                 {"READ", Table::Align::kRight},
                 {"FAILED", Table::Align::kRight},
                 {"DOCS/S", Table::Align::kRight},
                 {"ETA", Table::Align::kRight},
                 {"WHY"}});
    Json list = Json::array();
    // Damaged, it may still have readable items.
    int exit_code = work::ReadRun(*store_, run) ? kDone : kFailed;
    MUSTER_TRY(work::EachItem(*store_, run, [&](const work::ItemInfo& item) {
      const bool unreadable = item.state == work::ItemInfo::State::kUnreadable;
      if (unreadable) exit_code = kFailed;
      if (!options_.state.empty() && work::ItemStateName(item.state) != options_.state) return;
      if (context_.json) {
        list.push_back(ItemJson(item));
        return;
      }
      const auto left = work::TimeLeft(item);
      table.AddRow(
          {{item.name},
           {std::string(work::ItemStateName(item.state)),
            unreadable || item.state == work::ItemInfo::State::kQuarantined ? Style::kBad
                                                                            : Style::kNone},
           {item.holder},
           {Percent(item)},
           {std::to_string(item.counts.read)},
           {std::to_string(item.counts.failed)},
           {item.docs_per_second > 0 ? std::to_string(static_cast<int64_t>(item.docs_per_second))
                                     : ""},
           {left ? FormatSpan(*left) : ""},
           {work::WhyItem(item)}});
    }));
    PrintList(table, list, context_);
    return exit_code;
  }

  // An item, or the whole run.
  Result<int> Show() {
    MUSTER_ASSIGN(const std::string run, OpenRun());
    if (!options_.item.empty()) {
      MUSTER_ASSIGN(const work::ItemInfo item, work::ReadItem(*store_, run, options_.item));
      return Show(ItemJson(item), item.reasons);
    }
    MUSTER_ASSIGN(const work::RunInfo info, work::ReadRun(*store_, run));
    MUSTER_ASSIGN(const work::RunTotals totals, work::ReadTotals(*store_, run));
    MUSTER_TRY(Show(RunJson(info, totals), totals.reasons));
    return totals.unreadable > 0 ? kFailed : kDone;
  }

  Result<int> Retry() {
    MUSTER_ASSIGN(const std::string run, OpenRun());
    std::vector<std::string> names;
    if (!options_.item.empty()) names.push_back(options_.item);
    if (options_.all) {
      MUSTER_TRY(work::EachItem(*store_, run, [&](const work::ItemInfo& item) {
        if (work::MayRetry(item)) names.push_back(item.name);
      }));
    }
    if (names.empty()) {
      if (options_.all) return kNothingToDo;
      return Error{Code::kInvalid, "no item was named", "name one, or use --all"};
    }
    size_t retried = 0;
    for (const std::string& name : names) {
      const muster::Status done = work::RetryItem(*store_, run, name);
      // A worker may have been faster.
      if (!done && (!options_.all || done.error().code != Code::kConflict)) return done.error();
      retried += done ? 1 : 0;
    }
    MUSTER_TRY(Say(std::to_string(retried) +
                   (retried == 1 ? " item is open again" : " items are open again")));
    return retried == 0 ? kNothingToDo : kDone;
  }

  Result<int> Release() {
    MUSTER_ASSIGN(const std::string run, OpenRun());
    MUSTER_TRY(work::ReleaseItem(*store_, run, options_.item));
    return Say(options_.item + " is released; its holder stops when it notices");
  }

  Result<int> Delete() {
    MUSTER_TRY(Open());
    MUSTER_ASSIGN(const work::RunRemoval removal,
                  work::DeleteRun(*store_, options_.run, options_.force));
    return Report(removal, {.did = "deleted",
                            .words = "run " + options_.run + " is deleted",
                            .then = "then it ends with an error: its run is gone"});
  }

  Result<int> Reset() {
    MUSTER_TRY(Open());
    MUSTER_ASSIGN(const work::RunRemoval removal,
                  work::ResetRun(*store_, options_.run, options_.force, context_.env));
    return Report(removal, {.did = "reset",
                            .words = "run " + options_.run + " starts over with the next worker",
                            .then = "then it takes part in the new start",
                            .sink = "Empty it before the new start, unless it is a search cluster, "
                                    "which replaces documents by their ids\n"});
  }

  // Writes dead letters into the sink. What fails again goes to a new file.
  Result<int> Redrive() {
    StopOnSignals signals;
    const InterruptScope scope(signals.Token());
    work::RedriveRequest request{.letters = options_.letters,
                                 .sink = options_.sink,
                                 .transforms_file = options_.transforms,
                                 .store = [this]() -> Result<store::Store*> {
                                   MUSTER_TRY(OpenOrCreate());
                                   return store_.get();
                                 },
                                 .worker = DefaultWorkerName(),
                                 .all = options_.all,
                                 .merge = options_.merge};
    if (!options_.transforms.empty()) {
      MUSTER_ASSIGN(request.transforms, ReadFile(options_.transforms, kMaxTransformsBytes));
    }
    MUSTER_ASSIGN(const work::RedriveReport report,
                  work::RedriveDeadLetters(request, context_.env, signals.Token()));
    if (context_.json) {
      context_.out << ToJsonText(ToJson(report)) << '\n';
    } else {
      Print(report);
    }
    if (!report.IsAll()) return kDoneWithRejects;
    return report.counts.read == 0 ? kNothingToDo : kDone;
  }

 private:
  Result<int> Show(const Json& json, const std::vector<work::FailureReason>& reasons) {
    if (context_.json) {
      context_.out << ToJsonText(json) << '\n';
    } else {
      PrintMembers(context_.out, json, reasons, context_.color);
    }
    return kDone;
  }

  // What a removal did, for people.
  struct Removed {
    const char* did;
    std::string words;
    const char* then;       // what becomes of a worker that held an item
    const char* sink = "";  // what to do about the sink
  };

  Result<int> Report(const work::RunRemoval& removal, const Removed& removed) {
    if (context_.json) {
      context_.out << ToJsonText(Json{{removed.did, options_.run},
                                      {"records", removal.records},
                                      {"sink", removal.sink},
                                      {"written", removal.counts.written},
                                      {"failed", removal.counts.failed},
                                      {"holders", removal.holders}})
                   << '\n';
      return kDone;
    }
    context_.out << removed.words << "; " << removal.records
                 << (removal.records == 1 ? " record was" : " records were")
                 << " removed from the store\n";
    for (const std::string& holder : removal.holders) {
      context_.out << "Worker " << holder << " held an item. If it still runs, it may write until "
                   << "its next checkpoint; " << removed.then << "\n";
    }
    if (!removal.sink.empty()) {
      context_.out << "Nothing was removed from " << removal.sink << ": what the run has written ("
                   << (removal.holders.empty() ? "" : "at least ") << removal.counts.written
                   << " documents) is still there\n"
                   << removed.sink;
    }
    if (removal.counts.failed > 0) {
      context_.out
          << "Files of dead letters stay, with " << removal.counts.failed
          << " documents that failed; they can no longer be redriven as a part of the run\n";
    }
    return kDone;
  }

  void Print(const work::RedriveReport& report) {
    const pipeline::Counts& counts = report.counts;
    context_.out << counts.written << " of " << counts.read + counts.added
                 << " documents are written now\n";
    if (counts.added > 0) context_.out << AddedText(counts.added) << '\n';
    if (counts.skipped > 0) {
      context_.out << counts.skipped
                   << " were skipped: by a transform, or because the sink has a later version\n";
    }
    if (counts.failed > 0) {
      context_.out << counts.failed << " failed again and are in "
                   << work::AgainPathOf(options_.letters) << '\n';
    }
    if (report.earlier > 0) {
      context_.out << report.earlier << " were redriven before; --all takes them again\n";
    }
    if (report.bad_lines.count > 0) {
      context_.out << options_.letters << ": " << report.bad_lines.ToString() << '\n';
    }
    for (const std::string& run : report.recorded) {
      context_.out << "Recorded in run " << run << ", whose counts are updated\n";
    }
    if (!report.record.empty()) context_.out << "Recorded in " << report.record << '\n';
    for (const std::string& note : report.notes) context_.out << "Note: " << note << '\n';
  }

  muster::Status Open() {
    MUSTER_TRY(CheckStoreExists(context_.store));
    return OpenOrCreate();
  }

  muster::Status OpenOrCreate() {
    MUSTER_ASSIGN(store_, store::OpenStore(context_.store, context_.env));
    return {};
  }

  // The named run, or the only one.
  Result<std::string> OpenRun() {
    MUSTER_TRY(Open());
    if (!options_.run.empty()) {
      const auto run = work::ReadRun(*store_, options_.run);
      // An unreadable run may have readable items.
      if (!run && run.error().code != Code::kCorrupt) return run.error();
      return options_.run;
    }
    MUSTER_ASSIGN(const std::vector<work::RunInfo> runs, work::ListRuns(*store_));
    if (runs.size() == 1) return runs.front().name;
    return Error{runs.empty() ? Code::kNotFound : Code::kInvalid,
                 runs.empty() ? "no run in this store" : "several runs in this store",
                 runs.empty() ? "'muster worker' starts one" : "name one with --run"};
  }

  Result<int> Say(const std::string& what) {
    context_.out << (context_.json ? ToJsonText(Json{{"done", what}}) : what) << '\n';
    return kDone;
  }

  const WorkCommandOptions& options_;
  Context& context_;
  std::unique_ptr<store::Store> store_;
};

}  // namespace

void AddWorkCommand(Command& app, Context& context) {
  Command command = app.AddCommand("work", "Inspect and control shared work");
  command.Group("Move data");
  command.RequireCommand();
  auto options = std::make_shared<WorkCommandOptions>();
  const auto add = [&](const std::string& name, const std::string& about,
                       Result<int> (WorkCommand::*action)()) {
    Command sub = command.AddCommand(name, about);
    sub.AddOption("--run", options->run, "The migration; required if there are several")
        .TypeName("NAME");
    sub.Action(context,
               [options, action, &context] { return (WorkCommand(*options, context).*action)(); });
    return sub;
  };
  add("status", "Show the progress of the runs in the store", &WorkCommand::Status);
  add("list", "List the items of a run: who holds what, and why one waits", &WorkCommand::List)
      .AddOption("--state", options->state, "Only items in this state")
      .OneOf({"open", "done", "quarantined", "unreadable"});
  add("show", "Show an item, or the run, in detail: also why documents failed", &WorkCommand::Show)
      .AddOption("ITEM", options->item, "The item's name; without it, the run is shown");
  Command retry = add("retry", "Retry an item: quarantined, or waiting for its next attempt",
                      &WorkCommand::Retry);
  retry.AddOption("ITEM", options->item, "The item's name");
  retry.AddFlag("--all", options->all, "Retry all of them");
  add("release", "Take an item from its holder", &WorkCommand::Release)
      .AddOption("ITEM", options->item, "The item's name")
      .Required();
  Command redrive = add("redrive", "Write dead letters into the sink", &WorkCommand::Redrive);
  redrive.AddOption("FILE", options->letters, "The dead letters").Required();
  redrive.AddOption("SINK", options->sink, "Where they go").Required();
  redrive
      .AddOption("--transforms", options->transforms,
                 "For documents that failed before they were transformed: the run's, or corrected")
      .TypeName("FILE");
  redrive.AddFlag("--all", options->all, "Include letters that were redriven before");
  redrive.AddFlag("--merge", options->merge,
                  "Let letters of several targets share one: their ids differ");
  const auto add_removal = [&](const std::string& name, const std::string& about,
                               Result<int> (WorkCommand::*action)()) {
    Command sub = command.AddCommand(name, about);
    sub.AddOption("RUN", options->run, "The migration").Required();
    sub.AddFlag("--force", options->force,
                "Even if a worker holds one of its items; it stops at its next checkpoint");
    sub.Action(context,
               [options, action, &context] { return (WorkCommand(*options, context).*action)(); });
  };
  add_removal("delete", "Remove a run from the store; its target stays as it is",
              &WorkCommand::Delete);
  add_removal("reset", "Start a run over; its target stays as it is", &WorkCommand::Reset);
  command.Footer(
      "  muster work status\n"
      "  muster work list --state quarantined\n"
      "  muster work retry --all");
}

}  // namespace muster::cli
