#include "cli/metadata_objects.h"

#include <algorithm>

#include "cli/table.h"
#include "core/json_fields.h"

namespace muster::cli {
namespace {

using metadata::Kind;
using metadata::Outcome;
using metadata::Reported;

// Of a whole cluster.
constexpr JsonLimits kLimits{.bytes = size_t{1} << 30, .depth = 500};

// The part that the source's URL selects; by default the whole cluster or snapshot.
bool NamesIndices(const Url& url) {
  return url.path.size() > 1 && url.scheme.starts_with("opensearch");
}

bool IsListed(const std::vector<pipeline::Collection>& collections, const std::string& name) {
  return std::any_of(collections.begin(), collections.end(),
                     [&](const pipeline::Collection& one) { return one.name == name; });
}

Status AddIndex(const pipeline::Collection& one, std::vector<metadata::SourceObject>& objects) {
  MUSTER_ASSIGN(Json body, ParseJson(one.metadata, "metadata of " + one.name, kLimits));
  for (metadata::SourceObject& there : objects) {
    if (there.object.kind != Kind::kDataStream || there.object.name != one.name) continue;
    if (one.refusal) there.refusal = one.refusal->ToString();
    // Includes the templates that create it.
    there.object.body = std::move(body);
    return {};
  }
  for (const char* member : {"cluster_version", "cluster_uuid"}) body.erase(member);
  objects.push_back({{Kind::kIndex, one.name, std::move(body)},
                     one.refusal ? one.refusal->ToString() : std::string()});
  return {};
}

Style StyleOf(Outcome outcome) {
  if (outcome == Outcome::kRefused || outcome == Outcome::kDifferent) return Style::kBad;
  return outcome == Outcome::kOk ? Style::kGood : Style::kNone;
}

}  // namespace

bool MetadataObjects::SelectsNothing() const {
  return selects && std::none_of(objects.begin(), objects.end(), [](const auto& one) {
           return one.object.kind == Kind::kIndex || one.object.kind == Kind::kDataStream;
         });
}

Result<MetadataObjects> ReadMetadataObjects(pipeline::Source& source, const Url& url,
                                            const CollectionPatterns& patterns, bool pipelines) {
  MetadataObjects all;
  MUSTER_ASSIGN(const auto allowed, FilterOf(patterns));
  all.selects = !patterns.include.empty() || !patterns.exclude.empty() || NamesIndices(url) ||
                !url.fragment.empty();
  MUSTER_ASSIGN(const std::string text, source.GlobalMetadata());
  MUSTER_ASSIGN(const Json global, ParseJson(text, "metadata of the source", kLimits));
  if (!global.contains("cluster_version")) {
    return Error{Code::kInvalid, "the source is neither a search cluster nor a snapshot of one",
                 "its URL begins with opensearch+https: or snapshot+file:, for example"};
  }
  all.from = metadata::ClusterVersion::Parse(TextIn(global, "cluster_version"));
  MUSTER_ASSIGN(const auto collections, source.Collections());
  all.objects = metadata::GlobalObjects(global, pipelines);
  std::erase_if(all.objects, [&](const metadata::SourceObject& one) {
    const bool is_index = one.object.kind == Kind::kIndex;
    if (!is_index && one.object.kind != Kind::kDataStream) return false;
    const bool is_listed = IsListed(collections, one.object.name);
    return !allowed(one.object.name) || (is_index ? is_listed : all.selects && !is_listed);
  });
  for (const pipeline::Collection& one : collections) {
    if (!allowed(one.name)) continue;
    MUSTER_TRY(AddIndex(one, all.objects));
  }
  return all;
}

Json MetadataJson(const std::vector<Reported>& all) {
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
  return list;
}

void PrintMetadata(const std::vector<Reported>& all, Context& context) {
  Table table({{"KIND"}, {"NAME"}, {"OUTCOME"}, {"DETAIL"}});
  for (const Reported& one : all) {
    const Outcome outcome = one.verdict.outcome;
    table.AddRow({{std::string(metadata::kKinds.NameOf(one.kind))},
                  {one.name},
                  {std::string(metadata::kOutcomes.NameOf(outcome)), StyleOf(outcome)},
                  {one.verdict.Detail()}});
  }
  table.Print(context.out, context.color);
}

bool HasMetadataFailures(const std::vector<Reported>& all) {
  return std::any_of(all.begin(), all.end(), [](const Reported& one) {
    return one.verdict.outcome == Outcome::kRefused || one.verdict.outcome == Outcome::kDifferent;
  });
}

}  // namespace muster::cli
