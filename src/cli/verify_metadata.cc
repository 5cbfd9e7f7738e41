#include "cli/verify_metadata.h"

#include <utility>

#include "cli/metadata_objects.h"
#include "core/url.h"
#include "net/opensearch.h"

namespace muster::cli {
namespace {

bool IsCluster(const Url& url) { return url.scheme.starts_with("opensearch"); }

}  // namespace

Result<std::optional<std::vector<metadata::Reported>>> CompareMetadata(const MetadataSides& sides,
                                                                       Env& env,
                                                                       std::stop_token stop) {
  MUSTER_ASSIGN(const Url from, ParseUrl(sides.source_url));
  MUSTER_ASSIGN(const Url to, ParseUrl(sides.sink_url));
  const bool is_source = IsCluster(from) || from.scheme.starts_with("snapshot");
  // A single index has a name of its own.
  if (!is_source || !IsCluster(to) || to.path.size() > 1 || from.Param("type")) return std::nullopt;
  MUSTER_ASSIGN(const metadata::RuleSet rules, metadata::RuleSet::BuiltIn());
  MUSTER_ASSIGN(MetadataObjects objects,
                ReadMetadataObjects(sides.source, from, sides.collections, /*pipelines=*/false));
  MUSTER_ASSIGN(auto endpoint, net::OpenSearchEndpoint::FromUrl(
                                   to, {"gzip", "pipeline", "page_bytes", "pruned_source"}));
  net::OpenSearchClient client(std::move(endpoint), env);
  MUSTER_ASSIGN(auto version, metadata::VersionOf(client));
  metadata::Target target(client, env, version);
  metadata::Job job(target, rules, rules, objects.from, {.selects = objects.selects});
  const auto no_samples = [](const std::string&) -> Result<std::vector<metadata::Sample>> {
    return std::vector<metadata::Sample>();
  };
  MUSTER_ASSIGN(auto all, job.Run(
                              metadata::Mode::kDiff, std::move(objects.objects), no_samples,
                              [](const metadata::Reported&) {}, stop));
  return std::optional(std::move(all));
}

}  // namespace muster::cli
