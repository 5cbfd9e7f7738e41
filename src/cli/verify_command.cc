#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/left_out.h"
#include "cli/pipeline_settings.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "cli/verify_metadata.h"
#include "cli/verify_report.h"
#include "cli/written_url.h"
#include "core/file.h"
#include "core/file_output.h"
#include "core/interrupt.h"
#include "core/sha256.h"
#include "muster/migrate.h"
#include "pipeline/pipeline.h"

namespace muster::cli {
namespace {

constexpr size_t kMaxTransformBytes = size_t{1} << 20;
constexpr size_t kMaxStateBytes = size_t{1} << 30;

struct Options {
  std::string source;
  std::string sink;
  std::string transforms;
  CollectionPatterns collections;
  bool checksums = false;
  bool merge = false;
  bool documents_only = false;
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

  std::string Names() const {
    std::string names;
    for (const std::string& one : collections) names += (names.empty() ? "" : ", ") + one;
    return names;
  }
};

// Adds a collection that goes to this target of the sink.
Status Add(const std::string& collection, const std::string& target, bool merge,
           std::vector<Pair>& pairs) {
  const auto same = std::find_if(pairs.begin(), pairs.end(),
                                 [&](const Pair& one) { return one.target == target; });
  if (same == pairs.end()) {
    pairs.push_back({{collection}, target});
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

Result<std::vector<Pair>> PairsOf(const Options& options, pipeline::Source& source,
                                  pipeline::Source& target,
                                  const pipeline::TransformPlan& transforms) {
  MUSTER_ASSIGN(const auto chosen, FilterOf(options.collections));
  MUSTER_ASSIGN(auto collections, source.Collections());
  std::erase_if(collections, [&](const pipeline::Collection& one) { return !chosen(one.name); });
  std::vector<Pair> pairs;
  for (const pipeline::Collection& collection : collections) {
    if (collection.refusal) return *collection.refusal;
    const std::string wanted = transforms.TargetName(collection.name);
    MUSTER_ASSIGN(const std::optional<std::string> name, target.TargetOf(wanted));
    if (!name) {
      return Error{Code::kNotFound, "the sink has no collection '" + wanted + "'",
                   "was it migrated? 'muster migrate' does that"};
    }
    MUSTER_TRY(Add(collection.name, *name, options.merge, pairs));
  }
  return pairs;
}

// Shows the progress of a comparison, and keeps it, so that another process can continue.
class KeptProgress final : public pipeline::VerifyObserver {
 public:
  // `before`: documents of earlier comparisons.
  KeptProgress(const Options& options, const pipeline::TransformPlan& transforms, const Pair& pair,
               Progress& progress, uint64_t before, Env& env)
      : progress_(progress), before_(before), env_(env), saved_(env.MonoNow()) {
    if (options.state.empty()) return;
    std::string identity;
    for (const std::string& part :
         {options.source, options.sink, pair.Names(), pair.target, options.transforms_text,
          transforms.Scripts(), std::string(options.checksums ? "contents" : "counts")}) {
      identity += part + '\0';
    }
    path_ = options.state + "/" + Sha256Hex(identity).substr(0, 32) + ".json";
  }

  Result<std::string> Load() const {
    std::error_code none;
    if (path_.empty() || !std::filesystem::exists(path_, none)) return std::string();
    return ReadFile(path_, kMaxStateBytes);
  }

  void Advanced(int64_t documents) override {
    progress_.Update(before_ + static_cast<uint64_t>(documents));
  }

  // It is large: not after each of many small partitions.
  Status Save(const std::function<std::string()>& state) override {
    const MonoTime now = env_.MonoNow();
    if (path_.empty() || now - saved_ < std::chrono::seconds(1)) return {};
    saved_ = now;
    return ReplaceFile(path_, state(), FileAccess::kOwner);
  }

 private:
  Progress& progress_;
  const uint64_t before_;
  Env& env_;
  MonoTime saved_;
  std::string path_;
};

Result<Verified> VerifyPair(const Options& options, Context& context, pipeline::Source& source,
                            pipeline::Source& target, const pipeline::TransformPlan& transforms,
                            const Pair& pair, Progress& progress, uint64_t before,
                            const std::stop_token& stop) {
  KeptProgress kept(options, transforms, pair, progress, before, context.env);
  MUSTER_ASSIGN(std::string state, kept.Load());
  progress.Note(pair.Names());
  const pipeline::VerifyOptions how{
      .checksums = options.checksums, .transforms = &transforms, .state = std::move(state)};
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

Result<VerifyOutcome> VerifyAll(const Options& options, Context& context,
                                const std::stop_token& stop) {
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
  const StopOnSignals signals("\n");
  const InterruptScope scope(signals.Token());
  if (!options.transforms.empty()) {
    MUSTER_ASSIGN(options.transforms_text, ReadFile(options.transforms, kMaxTransformBytes));
  }
  MUSTER_TRY(PrepareState(options.state));
  MUSTER_ASSIGN(const VerifyOutcome outcome, VerifyAll(options, context, signals.Token()));
  if (!outcome.failure || !outcome.collections.empty()) {
    PrintVerified(outcome, options.checksums, context);
  }
  if (outcome.failure) return *outcome.failure;
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
  command.AddFlag("--documents-only", options->documents_only,
                  "Between search clusters: not their settings, mappings, aliases and templates");
  command
      .AddOption("--state", options->state,
                 "Keep progress in this folder, and continue from what is there")
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
