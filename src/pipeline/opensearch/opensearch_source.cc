#include "pipeline/opensearch/opensearch_source.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "core/json.h"
#include "core/json_fields.h"
#include "metadata/metadata.h"
#include "net/opensearch.h"
#include "pipeline/opensearch/index_pattern.h"
#include "pipeline/opensearch/opensearch_hits.h"
#include "pipeline/opensearch/opensearch_readers.h"
#include "pipeline/opensearch/opensearch_refusals.h"
#include "pipeline/opensearch/opensearch_requests.h"
#include "pipeline/opensearch/opensearch_shards.h"
#include "pipeline/opensearch/opensearch_target.h"

namespace muster::pipeline {
namespace {

constexpr int64_t kDefaultPageBytes = 4 * 1024 * 1024;

class OpenSearchSource : public Source {
 public:
  OpenSearchSource(net::OpenSearchEndpoint endpoint, Env& env, std::string pattern,
                   int64_t page_bytes)
      : client_(std::move(endpoint), env),
        env_(env),
        pattern_(std::move(pattern)),
        page_bytes_(page_bytes) {}

  bool KeepsTypes() const override { return true; }
  bool KeepsRouting() const override { return true; }

  Result<std::vector<Collection>> Collections() override {
    MUSTER_ASSIGN(const std::vector<Listed> indices, List());
    MUSTER_ASSIGN(const Json about, AboutCluster(client_, env_));
    MUSTER_ASSIGN(const std::string cluster, ClusterUuidIn(client_, about));
    const std::string version = metadata::ClusterVersion::FromRoot(about).ToString();
    std::vector<Collection> collections;
    for (const Listed& one : indices) {
      Json metadata = one.metadata;
      // By it a sink recognises aliases that are in use on its own cluster.
      if (!cluster.empty() && metadata.is_object()) metadata["cluster_uuid"] = cluster;
      if (!version.empty() && metadata.is_object()) metadata["cluster_version"] = version;
      collections.push_back({one.name, ToJsonText(metadata), one.refusal});
      if (one.refusal) continue;
      if (const auto alias = pattern_.PartialAlias(one.name, MemberIn(metadata, "aliases"))) {
        collections.back().refusal = IsPartial(Place(), one.name, *alias);
      }
    }
    return collections;
  }

  // Names that are not listed are asked for once more, with all that wildcards can stand for.
  Result<std::vector<LeftOut>> Unlisted() override {
    MUSTER_ASSIGN(const std::vector<Listed> there, List());
    std::set<std::string> listed;
    for (const Listed& one : there) listed.insert(one.name);
    std::vector<LeftOut> left_out;
    const auto all = AskForJson(
        client_, env_,
        {.path = "/" + pattern_.Path() + "?expand_wildcards=all&filter_path=*.data_stream," +
                 "*.settings.index.uuid,*.settings.index.hidden,*.mappings._meta"});
    if (!all && IsTransient(all.error().code)) return all.error();
    if (!all || !all->is_object()) return left_out;
    for (const auto& [name, about] : all->items()) {
      if (listed.contains(name) || listed.contains(TextIn(about, "data_stream"))) continue;
      left_out.push_back({name, WhyUnlisted(name, about)});
    }
    std::sort(left_out.begin(), left_out.end(),
              [](const LeftOut& a, const LeftOut& b) { return a.name < b.name; });
    return left_out;
  }

  // A URL with an index, or an alias of one, names the target of all collections. What an alias
  // hides was written nevertheless.
  Result<std::optional<std::string>> TargetOf(const std::string& collection) override {
    MUSTER_ASSIGN(const std::vector<Listed> there, List());
    for (const Listed& one : there) {
      const bool is_only = !pattern_.IsAll() && there.size() == 1;
      if (!is_only && one.name != collection) continue;
      if (one.refusal) return *one.refusal;
      return one.name;
    }
    MUSTER_ASSIGN(const auto written,
                  OpenSearchTarget::Find(client_, pattern_.IsAll() ? collection : pattern_.text()));
    if (!written || written->index.empty()) return std::optional<std::string>();
    return written->index;
  }

  Result<std::string> TableId(const std::string& collection) override {
    const auto answer = AskForJson(client_, env_, OpenSearchTarget::Request(collection));
    if (answer) return tables_.IdOf(OpenSearchTarget::In(*answer, collection).uuid);
    if (IsTransient(answer.error().code)) return answer.error();
    return std::string();
  }

  // Optional: the version may lack it or the user may not read it, and the index itself has its
  // mappings. What the user may not read is named under "unreadable".
  Result<std::string> GlobalMetadata() override {
    MUSTER_ASSIGN(const Json about, AboutCluster(client_, env_));
    const auto version = metadata::ClusterVersion::FromRoot(about);
    Json metadata{{"cluster_version", version.ToString()}};
    MUSTER_TRY(AddList(metadata, "index_templates", "index_template", "/_index_template"));
    MUSTER_TRY(
        AddList(metadata, "component_templates", "component_template", "/_component_template"));
    MUSTER_TRY(AddList(metadata, "data_streams", "", "/_data_stream"));
    MUSTER_TRY(AddMap(metadata, "templates", "/_template"));
    MUSTER_TRY(AddMap(metadata, "pipelines", "/_ingest/pipeline"));
    if (version.engine == "elasticsearch") {
      MUSTER_TRY(AddMap(metadata, "policies", "/_ilm/policy"));
    }
    AddHidden(metadata);
    return ToJsonText(metadata);
  }

  Result<std::vector<Partition>> Partitions(const std::string& collection) override {
    // First: if the index is re-created from now on, its readers notice.
    MUSTER_ASSIGN(const std::string uuid, shards_.Uuid(collection));
    MUSTER_ASSIGN(const auto shards, shards_.Of(collection));
    MUSTER_TRY(shards_.Refresh(collection));
    MUSTER_ASSIGN(const DocumentCount counted, shards_.Count(collection));
    // A shard that came up since is not listed.
    if (counted.shards != shards.size()) {
      return shards_.Unavailable(collection, "only " + std::to_string(shards.size()) + " of " +
                                                 std::to_string(counted.shards) +
                                                 " shards were started");
    }
    MUSTER_ASSIGN(const bool by_id, shards_.HasUnnumbered(collection, shards));
    int64_t with_nested = 0;
    for (const auto& [number, shard] : shards) with_nested += shard.documents;
    std::vector<Partition> partitions;
    for (const auto& [number, shard] : shards) {
      Partition partition{.collection = collection, .shard = number, .mark = uuid};
      partition.documents = shard.documents;
      if (counted.documents != with_nested) {
        MUSTER_ASSIGN(const DocumentCount of_shard, shards_.Count(collection, number));
        partition.documents = of_shard.documents;
      }
      partition.bytes = shard.bytes;
      if (by_id) {
        partition.part = kById;
        partitions.push_back(std::move(partition));
        continue;
      }
      partition.begin = PositionOf(0);
      partition.end = PositionOf(shard.checkpoint + 1);
      // Before the end of a shard that was never written to there is nothing, not even a position.
      if (shard.checkpoint >= 0) partitions.push_back(partition);
      partitions.push_back({.collection = collection,
                            .shard = number,
                            .begin = partition.end,
                            .documents = 0,
                            .bytes = 0,
                            .follows = true,
                            .mark = uuid});
    }
    return partitions;
  }

  Result<std::optional<int64_t>> CountAgain(const std::vector<Partition>& partitions) override {
    if (partitions.empty()) return std::nullopt;
    const std::string& collection = partitions.front().collection;
    MUSTER_TRY(shards_.Refresh(collection));
    MUSTER_ASSIGN(const DocumentCount counted, shards_.Count(collection));
    MUSTER_ASSIGN(const auto shards, shards_.Of(collection));
    // Last: all of the above is about this index.
    MUSTER_TRY(shards_.CheckUuid(collection, partitions.front().mark));
    int64_t by_id = 0;
    for (const Partition& partition : partitions) {
      if (partition.part == kById) by_id += partition.documents.value_or(0);
      if (!partition.follows) continue;
      const auto shard = shards.find(partition.shard);
      MUSTER_ASSIGN(const int64_t begin, SeqNoOf(partition.begin, 0));
      if (shard == shards.end() || shard->second.last + 1 != begin) return std::nullopt;
    }
    if (partitions.front().part == kById && by_id != counted.documents) return std::nullopt;
    return counted.documents;
  }

  Result<std::unique_ptr<Reader>> Read(const Partition& partition, const std::string& position,
                                       std::stop_token stop) override {
    MUSTER_TRY(shards_.CheckUuid(partition.collection, partition.mark, stop));
    if (partition.part == kById) {
      MUSTER_ASSIGN(const std::string field, IdField(partition.collection, stop));
      return NewIdReader(client_, env_, partition, field, position, std::move(stop));
    }
    MUSTER_ASSIGN(const int64_t begin, SeqNoOf(partition.begin, 0));
    MUSTER_ASSIGN(const int64_t from, SeqNoOf(position, begin));
    if (partition.follows) {
      return NewFollowingReader(client_, env_, partition, from, std::move(stop));
    }
    MUSTER_ASSIGN(const int64_t end, SeqNoOf(partition.end, INT64_MAX / 2));
    const SeqNoRange range{.begin = from, .end = end, .page_bytes = page_bytes_};
    return NewRangeReader(client_, env_, partition, range, std::move(stop));
  }

  std::optional<double> FractionBefore(const Partition& partition,
                                       const std::string& position) override {
    if (partition.part == kById) return std::nullopt;
    const auto begin = SeqNoOf(partition.begin, 0);
    const auto end = SeqNoOf(partition.end, 0);
    if (!begin || !end || *end <= *begin) return std::nullopt;
    const auto at = SeqNoOf(position, *begin);
    if (!at) return std::nullopt;
    return std::clamp(static_cast<double>(*at - *begin) / static_cast<double>(*end - *begin), 0.0,
                      1.0);
  }

 private:
  static constexpr const char* kById = "by_id";

  struct Listed {
    std::string name;
    Json metadata = Json::object();
    std::optional<Error> refusal = {};
  };

  // What the pattern selects, by name, with its metadata.
  Result<std::vector<Listed>> List() {
    const std::string path = "/" + pattern_.Path();
    MUSTER_ASSIGN(const Json indices, AskForJson(client_, env_,
                                                 {.path = path + "?expand_wildcards=open",
                                                  .max_response_bytes = 512 * 1024 * 1024}));
    std::map<std::string, Listed> listed;
    const auto add = [&](Listed one) { listed.emplace(one.name, std::move(one)); };
    for (const auto& [name, metadata] : indices.items()) {
      const std::string stream = TextIn(metadata, "data_stream");
      if (pattern_.Selects(name, MemberIn(metadata, "aliases"))) {
        if (IsOurStore(metadata)) continue;
        add({name, metadata, RefusalOf(Place(), name, metadata)});
      } else if (!stream.empty() && pattern_.SelectsDataStream(stream)) {
        add({stream, Json::object(), IsDataStream(Place(), stream)});
      }
    }
    // Names are returned here too, open or not.
    const auto closed =
        AskForJson(client_, env_, {.path = path + "/_settings/index.uuid?expand_wildcards=closed"});
    if (!closed && IsTransient(closed.error().code)) return closed.error();
    if (closed) {
      for (const auto& [name, settings] : closed->items()) {
        if (indices.contains(name) || !pattern_.Selects(name, Json())) continue;
        add({name, Json::object(), IsClosed(Place(), name)});
      }
    }
    if (indices.empty() && listed.empty() && !pattern_.IsAll()) {
      return Error{Code::kNotFound, client_.Place() + " has no index '" + pattern_.text() + "'",
                   "list the indices with GET /_cat/indices"};
    }
    std::vector<Listed> all;
    for (auto& [name, one] : listed) all.push_back(std::move(one));
    return all;
  }

  std::string Place() const { return client_.Place(); }

  // The field to sort documents without sequence numbers by: always the same for an index, since
  // positions are its values. Such an index was created by Elasticsearch 5, which indexes type and
  // id as one, `_uid`, unless the index has a single type by its settings; then it is `_id`.
  // Elasticsearch 6 still reads such indices, and refuses to sort by the other field.
  Result<std::string> IdField(const std::string& collection, const std::stop_token& stop) {
    MUSTER_ASSIGN(const Json about, AskForJson(client_, env_, {.path = "/"}, stop));
    const std::string number = TextIn(MemberIn(about, "version"), "number");
    int major = 0;
    std::from_chars(number.data(), number.data() + number.size(), major);
    if (major >= 7) return std::string("_id");
    if (major >= 5) {
      const Json first{{"size", 1}, {"sort", {{{"_uid", "asc"}}}}, {"_source", false}};
      const auto sorted = Ask(client_, env_,
                              {.method = "POST",
                               .path = "/" + net::OpenSearchPath(collection) + "/_search",
                               .body = ToJsonText(first),
                               .writes = false},
                              stop);
      if (sorted) return std::string("_uid");
      if (sorted.error().code == Code::kInvalid) return std::string("_id");
      return sorted.error();
    }
    return Error{
        Code::kIncompatible,
        client_.Place() + " has version " + number + ", which cannot be read from a given position",
        "take a snapshot and migrate that: snapshot+file:… or snapshot+s3:…"};
  }

  // Objects of one kind; null: the cluster has no such kind, or the user may not see them.
  Result<Json> AskForKind(Json& metadata, const std::string& kind, const std::string& path) {
    auto answer = AskForJson(client_, env_, {.path = path});
    if (answer) return *std::move(answer);
    const Error& error = answer.error();
    if (IsTransient(error.code)) return error;
    if (error.code == Code::kPermission && !metadata::IsNoSuchApi(error)) {
      metadata["unreadable"][kind] = error.ToString();
    }
    return Json();
  }

  // [{"name", "index_template" or "component_template": …}] → {name: template}
  Status AddList(Json& metadata, const std::string& kind, const std::string& member,
                 const std::string& path) {
    MUSTER_ASSIGN(const Json answer, AskForKind(metadata, kind, path));
    for (const Json& entry : MemberIn(answer, kind)) {
      const std::string name = TextIn(entry, "name");
      const Json& body = member.empty() ? entry : MemberIn(entry, member);
      if (!name.empty() && body.is_object()) metadata[kind][name] = body;
    }
    return {};
  }

  // Hidden indices are read only by name. Old versions have none.
  void AddHidden(Json& metadata) {
    if (!pattern_.IsAll()) return;
    const auto answer = AskForJson(
        client_, env_, {.path = "/*/_settings/index.hidden?expand_wildcards=open,closed,hidden"});
    if (!answer || !answer->is_object()) return;
    for (const auto& [name, about] : answer->items()) {
      const Json& settings = MemberIn(MemberIn(about, "settings"), "index");
      if (!name.starts_with('.') && TextIn(settings, "hidden") == "true") {
        metadata["hidden"].push_back(name);
      }
    }
  }

  Status AddMap(Json& metadata, const std::string& kind, const std::string& path) {
    MUSTER_ASSIGN(const Json answer, AskForKind(metadata, kind, path));
    for (const auto& [name, body] : answer.items()) {
      if (body.is_object()) metadata[kind][name] = body;
    }
    return {};
  }

  net::OpenSearchClient client_;
  Env& env_;
  OpenSearchTables tables_{client_, env_};
  OpenSearchShards shards_{client_, env_};
  const IndexPattern pattern_;
  const int64_t page_bytes_;
};

}  // namespace

Result<std::unique_ptr<Source>> OpenOpenSearchSource(const Url& url, Env& env) {
  MUSTER_ASSIGN(net::OpenSearchEndpoint endpoint,
                net::OpenSearchEndpoint::FromUrl(url, {"page_bytes"}));
  int64_t page_bytes = kDefaultPageBytes;
  if (const auto text = url.Param("page_bytes")) {
    const char* const end = text->data() + text->size();
    const auto [stop, problem] = std::from_chars(text->data(), end, page_bytes);
    if (problem != std::errc() || stop != end || page_bytes < 1 ||
        page_bytes > (int64_t{1} << 30)) {
      return Error{Code::kInvalid, "page_bytes=" + *text + " is not a number of bytes"};
    }
  }
  std::string pattern = url.path.size() > 1 ? url.path.substr(1) : "";
  return std::make_unique<OpenSearchSource>(std::move(endpoint), env, std::move(pattern),
                                            page_bytes);
}

}  // namespace muster::pipeline
