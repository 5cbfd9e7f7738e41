#include <algorithm>
#include <memory>
#include <optional>

#include "cli/commands.h"
#include "cli/exit_codes.h"
#include "cli/left_out.h"
#include "cli/pipeline_settings.h"
#include "cli/signals.h"
#include "cli/table.h"
#include "core/file.h"
#include "core/interrupt.h"
#include "core/json.h"
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
};

// One collection of the source, or several that were merged, and its counterpart in the sink.
struct Verified {
  std::string collection;
  std::string target;
  pipeline::VerifyReport report;
};

std::string_view KindName(pipeline::VerifyDifference::Kind kind) {
  switch (kind) {
    case pipeline::VerifyDifference::Kind::kMissing:
      return "missing";
    case pipeline::VerifyDifference::Kind::kExtra:
      return "extra";
    case pipeline::VerifyDifference::Kind::kChanged:
      return "changed";
    case pipeline::VerifyDifference::Kind::kUnreadable:
      return "unreadable";
  }
  return "";
}

Result<std::unique_ptr<pipeline::TransformPlan>> LoadTransforms(const std::string& file) {
  if (file.empty()) return pipeline::ParseTransforms("", "");
  MUSTER_ASSIGN(const std::string text, ReadFile(file, kMaxTransformBytes));
  return pipeline::ParseTransforms(text, file);
}

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

Result<std::vector<Verified>> VerifyAll(const Options& options, Context& context,
                                        std::vector<pipeline::LeftOut>& left_out,
                                        std::stop_token stop) {
  MUSTER_ASSIGN(const auto source, pipeline::OpenSource(options.source, context.env));
  if (source->HasDeletes()) {
    return Error{Code::kInvalid, "the source only reports changes, not its whole content",
                 "remove since=NAME from its URL to compare the whole snapshot"};
  }
  auto target = pipeline::OpenSource(options.sink, context.env);
  if (!target) return target.error().Within("the sink, to be read");
  MUSTER_ASSIGN(const auto transforms, LoadTransforms(options.transforms));
  MUSTER_ASSIGN(const auto pairs, PairsOf(options, *source, **target, *transforms));
  MUSTER_ASSIGN(const auto chosen, FilterOf(options.collections));
  left_out = LeftOutOf(*source, chosen);
  std::vector<Verified> all;
  for (const Pair& pair : pairs) {
    const pipeline::VerifyOptions how{.checksums = options.checksums,
                                      .transforms = transforms.get()};
    Merged merged(*source, pair.collections);
    pipeline::Source& side = pair.collections.size() > 1 ? merged : *source;
    auto report =
        pipeline::VerifyCollection({side, pair.Names()}, {**target, pair.target}, how, stop);
    if (!report) return report.error().Within(pair.Names());
    all.push_back({pair.Names(), pair.target, *std::move(report)});
  }
  return all;
}

Json CountsJson(const std::vector<pipeline::VerifyReport::Count>& counts) {
  Json list = Json::array();
  for (const pipeline::VerifyReport::Count& count : counts) {
    list.push_back(Json{{"shard", count.partition.shard},
                        {"part", count.partition.part},
                        {"begin", count.partition.begin},
                        {"end", count.partition.end},
                        {"documents", count.documents},
                        {"unreadable", count.unreadable}});
  }
  return list;
}

void PrintJson(const std::vector<Verified>& all, const std::vector<pipeline::LeftOut>& left_out,
               bool equal, std::ostream& out) {
  Json list = Json::array();
  for (const Verified& one : all) {
    Json named = Json::array();
    for (const pipeline::VerifyDifference& difference : one.report.named) {
      named.push_back(Json{{"kind", KindName(difference.kind)},
                           {"id", difference.id},
                           {"shard", difference.shard},
                           {"position", difference.position}});
    }
    list.push_back(Json{{"collection", one.collection},
                        {"target", one.target},
                        {"equal", one.report.Equal()},
                        {"source_documents", one.report.SourceDocuments()},
                        {"target_documents", one.report.TargetDocuments()},
                        {"unreadable", one.report.Unreadable()},
                        {"differences", one.report.differences},
                        {"named", std::move(named)},
                        {"source_partitions", CountsJson(one.report.source)},
                        {"target_partitions", CountsJson(one.report.target)}});
  }
  Json report{{"equal", equal}, {"collections", std::move(list)}};
  AddLeftOut(left_out, report);
  out << ToJsonText(report) << '\n';
}

void PrintTables(const std::vector<Verified>& all, bool checksums, Context& context) {
  using enum Table::Align;
  Table table({{"COLLECTION"},
               {"TARGET"},
               {"PARTITIONS", kRight},
               {"SOURCE", kRight},
               {"SINK", kRight},
               {"UNREADABLE", kRight},
               {"DIFFERENT", kRight},
               {"RESULT"}});
  Table differences({{"COLLECTION"}, {"WHAT"}, {"ID"}, {"SHARD", kRight}, {"POSITION"}});
  bool some = false;
  for (const Verified& one : all) {
    const bool equal = one.report.Equal();
    table.AddRow({{one.collection},
                  {one.target},
                  {std::to_string(one.report.source.size())},
                  {std::to_string(one.report.SourceDocuments())},
                  {std::to_string(one.report.TargetDocuments())},
                  {std::to_string(one.report.Unreadable())},
                  {checksums ? std::to_string(one.report.differences) : "-"},
                  {equal ? "equal" : "different", equal ? Style::kGood : Style::kBad}});
    for (const pipeline::VerifyDifference& difference : one.report.named) {
      some = true;
      differences.AddRow({{one.collection},
                          {std::string(KindName(difference.kind)), Style::kWarn},
                          {difference.id},
                          {std::to_string(difference.shard)},
                          {difference.position}});
    }
  }
  table.Print(context.out, context.color);
  if (!some) return;
  context.out << '\n';
  differences.Print(context.out, context.color);
}

Result<int> Verify(const Options& options, Context& context) {
  const StopOnSignals signals("\n");
  const InterruptScope scope(signals.Token());
  std::vector<pipeline::LeftOut> left_out;
  MUSTER_ASSIGN(const auto all, VerifyAll(options, context, left_out, signals.Token()));
  const bool equal =
      std::all_of(all.begin(), all.end(), [](const Verified& one) { return one.report.Equal(); });
  if (context.json) {
    PrintJson(all, left_out, equal, context.out);
  } else {
    PrintTables(all, options.checksums, context);
    PrintLeftOut(context.out, left_out);
  }
  // Comparing nothing is not a success: the caller expected a match.
  if (all.empty()) return kNothingToDo;
  return equal ? kDone : kFailed;
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
  AddCollectionOptions(command, options->collections);
  command.AddOption("--transforms", options->transforms, "The transforms that were applied")
      .TypeName("FILE");
  command.Footer(
      "  muster verify csv:orders.csv sqlite:shop.db#orders\n"
      "  muster verify --checksums sqlite:shop.db postgresql://me@db/shop --json");
  command.Action(context, [options, &context] { return Verify(*options, context); });
}

}  // namespace muster::cli
