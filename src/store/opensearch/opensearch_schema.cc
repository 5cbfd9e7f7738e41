#include "store/opensearch/opensearch_schema.h"

#include <cstdio>

#include "core/schema_version.h"

namespace muster::store {
namespace {

constexpr const char* kSchemaName = net::kOpenSearchStoreMark;

std::string AliasOf(const std::string& space) { return space + "_records"; }

// One shard: a store's records are few and small, and one shard is the cheapest to search. A
// replica as soon as there is a node for it. Refreshed only on request: an idle store costs
// nothing. Fields that are never searched are not indexed.
Json IndexFor(const std::string& space, const std::string& id) {
  const Json keyword{{"type", "keyword"}};
  const Json number{{"type", "long"}};
  const Json only_kept{{"type", "keyword"}, {"index", false}, {"doc_values", false}};
  return Json{
      {"settings",
       {{"index",
         {{"number_of_shards", 1},
          {"auto_expand_replicas", "0-1"},
          {"refresh_interval", "-1"},
          // The cluster's templates must not have documents of a store changed.
          {"default_pipeline", "_none"},
          {"final_pipeline", "_none"},
          {"translog", {{"durability", "request"}}}}}}},
      {"mappings",
       {{"dynamic", "strict"},
        {"_meta", {{kSchemaName, kOpenSearchSchemaVersion}}},
        {"properties",
         {{"kind", keyword},
          {"queue", keyword},
          {"key", keyword},
          {"due", number},
          {"ready", number},
          {"owner", keyword},
          {"epoch", number},
          {"attempt", number},
          {"claim_id", keyword},
          {"write_id", only_kept},
          {"body", {{"type", "object"}, {"enabled", false}}}}}}},
      {"aliases", {{AliasOf(space), Json::object()}, {AliasOf(space) + "-" + id, Json::object()}}}};
}

Result<OpenSearchIndex> IndexOf(const std::string& space, const std::string& name,
                                const Json& described) {
  OpenSearchIndex index{.name = name};
  const Json& aliases = MemberIn(described, "aliases");
  for (const auto& [alias, details] : aliases.items()) {
    if (alias.starts_with(AliasOf(space) + "-")) index.alias = alias;
  }
  const Json& meta = MemberIn(MemberIn(described, "mappings"), "_meta");
  index.schema_version = static_cast<int>(NumberIn(meta, kSchemaName));
  if (index.schema_version == 0 || index.alias.empty()) {
    return Error{Code::kIncompatible, "index " + name + " is not a muster store",
                 "use another namespace"};
  }
  if (index.schema_version > kOpenSearchSchemaVersion) {
    return NewerSchema("index " + name, "namespace '" + space + "'", index.schema_version,
                       kOpenSearchSchemaVersion);
  }
  const Json& source = MemberIn(MemberIn(described, "mappings"), "_source");
  const bool loses_fields = MemberIn(source, "enabled") == false ||
                            !MemberIn(source, "excludes").empty() ||
                            !MemberIn(source, "includes").empty();
  if (loses_fields) {
    return Error{Code::kIncompatible,
                 "index " + name +
                     " does not keep all fields of its documents: a template of the "
                     "cluster has given it the _source " +
                     ToJsonText(source),
                 "change that template, or use another namespace, and delete the index"};
  }
  const Json& settings = MemberIn(MemberIn(described, "settings"), "index");
  index.reads_primaries = TextIn(MemberIn(settings, "replication"), "type") == "SEGMENT";
  const Json& blocks = MemberIn(settings, "blocks");
  for (const char* block : {"read_only", "read_only_allow_delete", "write"}) {
    index.blocked = index.blocked || TextIn(blocks, block) == "true";
  }
  index.shards = TextIn(settings, "number_of_shards");
  index.replicas = TextIn(settings, "number_of_replicas");
  index.refresh_interval = TextIn(settings, "refresh_interval");
  index.durability = TextIn(MemberIn(settings, "translog"), "durability");
  return index;
}

}  // namespace

Result<OpenSearchServerInfo> ReadOpenSearchServer(OpenSearchCluster& client) {
  MUSTER_ASSIGN(const Json root, client.Call({.target = "/"}));
  const Json& version = MemberIn(root, "version");
  OpenSearchServerInfo info;
  info.distribution =
      TextIn(version, "distribution") == "opensearch" ? "OpenSearch" : "Elasticsearch";
  info.version = TextIn(version, "number");
  int major = 0;
  int minor = 0;
  if (std::sscanf(info.version.c_str(), "%d.%d", &major, &minor) != 2) {
    return Error{Code::kInvalid, client.endpoint().base_url + " does not respond like OpenSearch",
                 "check the host, port and path in the store's URL"};
  }
  const bool too_old =
      info.distribution == "Elasticsearch" && (major < 7 || (major == 7 && minor < 10));
  if (too_old) {
    return Error{Code::kIncompatible, "Elasticsearch " + info.version + " is too old for muster",
                 "use Elasticsearch 7.10 or later, or any OpenSearch"};
  }
  return info;
}

Result<std::optional<OpenSearchIndex>> FindOpenSearchIndex(OpenSearchCluster& client,
                                                           const std::string& space) {
  const ClusterRequest request{.target = "/" + AliasOf(space)};
  MUSTER_ASSIGN(const ClusterAnswer answer, client.Send(request));
  if (answer.status == 404 && answer.ErrorType() == "index_not_found_exception") {
    return std::optional<OpenSearchIndex>{};
  }
  if (answer.status >= 300 || !answer.body.is_object()) {
    return RefusalOf(answer.status, MemberIn(answer.body, "error"), false);
  }
  if (answer.body.size() != 1) {
    return Error{
        Code::kCorrupt,
        "alias " + AliasOf(space) + " points to " + std::to_string(answer.body.size()) + " indices",
        "point it only to the store's index"};
  }
  const auto& [name, only] = answer.body.items().front();
  MUSTER_ASSIGN(OpenSearchIndex index, IndexOf(space, name, only));
  return std::optional(std::move(index));
}

Result<OpenSearchIndex> OpenOpenSearchIndex(OpenSearchCluster& client, const std::string& space,
                                            Env& env) {
  MUSTER_ASSIGN(std::optional<OpenSearchIndex> found, FindOpenSearchIndex(client, space));
  if (found) return *std::move(found);
  // The name is fixed, so that of several concurrent creators one wins.
  const std::string name = AliasOf(space) + "-000001";
  const std::string id = env.NewId().substr(0, 12);
  MUSTER_ASSIGN(const ClusterAnswer answer, client.Send({.method = "PUT",
                                                         .target = "/" + name,
                                                         .body = ToJsonText(IndexFor(space, id)),
                                                         .writes = true}));
  if (answer.status >= 300 && answer.ErrorType() != "resource_already_exists_exception") {
    return RefusalOf(answer.status, MemberIn(answer.body, "error"), true)
        .Within("index " + name + " cannot be created");
  }
  MUSTER_ASSIGN(found, FindOpenSearchIndex(client, space));
  if (found) return *std::move(found);
  return Error{Code::kCorrupt, "index " + name + " has lost its alias " + AliasOf(space),
               "add the alias again by POST _aliases, or delete the index to start over"};
}

}  // namespace muster::store
