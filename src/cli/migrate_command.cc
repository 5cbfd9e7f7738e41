#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/failure_report.h"
#include "cli/flow.h"
#include "cli/left_out.h"
#include "cli/pipeline_settings.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "core/json.h"
#include "core/secrets.h"
#include "core/wait_watch.h"
#include "muster/migrate.h"
#include "muster/work.h"

namespace muster::cli {
namespace {

struct MigrateOptions {
  PipelineSettings settings;
  int shard_concurrency = 1;
  bool evaluate = false;
};

// Shows a migration's progress, and keeps each collection's result.
class Watcher final : public work::MigrationObserver {
 public:
  struct Outcome {
    std::string collection;
    pipeline::Counts counts;
    double seconds = 0;
  };

  Watcher(Context& context, pipeline::Source& source, size_t collections)
      : context_(context),
        source_(source),
        collections_(collections),
        started_(context.env.MonoNow()) {}

  void Prepared(const std::vector<pipeline::TargetChange>& changes) override {
    for (const pipeline::TargetChange& change : changes) changes_.push_back(change);
  }

  void CollectionStarted(const std::string& collection,
                         const std::vector<pipeline::Partition>& partitions) override {
    collection_started_ = context_.env.MonoNow();
    collection_ = collection;
    shards_.clear();
    counts_.clear();
    documents_.reset();
    weight_ = 0;
    read_ = 0;
    total_note_.clear();
    int64_t documents = 0;
    bool all_known = true;
    for (const pipeline::Partition& partition : partitions) {
      weight_ += WeightOf(partition);
      all_known = all_known && partition.documents.has_value();
      documents += partition.documents.value_or(0);
    }
    if (all_known) documents_ = documents;
    progress_.emplace(context_.progress, context_.err, context_.env, collection,
                      static_cast<uint64_t>(documents_.value_or(0)),
                      [] { return TerminalWidth(STDERR_FILENO); });
  }

  void Advanced(const pipeline::Partition& partition,
                const ::muster::pipeline::Progress& progress) override {
    counts_[{partition.shard, partition.follows, partition.begin}] = progress.counts;
    Shard& shard = shards_[partition.shard];
    shard.read = progress.counts.read;
    const auto fraction = source_.FractionBefore(partition, progress.position);
    shard.done = WeightOf(partition) * fraction.value_or(0);
    double done = 0;
    int64_t read = 0;
    for (const auto& [number, one] : shards_) {
      done += one.done;
      read += one.read;
    }
    const double part = weight_ > 0 ? std::min(done / weight_, 1.0) : 0;
    total_note_ = TotalNote(part);
    progress_->Note(Note());
    // If the source does not know the total, estimate it from what was read.
    const auto total = documents_ ? static_cast<double>(*documents_)
                                  : (part > 0 ? static_cast<double>(read) / part : 0);
    read_ = static_cast<uint64_t>(read);
    progress_->Update(read_, static_cast<uint64_t>(total));
  }

  // While it waits nothing is read, so no other call would show the reason.
  void Waits(const std::string& what) override {
    waits_ = what.empty() ? "" : "waiting for " + what;
    if (!progress_) return SayBefore();
    progress_->Note(Note());
    progress_->Update(read_);
  }

  void CollectionEnded(const std::string& collection, const pipeline::Counts& counts) override {
    progress_->Note("");
    progress_->Update(static_cast<uint64_t>(counts.read), static_cast<uint64_t>(counts.read));
    progress_.reset();
    outcomes_.push_back({collection, counts, SecondsSince(collection_started_)});
  }

  void Failed(const std::vector<work::FailureReason>& reasons) override { reasons_ = reasons; }

  // After an error. Returns the collection that is incomplete, if any, and adds what the sink has
  // of it to the outcomes.
  std::string Interrupted() {
    if (!progress_) return "";
    progress_.reset();
    pipeline::Counts counts;
    for (const auto& [part, of_it] : counts_) counts += of_it;
    outcomes_.push_back({collection_, counts, SecondsSince(collection_started_)});
    return collection_;
  }

  const std::vector<work::FailureReason>& reasons() const { return reasons_; }
  const std::vector<Outcome>& outcomes() const { return outcomes_; }
  const std::vector<pipeline::TargetChange>& changes() const { return changes_; }
  double Seconds() const { return SecondsSince(started_); }

 private:
  struct Shard {
    int64_t read = 0;
    double done = 0;
  };

  static double WeightOf(const pipeline::Partition& partition) {
    return static_cast<double>(partition.documents.value_or(partition.bytes.value_or(1)));
  }

  double SecondsSince(MonoTime time) const {
    return std::chrono::duration<double>(context_.env.MonoNow() - time).count();
  }

  std::string Note() const {
    return waits_ + (waits_.empty() || total_note_.empty() ? "" : "; ") + total_note_;
  }

  // Used before the first collection and after the last, when no progress is shown.
  void SayBefore() const {
    if (waits_.empty() || context_.progress == ProgressMode::kNone) return;
    const std::string text = Printable(Redact(waits_));
    const bool json = context_.progress == ProgressMode::kJson;
    context_.err << (json ? ToJsonText(Json{{"event", text}}) : text) << '\n' << std::flush;
  }

  // Collections are migrated one at a time, so each other one counts as a whole.
  std::string TotalNote(double part_of_this) const {
    if (collections_ < 2) return "";
    const double part =
        (static_cast<double>(outcomes_.size()) + part_of_this) / static_cast<double>(collections_);
    std::string note =
        "total " + Fixed(part * 100, 0) + "% of " + std::to_string(collections_) + " collections";
    if (part > 0.01) {
      const double left = Seconds() / part * (1 - part);
      note += ", " + FormatSeconds(static_cast<uint64_t>(left)) + " left";
    }
    return note;
  }

  Context& context_;
  pipeline::Source& source_;
  const size_t collections_;
  const MonoTime started_;
  MonoTime collection_started_;
  std::string collection_;
  std::map<std::tuple<int, bool, std::string>, pipeline::Counts> counts_;  // of it, by part
  std::optional<int64_t> documents_;  // of the collection, if all partitions know theirs
  double weight_ = 0;
  uint64_t read_ = 0;
  std::string waits_;
  std::string total_note_;
  std::map<int, Shard> shards_;
  std::optional<Progress> progress_;
  std::vector<Outcome> outcomes_;
  std::vector<work::FailureReason> reasons_;
  std::vector<pipeline::TargetChange> changes_;
};

class MigrateRun {
 public:
  MigrateRun(const MigrateOptions& options, Context& context)
      : options_(options), context_(context) {}

  Result<int> Run() {
    MUSTER_ASSIGN(const auto flow, Flow::Open(options_.settings, pipeline::kStandaloneRun,
                                              "dead-letters.jsonl", context_.env));
    dead_letters_path_ = flow->dead_letters_path();
    const pipeline::CollectionFilter& allowed = flow->allowed();
    pipeline::Pipeline& pipeline = flow->pipeline();
    pipeline::Source& source = pipeline.source;

    MUSTER_ASSIGN(const auto collections, Listed(source));
    const auto count = static_cast<size_t>(
        std::count_if(collections.begin(), collections.end(),
                      [&](const pipeline::Collection& one) { return allowed(one.name); }));
    left_out_ = LeftOutOf(source, allowed);
    if (const auto none = flow->NothingSelected()) return NothingToDo(*none);
    if (options_.evaluate) return Evaluate(pipeline, allowed);

    MUSTER_ASSIGN(const std::optional<work::FailureLimit> limit, LimitOf(options_.settings));
    StopOnSignals signals("\nstopping after the current batches… press Ctrl-C again to abort\n");
    Watcher watcher(context_, source, count);
    auto counts = work::MigrateAll(pipeline,
                                   {.shard_concurrency = options_.shard_concurrency,
                                    .allowed = allowed,
                                    .max_failures = limit.value_or(work::FailureLimit())},
                                   watcher, signals.Token());
    if (!counts) {
      ReportIncomplete(watcher, collections, allowed);
      Error error = std::move(counts).error();
      if (error.code == Code::kCancelled) {
        error.message = "the migration was stopped";
        error.hint = "it is incomplete: run it again from the start";
      }
      return error;
    }
    Report(watcher, *counts, {});
    return counts->failed > 0 ? kDoneWithRejects : kDone;
  }

 private:
  // An unreachable source is retried, and the wait is shown.
  Result<std::vector<pipeline::Collection>> Listed(pipeline::Source& source) {
    Watcher watcher(context_, source, 0);
    const WaitWatch watch([] { return std::string("the source to list its collections"); },
                          [&](const std::string& what) { watcher.Waits(what); }, context_.env);
    return source.Collections();
  }

  Result<int> NothingToDo(const std::string& why) {
    Json report{{"collections", Json::array()}};
    AddLeftOut(left_out_, report);
    context_.out << (context_.json ? ToJsonText(report) : why) << '\n';
    if (!context_.json) PrintLeftOut(context_.out, left_out_);
    return kNothingToDo;
  }

  Result<int> Evaluate(pipeline::Pipeline& pipeline, const pipeline::CollectionFilter& allowed) {
    MUSTER_ASSIGN(const auto changes, pipeline::PrepareCollections(pipeline, allowed, true));
    if (context_.json) {
      Json list = Json::array();
      for (const pipeline::TargetChange& one : changes) {
        list.push_back({{"collection", one.collection}, {"change", one.change}});
      }
      Json report{{"changes", list}};
      AddLeftOut(left_out_, report);
      context_.out << ToJsonText(report) << '\n';
    } else if (changes.empty()) {
      context_.out << "The target needs no changes.\n";
    } else {
      Table table({{"COLLECTION"}, {"CHANGE"}});
      for (const pipeline::TargetChange& one : changes)
        table.AddRow({{one.collection}, {one.change}});
      table.Print(context_.out, context_.color);
    }
    if (!context_.json) PrintLeftOut(context_.out, left_out_);
    return changes.empty() ? kDone : kNothingToDo;
  }

  // What a failed migration has not done.
  struct Left {
    std::string incomplete = {};  // the collection in progress; empty: none
    size_t not_begun = 0;         // collections
  };

  // Reports a failed migration like a complete one.
  void ReportIncomplete(Watcher& watcher, const std::vector<pipeline::Collection>& collections,
                        const pipeline::CollectionFilter& allowed) {
    const std::string incomplete = watcher.Interrupted();
    if (watcher.outcomes().empty()) return;
    pipeline::Counts total;
    std::set<std::string> begun;
    for (const Watcher::Outcome& one : watcher.outcomes()) {
      total += one.counts;
      begun.insert(one.collection);
    }
    Left left{.incomplete = incomplete};
    for (const pipeline::Collection& one : collections) {
      if (allowed(one.name) && !begun.contains(one.name)) ++left.not_begun;
    }
    Report(watcher, total, left);
  }

  void Report(const Watcher& watcher, const pipeline::Counts& total, const Left& left) {
    const double seconds = watcher.Seconds();
    if (context_.json) {
      Json list = Json::array();
      for (const Watcher::Outcome& one : watcher.outcomes()) {
        Json entry = TimedCountsJson(one.counts, one.seconds);
        entry["collection"] = one.collection;
        list.push_back(std::move(entry));
      }
      Json report{{"collections", list}, {"total", TimedCountsJson(total, seconds)}};
      if (total.failed > 0) report["reasons"] = ReasonsJson(watcher.reasons());
      if (total.failed > 0) report["dead_letters"] = dead_letters_path_;
      if (!left.incomplete.empty()) report["incomplete"] = left.incomplete;
      if (left.not_begun > 0) report["not_begun"] = left.not_begun;
      AddLeftOut(left_out_, report);
      context_.out << ToJsonText(report) << '\n';
      return;
    }
    using Align = Table::Align;
    Table table({{"COLLECTION"},
                 {"READ", Align::kRight},
                 {"WRITTEN", Align::kRight},
                 {"SKIPPED", Align::kRight},
                 {"FAILED", Align::kRight},
                 {"MB", Align::kRight},
                 {"SECONDS", Align::kRight},
                 {"DOCS/S", Align::kRight}});
    for (const Watcher::Outcome& one : watcher.outcomes()) {
      AddRow(table, one.collection, one.counts, one.seconds);
    }
    if (watcher.outcomes().size() > 1) AddRow(table, "total", total, seconds);
    table.Print(context_.out, context_.color);
    PrintLeftOut(context_.out, left_out_);
    if (total.added > 0) {
      context_.out << "\n" << AddedText(total.added) << "\n";
    }
    PrintReasons(context_.out, watcher.reasons(), context_.color);
    if (total.failed > 0) {
      context_.out << "\n"
                   << total.failed << " documents could not be migrated: see " << dead_letters_path_
                   << "\n";
    }
    if (!left.incomplete.empty()) context_.out << "\nIncomplete: " << left.incomplete << "\n";
    if (left.not_begun > 0) {
      context_.out << "\n"
                   << left.not_begun << " of " << watcher.outcomes().size() + left.not_begun
                   << " collections were not begun\n";
    }
  }

  static Json TimedCountsJson(const pipeline::Counts& counts, double seconds) {
    Json json = CountsJson(counts);
    json["seconds"] = seconds;
    return json;
  }

  static void AddRow(Table& table, const std::string& name, const pipeline::Counts& counts,
                     double seconds) {
    const double rate = seconds > 0 ? static_cast<double>(counts.read) / seconds : 0;
    table.AddRow({{name},
                  {std::to_string(counts.read)},
                  {std::to_string(counts.written)},
                  {std::to_string(counts.skipped)},
                  {std::to_string(counts.failed), counts.failed > 0 ? Style::kBad : Style::kNone},
                  {Fixed(static_cast<double>(counts.bytes) / 1e6, 1)},
                  {Fixed(seconds, 1)},
                  {Fixed(rate, 0)}});
  }

  const MigrateOptions& options_;
  Context& context_;
  std::string dead_letters_path_;
  std::vector<pipeline::LeftOut> left_out_;
};

}  // namespace

void AddMigrateCommand(Command& app, Context& context) {
  Command command =
      app.AddCommand("migrate", "Copy collections from a source to a sink, in one process");
  command.Group("Move data");
  auto options = std::make_shared<MigrateOptions>();
  AddPipelineOptions(command, options->settings);
  command
      .AddOption("--shard-concurrency", options->shard_concurrency,
                 "How many shards of a collection at once; 1 by default")
      .Range(1, 256)
      .TypeName("N");
  command.AddFlag("--evaluate", options->evaluate,
                  "Only report what would change in the target; exit code 3 if anything would");
  command.Footer(
      "  muster migrate jsonl:orders.jsonl csv:orders.csv\n"
      "  muster migrate jsonl:export/ opensearch+https://search:9200 --transforms rules.yaml\n"
      "  muster migrate csv:big.csv jsonl:out/ --shard-concurrency 4 --mb-per-second 50");
  command.Action(context, [options, &context] { return MigrateRun(*options, context).Run(); });
}

}  // namespace muster::cli
