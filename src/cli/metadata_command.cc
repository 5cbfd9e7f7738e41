#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/pipeline_settings.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "core/interrupt.h"
#include "core/json.h"
#include "core/json_fields.h"
#include "core/url.h"
#include "metadata/metadata.h"
#include "muster/migrate.h"

namespace muster::cli {
namespace {

using metadata::Kind;
using metadata::Outcome;
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

// What the URL of a source names; without, it is the whole cluster or snapshot.
bool NamesIndices(const Url& url) {
  return url.path.size() > 1 && url.scheme.starts_with("opensearch");
}

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
    MUSTER_TRY(ReadSource());
    if (SelectsNothing()) {
      Print({});
      return kNothingToDo;
    }
    MUSTER_ASSIGN(auto version, metadata::VersionOf(client));
    metadata::Target target(client, context_.env, std::move(version));
    metadata::Job job(target, rules, built_in, from_,
                      {.overrides = options_.overrides, .selects = selects_});
    const metadata::Mode mode = *kModes.Find(options_.action);
    Progress progress(context_.progress, context_.err, context_.env, "metadata", objects_.size(),
                      [] { return TerminalWidth(STDERR_FILENO); });
    uint64_t done = 0;
    MUSTER_ASSIGN(
        const auto all,
        job.Run(
            mode, objects_, [&](const std::string& index) { return Sample(index); },
            [&](const Reported&) { progress.Update(++done, objects_.size()); }, signals.Token()));
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

  Status ReadSource() {
    MUSTER_ASSIGN(const Url url, ParseUrl(options_.source));
    MUSTER_ASSIGN(source_, pipeline::OpenSource(options_.source, context_.env));
    MUSTER_ASSIGN(const auto allowed, FilterOf(options_.collections));
    selects_ = !options_.collections.include.empty() || !options_.collections.exclude.empty() ||
               NamesIndices(url) || !url.fragment.empty();
    MUSTER_ASSIGN(const std::string text, source_->GlobalMetadata());
    MUSTER_ASSIGN(const Json global, ParseJson(text, "metadata of the source", kLimits));
    if (!global.contains("cluster_version")) {
      return Error{Code::kInvalid, "the source is neither a search cluster nor a snapshot of one",
                   "its URL begins with opensearch+https: or snapshot+file:, for example"};
    }
    from_ = metadata::ClusterVersion::Parse(TextIn(global, "cluster_version"));
    MUSTER_ASSIGN(const auto collections, source_->Collections());
    objects_ = metadata::GlobalObjects(global, options_.pipelines);
    std::erase_if(objects_, [&](const metadata::SourceObject& one) {
      const bool is_index = one.object.kind == Kind::kIndex;
      if (!is_index && one.object.kind != Kind::kDataStream) return false;
      const bool is_listed = IsListed(collections, one.object.name);
      return !allowed(one.object.name) || (is_index ? is_listed : selects_ && !is_listed);
    });
    for (const pipeline::Collection& one : collections) {
      if (!allowed(one.name)) continue;
      MUSTER_TRY(AddIndex(one));
    }
    return {};
  }

  // Templates and policies alone are not what was asked for.
  bool SelectsNothing() const {
    return selects_ && std::none_of(objects_.begin(), objects_.end(), [](const auto& one) {
             return one.object.kind == Kind::kIndex || one.object.kind == Kind::kDataStream;
           });
  }

  static bool IsListed(const std::vector<pipeline::Collection>& collections,
                       const std::string& name) {
    return std::any_of(collections.begin(), collections.end(),
                       [&](const pipeline::Collection& one) { return one.name == name; });
  }

  Status AddIndex(const pipeline::Collection& one) {
    for (metadata::SourceObject& there : objects_) {
      if (there.object.kind != Kind::kDataStream || there.object.name != one.name) continue;
      if (one.refusal) there.refusal = one.refusal->ToString();
      return {};
    }
    MUSTER_ASSIGN(Json body, ParseJson(one.metadata, "metadata of " + one.name, kLimits));
    for (const char* member : {"cluster_version", "cluster_uuid"}) body.erase(member);
    objects_.push_back({{Kind::kIndex, one.name, std::move(body)},
                        one.refusal ? one.refusal->ToString() : std::string()});
    return {};
  }

  // The first documents of an index.
  Result<std::vector<metadata::Sample>> Sample(const std::string& index) {
    std::vector<metadata::Sample> documents;
    const auto wanted = static_cast<size_t>(options_.sample);
    const bool is_refused = std::any_of(objects_.begin(), objects_.end(), [&](const auto& one) {
      return one.object.name == index && !one.refusal.empty();
    });
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

  static Style StyleOf(Outcome outcome) {
    if (outcome == Outcome::kRefused || outcome == Outcome::kDifferent) return Style::kBad;
    return outcome == Outcome::kOk ? Style::kGood : Style::kNone;
  }

  void Print(const std::vector<Reported>& all) {
    if (context_.json) {
      Json list = Json::array();
      for (const Reported& one : all) {
        list.push_back(Json{{"kind", metadata::kKinds.NameOf(one.kind)},
                            {"name", one.name},
                            {"target", one.verdict.name},
                            {"outcome", metadata::kOutcomes.NameOf(one.verdict.outcome)},
                            {"reason", one.verdict.reason},
                            {"changes", one.verdict.changes},
                            {"body", one.verdict.IsKept() ? one.verdict.body : Json()}});
      }
      context_.out << ToJsonText(Json{{"source", from_.ToString()}, {"objects", list}}) << '\n';
      return;
    }
    if (all.empty()) {
      context_.out << (selects_ ? "Nothing is selected: no index or data stream has such a name.\n"
                                : "The source has nothing to migrate.\n");
      return;
    }
    Table table({{"KIND"}, {"NAME"}, {"OUTCOME"}, {"DETAIL"}});
    for (const Reported& one : all) {
      const Outcome outcome = one.verdict.outcome;
      table.AddRow({{std::string(metadata::kKinds.NameOf(one.kind))},
                    {one.name},
                    {std::string(metadata::kOutcomes.NameOf(outcome)), StyleOf(outcome)},
                    {one.verdict.Detail()}});
    }
    table.Print(context_.out, context_.color);
  }

  static int ExitCodeOf(metadata::Mode mode, const std::vector<Reported>& all) {
    if (all.empty()) return kNothingToDo;
    const bool bad = std::any_of(all.begin(), all.end(), [](const Reported& one) {
      return one.verdict.outcome == Outcome::kRefused || one.verdict.outcome == Outcome::kDifferent;
    });
    if (!bad) return kDone;
    return mode == metadata::Mode::kDiff ? kFailed : kDoneWithRejects;
  }

  // Of a whole cluster.
  static constexpr JsonLimits kLimits{.bytes = size_t{1} << 30, .depth = 500};

  const Options& options_;
  Context& context_;
  std::unique_ptr<pipeline::Source> source_;
  metadata::ClusterVersion from_;
  bool selects_ = false;
  std::vector<metadata::SourceObject> objects_;
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
