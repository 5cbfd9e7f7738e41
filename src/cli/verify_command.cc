#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/extra_documents.h"
#include "cli/left_out.h"
#include "cli/pipeline_settings.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "cli/verify_metadata.h"
#include "cli/verify_progress.h"
#include "cli/verify_report.h"
#include "cli/written_url.h"
#include "core/file.h"
#include "core/interrupt.h"
#include "muster/migrate.h"
#include "pipeline/pipeline.h"

namespace muster::cli {
namespace {

constexpr size_t kMaxTransformBytes = size_t{1} << 20;

struct Options {
  std::string source;
  std::string sink;
  std::string transforms;
  CollectionPatterns collections;
  bool checksums = false;
  bool merge = false;
  bool documents_only = false;
  bool delete_extra = false;
  std::string state;            // a folder; empty: none
  std::string transforms_text;  // once it is read
};

// Collections of a source that were merged into one target, as one. Their names are unique, so that
// partitions say which they are of.
class Merged final : public pipeline::SourceWrapper {
 public:
  Merged(Source& source, const std::vector<std::string>& names)
      : SourceWrapper(source), names_(names) {}

  Result<std::vector<pipeline::Partition>> Partitions(const std::string& /*all*/) override {
    std::vector<pipeline::Partition> partitions;
    for (const std::string& name : names_) {
      MUSTER_ASSIGN(const auto ones, inner().Partitions(name));
      partitions.insert(partitions.end(), ones.begin(), ones.end());
    }
    return partitions;
  }

  Result<std::optional<int64_t>> CountAgain(
      const std::vector<pipeline::Partition>& partitions) override {
    int64_t all = 0;
    for (const std::string& name : names_) {
      std::vector<pipeline::Partition> ones;
      for (const pipeline::Partition& one : partitions) {
        if (one.collection == name) ones.push_back(one);
      }
      MUSTER_ASSIGN(const auto count, inner().CountAgain(ones));
      if (!count) return std::nullopt;
      all += *count;
    }
    return all;
  }

 private:
  const std::vector<std::string>& names_;
};

struct Pair {
  std::vector<std::string> collections;  // several: merged
  std::string target;
  std::string written;  // what the sink calls it

  std::string Names() const {
    std::string names;
    for (const std::string& one : collections) names += (names.empty() ? "" : ", ") + one;
    return names;
  }
};

// Adds a collection that goes to this target of the sink.
Status Add(const std::string& collection, const std::string& target, const std::string& written,
           bool merge, std::vector<Pair>& pairs) {
  const auto same = std::find_if(pairs.begin(), pairs.end(),
                                 [&](const Pair& one) { return one.target == target; });
  if (same == pairs.end()) {
    pairs.push_back({{collection}, target, written});
    return {};
  }
  if (!merge) {
    return Error{Code::kInvalid,
                 same->Names() + " and '" + collection + "' are both in the sink's " + target +
                     ", and cannot be distinguished there",
                 "compare them together with --merge, or those that have a target of their own: "
                 "--include, --exclude"};
  }
  same->collections.push_back(collection);
  return {};
}

// Documents of a collection that is not selected would be extra in a target that it shares.
Status CheckIsElsewhere(const std::string& collection, const pipeline::TransformPlan& transforms,
                        pipeline::Source& target, const std::vector<Pair>& pairs) {
  MUSTER_ASSIGN(const auto name, target.TargetOf(transforms.TargetName(collection)));
  if (!name || std::none_of(pairs.begin(), pairs.end(),
                            [&](const Pair& one) { return one.target == *name; })) {
    return {};
  }
  return Error{Code::kInvalid,
               "--delete-extra: '" + collection + "' goes into the sink's " + *name +
                   ", too, but "
                   "is not selected: its documents there would be deleted",
               "select it as well, with --merge"};
}

Result<std::vector<Pair>> PairsOf(const Options& options, pipeline::Source& source,
                                  pipeline::Source& target,
                                  const pipeline::TransformPlan& transforms) {
  MUSTER_ASSIGN(const auto chosen, FilterOf(options.collections));
  MUSTER_ASSIGN(const auto collections, source.Collections());
  std::vector<Pair> pairs;
  for (const pipeline::Collection& collection : collections) {
    if (!chosen(collection.name)) continue;
    if (collection.refusal) return *collection.refusal;
    const std::string wanted = transforms.TargetName(collection.name);
    MUSTER_ASSIGN(const std::optional<std::string> name, target.TargetOf(wanted));
    if (!name) {
      return Error{Code::kNotFound, "the sink has no collection '" + wanted + "'",
                   "was it migrated? 'muster migrate' does that"};
    }
    MUSTER_TRY(Add(collection.name, *name, wanted, options.merge, pairs));
  }
  for (const pipeline::Collection& collection : collections) {
    if (!options.delete_extra || chosen(collection.name)) continue;
    MUSTER_TRY(CheckIsElsewhere(collection.name, transforms, target, pairs));
  }
  return pairs;
}

std::string StateFileOf(const Options& options, const pipeline::TransformPlan& transforms,
                        const Pair& pair) {
  if (options.state.empty()) return "";
  return VerifyStateFile(options.state, {.source = options.source,
                                         .sink = options.sink,
                                         .collections = pair.Names(),
                                         .target = pair.target,
                                         .transforms = options.transforms_text,
                                         .scripts = transforms.Scripts(),
                                         .checksums = options.checksums});
}

Result<Verified> VerifyPair(const Options& options, Context& context, pipeline::Source& source,
                            pipeline::Source& target, const pipeline::TransformPlan& transforms,
                            const Pair& pair, Progress& progress, uint64_t before,
                            const std::stop_token& stop) {
  KeptProgress kept(StateFileOf(options, transforms, pair), progress, before, context.env);
  MUSTER_ASSIGN(std::string state, kept.Load());
  progress.Note(pair.Names());
  pipeline::VerifyOptions how{
      .checksums = options.checksums, .transforms = &transforms, .state = std::move(state)};
  std::unique_ptr<ExtraDocuments> extra;
  if (options.delete_extra) {
    MUSTER_ASSIGN(extra, ExtraDocuments::Open(options.sink, context.env));
    how.delete_extra = [&](const pipeline::Batch& documents) {
      return extra->Delete(pair.written, documents, stop);
    };
  }
  Merged merged(source, pair.collections);
  pipeline::Source& side = pair.collections.size() > 1 ? merged : source;
  auto report =
      pipeline::VerifyCollection({side, pair.Names()}, {target, pair.target}, how, kept, stop);
  Verified verified{.collection = pair.Names(), .target = pair.target};
  if (report) {
    verified.report = *std::move(report);
  } else {
    verified.failure = report.error().Within(pair.Names());
  }
  return verified;
}

// `state_files`: what it leaves in the folder of --state.
Result<VerifyOutcome> VerifyAll(const Options& options, Context& context,
                                const std::stop_token& stop,
                                std::vector<std::string>& state_files) {
  MUSTER_ASSIGN(const auto source, pipeline::OpenSource(options.source, context.env));
  if (source->HasDeletes()) {
    return Error{Code::kInvalid, "the source only reports changes, not its whole content",
                 "remove since=NAME from its URL to compare the whole snapshot"};
  }
  auto target = pipeline::OpenSource(WrittenUrl(options.sink), context.env);
  if (!target) return target.error().Within("the sink, to be read");
  MUSTER_ASSIGN(const auto transforms,
                pipeline::ParseTransforms(options.transforms_text, options.transforms));
  MUSTER_ASSIGN(const auto pairs, PairsOf(options, *source, **target, *transforms));
  MUSTER_ASSIGN(const auto chosen, FilterOf(options.collections));
  VerifyOutcome outcome;
  outcome.left_out = LeftOutOf(*source, chosen);
  // First: it takes seconds, and documents may take hours.
  if (!options.documents_only && options.transforms.empty() && !options.merge && !pairs.empty()) {
    MUSTER_ASSIGN(outcome.metadata, CompareMetadata({.source = *source,
                                                     .source_url = options.source,
                                                     .sink_url = options.sink,
                                                     .collections = options.collections},
                                                    context.env, stop));
  }
  Progress progress(context.progress, context.err, context.env, "documents", 0,
                    [] { return TerminalWidth(STDERR_FILENO); });
  uint64_t read = 0;
  for (const Pair& pair : pairs) {
    MUSTER_ASSIGN(Verified one, VerifyPair(options, context, *source, **target, *transforms, pair,
                                           progress, read, stop));
    if (one.failure) {
      const Code code = one.failure->code;
      outcome.failure = outcome.failure.value_or(*one.failure);
      if (code != Code::kCancelled) outcome.collections.push_back(std::move(one));
      // Others might be comparable, unless nothing is at the moment.
      if (code == Code::kCancelled || IsTransient(code)) break;
      continue;
    }
    read += static_cast<uint64_t>(one.report.SourceDocuments() + one.report.TargetDocuments());
    progress.Update(read);
    outcome.collections.push_back(std::move(one));
    state_files.push_back(StateFileOf(options, *transforms, pair));
  }
  return outcome;
}

Status PrepareState(const std::string& folder) {
  if (folder.empty()) return {};
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (!problem) return {};
  return Error{Code::kInvalid, folder + ": cannot be created: " + problem.message(),
               "name a folder in which you may write files"};
}

Result<int> Verify(Options& options, Context& context) {
  if (options.delete_extra && !options.checksums) {
    return Error{Code::kInvalid, "--delete-extra needs --checksums, which compares ids"};
  }
  const StopOnSignals signals("\n");
  const InterruptScope scope(signals.Token());
  if (!options.transforms.empty()) {
    MUSTER_ASSIGN(options.transforms_text, ReadFile(options.transforms, kMaxTransformBytes));
  }
  MUSTER_TRY(PrepareState(options.state));
  std::vector<std::string> state_files;
  MUSTER_ASSIGN(const VerifyOutcome outcome,
                VerifyAll(options, context, signals.Token(), state_files));
  if (!outcome.failure || !outcome.collections.empty()) {
    PrintVerified(outcome, options.checksums, context);
  }
  if (outcome.failure) return *outcome.failure;
  // The next comparison is a new one: both sides may have changed.
  for (const std::string& file : state_files) MUSTER_TRY(RemoveVerifyState(file));
  // Comparing nothing is not a success: the caller expected a match.
  if (outcome.collections.empty()) return kNothingToDo;
  return outcome.Equal() ? kDone : kFailed;
}

}  // namespace

void AddVerifyCommand(Command& app, Context& context) {
  Command command = app.AddCommand("verify", "Compare a sink with its source");
  command.Group("Move data");
  auto options = std::make_shared<Options>();
  command.AddOption("SOURCE", options->source, "Where the documents came from")
      .Required()
      .TypeName("URL");
  command.AddOption("SINK", options->sink, "Where they went; read as a source")
      .Required()
      .TypeName("URL");
  command.AddFlag("--checksums", options->checksums,
                  "Compare the contents of documents, and name those that differ");
  command.AddFlag("--merge", options->merge,
                  "Compare collections that were merged into one target together");
  command.AddFlag("--delete-extra", options->delete_extra,
                  "With --checksums: delete documents of the sink that the source does not have");
  command.AddFlag("--documents-only", options->documents_only,
                  "Between search clusters: not their settings, mappings, aliases and templates");
  command
      .AddOption("--state", options->state,
                 "Keep progress in this folder until all is compared, and continue from it")
      .TypeName("FOLDER");
  AddCollectionOptions(command, options->collections);
  command.AddOption("--transforms", options->transforms, "The transforms that were applied")
      .TypeName("FILE");
  command.Footer(
      "  muster verify csv:orders.csv sqlite:shop.db#orders\n"
      "  muster verify --checksums sqlite:shop.db postgresql://me@db/shop --json");
  command.Action(context, [options, &context] { return Verify(*options, context); });
}

}  // namespace muster::cli
