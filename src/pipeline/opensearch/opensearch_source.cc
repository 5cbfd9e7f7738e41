#include "pipeline/opensearch/opensearch_source.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "core/json.h"
#include "core/json_fields.h"
#include "core/log.h"
#include "metadata/metadata.h"
#include "net/opensearch.h"
#include "pipeline/opensearch/data_streams.h"
#include "pipeline/opensearch/index_pattern.h"
#include "pipeline/opensearch/opensearch_global.h"
#include "pipeline/opensearch/opensearch_hits.h"
#include "pipeline/opensearch/opensearch_listing.h"
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
                   int64_t page_bytes, bool pruned)
      : client_(std::move(endpoint), env),
        env_(env),
        pattern_(std::move(pattern)),
        page_bytes_(page_bytes),
        pruned_(pruned) {}

  bool KeepsTypes() const override { return true; }
  bool KeepsRouting() const override { return true; }

  Result<std::vector<Collection>> Collections() override {
    MUSTER_ASSIGN(const std::vector<Listed> listed, List());
    MUSTER_ASSIGN(const Json about, AboutCluster(client_, env_));
    MUSTER_ASSIGN(const std::string cluster, ClusterUuidIn(client_, about));
    const std::string version = metadata::ClusterVersion::FromRoot(about).ToString();
    std::optional<Json> templates;
    std::vector<Collection> collections;
    for (const Listed& one : listed) {
      Json metadata = one.metadata;
      // By it a sink recognises aliases that are in use on its own cluster.
      if (!cluster.empty() && metadata.is_object()) metadata["cluster_uuid"] = cluster;
      if (!version.empty() && metadata.is_object()) metadata["cluster_version"] = version;
      if (one.is_stream && !one.refusal) {
        if (!templates) {
          MUSTER_ASSIGN(templates, TemplatesOf(client_, env_));
        }
        metadata::AddStreamTemplates(*templates, one.name, metadata);
      }
      collections.push_back({one.name, ToJsonText(metadata), one.refusal});
      if (one.refusal) continue;
      if (const auto alias = pattern_.PartialAlias(one.name, MemberIn(metadata, "aliases"))) {
        collections.back().refusal = IsPartial(Place(), one.name, *alias);
      }
    }
    return collections;
  }

  Result<std::vector<LeftOut>> Unlisted() override { return Listing().Unlisted(); }

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

  Result<std::string> GlobalMetadata() override {
    MUSTER_ASSIGN(const Json about, AboutCluster(client_, env_));
    MUSTER_ASSIGN(const Json metadata,
                  GlobalMetadataOf(client_, env_, metadata::ClusterVersion::FromRoot(about),
                                   /*is_whole=*/pattern_.IsAll()));
    return ToJsonText(metadata);
  }

  Result<std::vector<Partition>> Partitions(const std::string& collection) override {
    // First: if the index is re-created from now on, its readers notice.
    MUSTER_ASSIGN(const IndexState state, shards_.Describe(collection));
    std::vector<Partition> partitions;
    MUSTER_ASSIGN(const bool is_index, IsIndex(collection, state));
    if (is_index) {
      MUSTER_TRY(AddPartitions(collection, state, partitions));
      return partitions;
    }
    MUSTER_ASSIGN(const std::vector<std::string> indices, BackingIndices(collection));
    const std::vector<int> first = FirstShardsOf(indices);
    for (size_t i = 0; i < indices.size(); ++i) {
      std::vector<Partition> of_index;
      MUSTER_ASSIGN(const IndexState backing, shards_.Describe(indices[i]));
      MUSTER_TRY(AddPartitions(indices[i], backing, of_index));
      for (Partition& partition : of_index) {
        if (partition.part == kById) return HasNoNumbers(collection, indices[i]);
        partition.collection = collection;
        partition.part = indices[i];
        partition.shard += first[i];
        partitions.push_back(std::move(partition));
      }
    }
    return partitions;
  }

  Result<std::optional<int64_t>> CountAgain(const std::vector<Partition>& partitions) override {
    if (partitions.empty()) return std::nullopt;
    const std::string& collection = partitions.front().collection;
    ByIndex by_index;
    for (const Partition& one : partitions) by_index[IndexOf(one)].push_back(one);
    if (IndexOf(partitions.front()) != collection) {
      MUSTER_ASSIGN(const bool is_same, IsStillOf(collection, by_index));
      if (!is_same) return std::nullopt;
    }
    int64_t all = 0;
    for (const auto& [index, ones] : by_index) {
      MUSTER_ASSIGN(const std::optional<int64_t> count, CountIndexAgain(index, ones));
      if (!count) return std::nullopt;
      all += *count;
    }
    return all;
  }

  Result<std::unique_ptr<Reader>> Read(const Partition& partition, const std::string& position,
                                       std::stop_token stop) override {
    const std::string index = IndexOf(partition);
    const auto state = shards_.CheckUuid(index, partition.mark, stop);
    if (!state) return IsGone(partition.collection, index, state.error());
    const ShardPlace place{.index = index,
                           .uuid = partition.mark,
                           .shard = index == partition.collection
                                        ? partition.shard
                                        : partition.shard % kShardsPerIndex,
                           .is_frozen = state->is_frozen};
    if (partition.part == kById) {
      MUSTER_ASSIGN(const std::string field, IdField(index, stop));
      return NewIdReader(client_, env_, place, field, position, std::move(stop));
    }
    MUSTER_ASSIGN(const int64_t begin, SeqNoOf(partition.begin, 0));
    MUSTER_ASSIGN(const int64_t from, SeqNoOf(position, begin));
    if (partition.follows) {
      return NewFollowingReader(client_, env_, place, from, std::move(stop));
    }
    MUSTER_ASSIGN(const int64_t end, SeqNoOf(partition.end, INT64_MAX / 2));
    const SeqNoRange range{.begin = from, .end = end, .page_bytes = page_bytes_};
    return NewRangeReader(client_, env_, place, range, std::move(stop));
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
  using Listed = OpenSearchListing::Listed;

  static constexpr const char* kById = "by_id";

  // The index that a partition is of: the collection or, of a data stream, a backing index.
  static std::string IndexOf(const Partition& partition) {
    const bool is_backing = !partition.part.empty() && partition.part != kById;
    return is_backing ? partition.part : partition.collection;
  }

  OpenSearchListing Listing() { return {client_, env_, pattern_, pruned_}; }
  Result<std::vector<Listed>> List() { return Listing().List(); }

  // Settings say it, to a user who may see them.
  Result<bool> IsIndex(const std::string& collection, const IndexState& state) {
    if (!state.is_index || !state.uuid.empty()) return state.is_index;
    MUSTER_ASSIGN(const DataStreams streams, AskForDataStreams(client_, env_, collection));
    return !streams.contains(collection);
  }

  // Of a data stream, the oldest first.
  Result<std::vector<std::string>> BackingIndices(const std::string& stream) {
    MUSTER_ASSIGN(const DataStreams streams, AskForDataStreams(client_, env_, stream));
    const auto found = streams.find(stream);
    if (found != streams.end()) return found->second.indices;
    return Error{Code::kNotFound, Place() + " does not show data stream '" + stream + "'",
                 "the user needs the right to see it (GET /_data_stream/" + stream + ")"};
  }

  using ByIndex = std::map<std::string, std::vector<Partition>>;

  // Whether a data stream has the indices that were read. Says what is different.
  Result<bool> IsStillOf(const std::string& stream, const ByIndex& read) {
    MUSTER_ASSIGN(const std::vector<std::string> now, BackingIndices(stream));
    bool is_same = true;
    if (!std::all_of(now.begin(), now.end(),
                     [&](const std::string& index) { return read.contains(index); })) {
      Log(Level::kWarning, "a data stream has had a rollover: its newest documents are not read",
          {{"data_stream", stream}});
      is_same = false;
    }
    for (const auto& [index, partitions] : read) {
      if (std::find(now.begin(), now.end(), index) != now.end()) {
        MUSTER_TRY(shards_.CheckUuid(index, partitions.front().mark));
        continue;
      }
      Log(Level::kWarning,
          "an index of a data stream was deleted after it was read: its documents are not counted "
          "again",
          {{"data_stream", stream}, {"index", index}});
      is_same = false;
    }
    return is_same;
  }

  // What retention deletes before it was read.
  Error IsGone(const std::string& collection, const std::string& index, const Error& error) const {
    if (error.code != Code::kNotFound || index == collection) return error;
    return Error{Code::kNotFound,
                 Place() + ": index " + index + " of data stream " + collection +
                     " was deleted before all of it was read",
                 "what is not in the target cannot be migrated any more. To migrate the stream's "
                 "other indices, start over ('muster work reset' for a run of workers)"};
  }

  Error HasNoNumbers(const std::string& stream, const std::string& index) const {
    return Error{Code::kIncompatible,
                 Place() + ": index " + index + " of data stream " + stream +
                     " has documents without sequence numbers, from before Elasticsearch 6",
                 "take a snapshot and migrate that: snapshot+file:… or snapshot+s3:…"};
  }

  // Those of one index.
  Status AddPartitions(const std::string& index, const IndexState& state,
                       std::vector<Partition>& partitions) {
    MUSTER_ASSIGN(const auto shards, shards_.Of(index));
    MUSTER_TRY(shards_.Refresh(index));
    MUSTER_ASSIGN(const DocumentCount counted, shards_.Count(index, state));
    // A shard that came up since is not listed.
    if (counted.shards != shards.size()) {
      return shards_.Unavailable(index, "only " + std::to_string(shards.size()) + " of " +
                                            std::to_string(counted.shards) +
                                            " shards were started");
    }
    MUSTER_ASSIGN(const bool by_id, shards_.HasUnnumbered(index, state, shards));
    int64_t with_nested = 0;
    for (const auto& [number, shard] : shards) with_nested += shard.documents;
    for (const auto& [number, shard] : shards) {
      Partition partition{.collection = index, .shard = number, .mark = state.uuid};
      partition.documents = shard.documents;
      if (counted.documents != with_nested) {
        MUSTER_ASSIGN(const DocumentCount of_shard, shards_.Count(index, state, number));
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
      partitions.push_back({.collection = index,
                            .shard = number,
                            .begin = partition.end,
                            .documents = 0,
                            .bytes = 0,
                            .follows = true,
                            .mark = state.uuid});
    }
    return {};
  }

  Result<std::optional<int64_t>> CountIndexAgain(const std::string& index,
                                                 const std::vector<Partition>& partitions) {
    MUSTER_ASSIGN(const IndexState state, shards_.Describe(index));
    MUSTER_TRY(shards_.Refresh(index));
    MUSTER_ASSIGN(const DocumentCount counted, shards_.Count(index, state));
    MUSTER_ASSIGN(const auto shards, shards_.Of(index));
    // Last: all of the above is about this index.
    MUSTER_TRY(shards_.CheckUuid(index, partitions.front().mark));
    int64_t by_id = 0;
    for (const Partition& partition : partitions) {
      if (partition.part == kById) by_id += partition.documents.value_or(0);
      if (!partition.follows) continue;
      const bool is_backing = index != partition.collection;
      const auto shard =
          shards.find(is_backing ? partition.shard % kShardsPerIndex : partition.shard);
      MUSTER_ASSIGN(const int64_t begin, SeqNoOf(partition.begin, 0));
      if (shard == shards.end() || shard->second.last + 1 != begin) return HasChanged(index);
    }
    if (partitions.front().part == kById && by_id != counted.documents) return HasChanged(index);
    return counted.documents;
  }

  // No count can be expected of what was read.
  static std::optional<int64_t> HasChanged(const std::string& index) {
    Log(Level::kWarning,
        "the index has changed since it was read: its own count is not compared with what was read",
        {{"index", index}});
    return std::nullopt;
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

  net::OpenSearchClient client_;
  Env& env_;
  OpenSearchTables tables_{client_, env_};
  OpenSearchShards shards_{client_, env_};
  const IndexPattern pattern_;
  const int64_t page_bytes_;
  const bool pruned_;
};

}  // namespace

Result<std::unique_ptr<Source>> OpenOpenSearchSource(const Url& url, Env& env) {
  MUSTER_ASSIGN(net::OpenSearchEndpoint endpoint,
                net::OpenSearchEndpoint::FromUrl(url, {"page_bytes", "pruned_source"}));
  int64_t page_bytes = kDefaultPageBytes;
  if (const auto text = url.Param("page_bytes")) {
    const char* const end = text->data() + text->size();
    const auto [stop, problem] = std::from_chars(text->data(), end, page_bytes);
    if (problem != std::errc() || stop != end || page_bytes < 1 ||
        page_bytes > (int64_t{1} << 30)) {
      return Error{Code::kInvalid, "page_bytes=" + *text + " is not a number of bytes"};
    }
  }
  const std::string pruned = url.Param("pruned_source").value_or("false");
  if (pruned != "true" && pruned != "false") {
    return Error{Code::kInvalid, "pruned_source=" + pruned + " is neither true nor false"};
  }
  std::string pattern = url.path.size() > 1 ? url.path.substr(1) : "";
  return std::make_unique<OpenSearchSource>(std::move(endpoint), env, std::move(pattern),
                                            page_bytes, pruned == "true");
}

}  // namespace muster::pipeline
