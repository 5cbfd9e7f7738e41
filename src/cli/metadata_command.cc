#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/metadata_objects.h"
#include "cli/pipeline_settings.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "core/interrupt.h"
#include "core/json.h"
#include "core/url.h"
#include "muster/migrate.h"

namespace muster::cli {
namespace {

using metadata::Reported;

struct Options {
  std::string action;
  std::string source;
  std::string target;
  CollectionPatterns collections;
  std::string rules;
  metadata::Overrides overrides;
  bool pipelines = false;
  int sample = 100;
};

constexpr EnumNames<metadata::Mode, 3> kModes{{{{metadata::Mode::kEvaluate, "evaluate"},
                                                {metadata::Mode::kMigrate, "migrate"},
                                                {metadata::Mode::kDiff, "diff"}}}};

class MetadataRun {
 public:
  MetadataRun(const Options& options, Context& context) : options_(options), context_(context) {}

  Result<int> Run() {
    const StopOnSignals signals("\nstopping…\n");
    const InterruptScope scope(signals.Token());
    MUSTER_ASSIGN(const metadata::RuleSet built_in, metadata::RuleSet::BuiltIn());
    MUSTER_ASSIGN(metadata::RuleSet rules, metadata::RuleSet::BuiltIn());
    if (!options_.rules.empty()) MUSTER_TRY(rules.AddFile(options_.rules));
    MUSTER_ASSIGN(const Url url, TargetUrl());
    MUSTER_ASSIGN(auto endpoint, net::OpenSearchEndpoint::FromUrl(url, {"gzip"}));
    net::OpenSearchClient client(std::move(endpoint), context_.env);
    MUSTER_ASSIGN(const Url from, ParseUrl(options_.source));
    MUSTER_ASSIGN(source_, pipeline::OpenSource(options_.source, context_.env));
    MUSTER_ASSIGN(source_objects_,
                  ReadMetadataObjects(*source_, from, options_.collections, options_.pipelines));
    if (source_objects_.SelectsNothing()) {
      Print({});
      return kNothingToDo;
    }
    MUSTER_ASSIGN(auto version, metadata::VersionOf(client));
    metadata::Target target(client, context_.env, version);
    metadata::Job job(target, rules, built_in, source_objects_.from,
                      {.overrides = options_.overrides, .selects = source_objects_.selects});
    const metadata::Mode mode = *kModes.Find(options_.action);
    Progress progress(context_.progress, context_.err, context_.env, "metadata",
                      source_objects_.objects.size(), [] { return TerminalWidth(STDERR_FILENO); });
    uint64_t done = 0;
    MUSTER_ASSIGN(
        const auto all,
        job.Run(
            mode, source_objects_.objects, [&](const std::string& index) { return Sample(index); },
            [&](const Reported&) { progress.Update(++done, source_objects_.objects.size()); },
            signals.Token()));
    Print(all);
    return ExitCodeOf(mode, all);
  }

 private:
  Result<Url> TargetUrl() const {
    MUSTER_ASSIGN(Url url, ParseUrl(options_.target));
    if (url.path.size() > 1) {
      return Error{Code::kInvalid, "the target's URL names an index",
                   "write opensearch+https://HOST: metadata keeps its names"};
    }
    return url;
  }

  // The first documents of an index.
  Result<std::vector<metadata::Sample>> Sample(const std::string& index) {
    std::vector<metadata::Sample> documents;
    const auto wanted = static_cast<size_t>(options_.sample);
    const bool is_refused = std::any_of(
        source_objects_.objects.begin(), source_objects_.objects.end(),
        [&](const auto& one) { return one.object.name == index && !one.refusal.empty(); });
    if (wanted == 0 || is_refused) return documents;
    MUSTER_ASSIGN(const auto partitions, source_->Partitions(index));
    for (const pipeline::Partition& partition : partitions) {
      MUSTER_ASSIGN(const auto reader, source_->Read(partition, "", {}));
      while (documents.size() < wanted) {
        MUSTER_ASSIGN(const auto document, reader->Next());
        if (!document) break;
        if (!document->defect.empty() || document->deleted) continue;
        documents.push_back({std::string(document->id), std::string(document->routing),
                             std::string(document->body)});
      }
      if (documents.size() == wanted) break;
    }
    return documents;
  }

  void Print(const std::vector<Reported>& all) {
    if (context_.json) {
      context_.out << ToJsonText(Json{{"source", source_objects_.from.ToString()},
                                      {"objects", MetadataJson(all)}})
                   << '\n';
    } else if (all.empty()) {
      context_.out << (source_objects_.selects
                           ? "Nothing is selected: no index or data stream has such a name.\n"
                           : "The source has nothing to migrate.\n");
    } else {
      PrintMetadata(all, context_);
    }
  }

  static int ExitCodeOf(metadata::Mode mode, const std::vector<Reported>& all) {
    if (all.empty()) return kNothingToDo;
    if (!HasMetadataFailures(all)) return kDone;
    return mode == metadata::Mode::kDiff ? kFailed : kDoneWithRejects;
  }

  const Options& options_;
  Context& context_;
  std::unique_ptr<pipeline::Source> source_;
  MetadataObjects source_objects_;
};

}  // namespace

void AddMetadataCommand(Command& app, Context& context) {
  Command command = app.AddCommand(
      "metadata", "Migrate templates, indices and aliases of a search cluster, without documents");
  command.Group("Move data");
  auto options = std::make_shared<Options>();
  command.AddOption("ACTION", options->action, "What to do")
      .Required()
      .OneOf({"evaluate", "migrate", "diff"});
  command.AddOption("SOURCE", options->source, "A cluster, or a snapshot of one")
      .Required()
      .TypeName("URL");
  command.AddOption("TARGET", options->target, "The cluster that gets the metadata")
      .Required()
      .TypeName("URL");
  AddCollectionOptions(command, options->collections);
  command
      .AddOption("--rules", options->rules,
                 "Rules of your own, applied first: YAML, or a function in a .js file")
      .TypeName("FILE");
  command.AddOption("--shards", options->overrides.shards, "Shards of each index")
      .Range(1, 1024)
      .TypeName("N");
  command.AddOption("--replicas", options->overrides.replicas, "Replicas of each shard")
      .Range(0, 100)
      .TypeName("N");
  command.AddFlag("--pipelines", options->pipelines, "Ingest pipelines as well");
  command
      .AddOption("--sample", options->sample,
                 "Documents of each index to try its mapping with; 100 by default; for evaluate")
      .Range(0, 10'000)
      .TypeName("N");
  command.Footer(
      "  muster metadata evaluate opensearch+https://old:9200 opensearch+https://new:9200\n"
      "  muster metadata migrate snapshot+file:///backups/repo opensearch+https://new:9200 "
      "--replicas 2\n"
      "  muster metadata diff opensearch+https://old:9200 opensearch+https://new:9200 --include "
      "'logs-*'");
  command.Action(context, [command, options, &context]() -> Result<int> {
    MUSTER_TRY(command.CheckUse(options->action, {{"--sample", {"evaluate"}}}));
    return MetadataRun(*options, context).Run();
  });
}

}  // namespace muster::cli
