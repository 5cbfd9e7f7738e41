#include "pipeline/snapshot/snapshot_source.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "core/json.h"
#include "core/json_fields.h"
#include "lucene/lucene.h"
#include "metadata/metadata.h"
#include "net/s3.h"
#include "pipeline/opensearch/index_pattern.h"
#include "pipeline/snapshot/snapshot_parts.h"
#include "pipeline/snapshot/snapshot_reader.h"

namespace muster::pipeline {
namespace {

using lucene::BackingIndices;
using lucene::Repository;
using lucene::ShardDirectory;
using lucene::Snapshot;
using lucene::SnapshotIndex;

// Which part of a snapshot is read.
struct Selection {
  Snapshot snapshot;
  std::optional<Snapshot> since;  // only changes since then
  std::string indices;            // a pattern; empty: all
  SnapshotChoice documents;
};

// Deletes count as slightly older than writes: with a versioned sink, a late delete must not remove
// a document that was written again since.
int64_t DeleteVersion(const Snapshot& snapshot) { return 2 * snapshot.start_ms; }
int64_t WriteVersion(const Snapshot& snapshot) { return 2 * snapshot.start_ms + 1; }

int64_t BytesOf(const ShardDirectory& directory) {
  int64_t bytes = 0;
  for (const auto& [name, file] : directory.files()) bytes += static_cast<int64_t>(file.length);
  return bytes;
}

class SnapshotSource : public Source {
 public:
  SnapshotSource(Repository repository, Selection selection)
      : repository_(std::move(repository)),
        snapshot_(std::move(selection.snapshot)),
        since_(std::move(selection.since)),
        pattern_(std::move(selection.indices)),
        documents_(std::move(selection.documents)) {}

  bool KeepsTypes() const override { return true; }
  bool KeepsRouting() const override { return true; }
  bool HasDeletes() const override { return since_.has_value(); }

  Result<std::vector<Collection>> Collections() override {
    std::vector<Collection> collections;
    for (const std::string& name : snapshot_.indices) {
      if (pattern_.IsAll() ? name.starts_with('.') : !pattern_.Names(name)) continue;
      const auto index = repository_.ReadIndex(snapshot_, name);
      if (!index && IsTransient(index.error().code)) return index.error();
      if (!index) {
        collections.push_back({.name = name, .refusal = index.error()});
        continue;
      }
      if (pattern_.IsAll() && !WhyLeftOut(*index).empty()) continue;
      collections.push_back({.name = name, .metadata = ToJsonText(MetadataOf(*index))});
      if (const Status readable = CheckReadable(*index); !readable) {
        collections.back().refusal = readable.error();
      }
    }
    if (collections.empty() || pattern_.IsAll()) MUSTER_TRY(AddDataStreams(collections));
    if (collections.empty() && !pattern_.IsAll()) {
      MUSTER_TRY(repository_.ReadIndex(snapshot_, pattern_.text()));  // fails if it is missing
    }
    std::sort(collections.begin(), collections.end(),
              [](const Collection& a, const Collection& b) { return a.name < b.name; });
    return collections;
  }

  Result<std::vector<LeftOut>> Unlisted() override {
    std::vector<LeftOut> left_out;
    if (!pattern_.IsAll()) return left_out;
    MUSTER_ASSIGN(const BackingIndices streams, Streams());
    for (const std::string& name : snapshot_.indices) {
      const auto stream = streams.find(name);
      // Listed as what it is part of.
      if (stream != streams.end() && !stream->second.starts_with('.')) continue;
      MUSTER_ASSIGN(const std::string why, Why(name));
      if (!why.empty()) left_out.push_back({name, why});
    }
    return left_out;
  }

  Result<std::string> GlobalMetadata() override {
    MUSTER_ASSIGN(const Json global, repository_.ReadGlobalMetadata(snapshot_));
    Json metadata{{"cluster_version", Version()}};
    // Each kind is wrapped under its own name, but for the oldest ones.
    for (const auto& [ours, outer, inner] : {
             std::tuple{"templates", "templates", ""},
             std::tuple{"index_templates", "index_template", "index_template"},
             std::tuple{"component_templates", "component_template", "component_template"},
             std::tuple{"data_streams", "data_stream", "data_stream"},
             std::tuple{"policies", "index_lifecycle", "policies"},
         }) {
      const Json& kind = MemberIn(global, outer);
      for (const auto& [name, body] : (kind.contains(inner) ? kind[inner] : kind).items()) {
        if (body.is_object()) metadata[ours][name] = body;
      }
    }
    MUSTER_TRY(AddHidden(metadata));
    for (const Json& pipeline : MemberIn(MemberIn(global, "ingest"), "pipeline")) {
      const std::string id = TextIn(pipeline, "id");
      if (!id.empty()) metadata["pipelines"][id] = MemberIn(pipeline, "config");
    }
    return ToJsonText(metadata);
  }

  Result<std::vector<Partition>> Partitions(const std::string& collection) override {
    MUSTER_ASSIGN(const bool as_one, IsOnePartition(collection));
    MUSTER_ASSIGN(const SnapshotIndex index, ReadIndex(collection));
    std::vector<Partition> partitions;
    for (int shard = 0; shard < (as_one ? 1 : index.shards); ++shard) {
      Partition partition{.collection = collection, .shard = shard, .part = PartName(as_one)};
      MUSTER_ASSIGN(const std::vector<SnapshotLeg> legs, LegsOf(partition));
      uint64_t end = 0;
      int64_t bytes = 0;
      for (const SnapshotLeg& leg : legs) {
        end += leg.end;
        bytes += BytesOf(*leg.directory);
      }
      partition.begin = SnapshotPosition(0);
      partition.end = SnapshotPosition(end);
      partition.bytes = bytes;
      partitions.push_back(std::move(partition));
    }
    return partitions;
  }

  Result<std::unique_ptr<Reader>> Read(const Partition& partition, const std::string& position,
                                       std::stop_token) override {
    if (partition.part != PartName(true) && partition.part != PartName(false)) {
      return Error{
          Code::kConflict,
          repository_.name() + ": the run was started with a snapshot other than " + snapshot_.name,
          "name the snapshot in the URL, with snapshot=NAME"};
    }
    MUSTER_ASSIGN(std::vector<SnapshotLeg> legs, LegsOf(partition));
    return SnapshotReader::Open(std::move(legs), partition, position, documents_);
  }

  std::optional<double> FractionBefore(const Partition& partition,
                                       const std::string& position) override {
    const auto begin = SnapshotNumber(partition.begin, 0);
    const auto end = SnapshotNumber(partition.end, 0);
    if (!begin || !end || *end <= *begin) return std::nullopt;
    const auto at = SnapshotNumber(position, *begin);
    if (!at || *at < *begin) return std::nullopt;
    return std::min(1.0, static_cast<double>(*at - *begin) / static_cast<double>(*end - *begin));
  }

 private:
  Result<BackingIndices> Streams() const {
    MUSTER_ASSIGN(const Json global, repository_.ReadGlobalMetadata(snapshot_));
    return lucene::BackingIndicesOf(global);
  }

  // Those that are selected, each with the reason why it cannot be read.
  Status AddDataStreams(std::vector<Collection>& collections) const {
    MUSTER_ASSIGN(const BackingIndices streams, Streams());
    std::set<std::string> names;
    for (const std::string& index : snapshot_.indices) {
      const auto found = streams.find(index);
      if (found == streams.end() || !names.insert(found->second).second) continue;
      const std::string& name = found->second;
      if (pattern_.IsAll() ? !name.starts_with('.') : pattern_.Names(name)) {
        collections.push_back({.name = name, .refusal = IsDataStream(name)});
      }
    }
    return {};
  }

  Error IsDataStream(const std::string& name) const {
    return Error{
        Code::kIncompatible,
        repository_.name() + ": " + name + " is a data stream, which cannot be migrated whole",
        "migrate its backing indices as indices, with #.ds-" + name +
            "-* at the end of the source's URL, or leave it out with --exclude " + name};
  }

  // Why an index is not listed; empty: it is, or it cannot be read, which is said there.
  Result<std::string> Why(const std::string& name) const {
    const auto index = repository_.ReadIndex(snapshot_, name);
    if (index) return WhyLeftOut(*index);
    if (IsTransient(index.error().code)) return index.error();
    return name.starts_with('.') ? index.error().message : std::string();
  }

  Status AddHidden(Json& metadata) {
    MUSTER_ASSIGN(const auto left_out, Unlisted());
    for (const LeftOut& one : left_out) {
      if (!one.name.starts_with('.')) metadata["hidden"].push_back(one.name);
    }
    return {};
  }

  // An index whose documents can be read.
  Result<SnapshotIndex> ReadIndex(const std::string& name) {
    MUSTER_ASSIGN(SnapshotIndex index, repository_.ReadIndex(snapshot_, name));
    MUSTER_TRY(CheckReadable(index));
    return index;
  }

  Status CheckReadable(const SnapshotIndex& index) const {
    if (!index.refusal.empty()) {
      return Error{Code::kIncompatible,
                   repository_.name() + ": index " + index.name + ": " + index.refusal,
                   "leave it out with --exclude, and read it from a running cluster instead"};
    }
    const std::vector<std::string> types = TypesOf(index);
    const std::string& wanted = documents_.type;
    if (wanted.empty() ? types.size() > 1
                       : std::find(types.begin(), types.end(), wanted) == types.end()) {
      std::string all;
      for (const std::string& type : types) all += (all.empty() ? "" : ", ") + type;
      return Error{
          Code::kIncompatible,
          repository_.name() + ": index " + index.name + " has documents of the types " + all,
          "choose one with type=NAME: documents of two types may have the same id, so "
          "each type needs a target of its own"};
    }
    return {};
  }

  // Those that documents can have.
  static std::vector<std::string> TypesOf(const SnapshotIndex& index) {
    std::vector<std::string> types;
    for (const Json& mapping : index.mappings) {
      if (!mapping.is_object()) continue;
      for (const auto& [type, fields] : mapping.items()) {
        if (type != "_default_") types.push_back(type);
      }
    }
    return types;
  }

  // Identifies what is read, so that it is not confused with anything else.
  std::string PartName(bool as_one) const {
    if (!since_) return snapshot_.uuid;
    return since_->uuid + ".." + snapshot_.uuid + (as_one ? " as one" : "");
  }

  // The index in the earlier snapshot; none: no such index.
  Result<std::optional<SnapshotIndex>> ReadFormerIndex(const std::string& name) {
    if (!since_ ||
        std::find(since_->indices.begin(), since_->indices.end(), name) == since_->indices.end()) {
      return std::nullopt;
    }
    MUSTER_ASSIGN(SnapshotIndex index, repository_.ReadIndex(*since_, name));
    return index;
  }

  Result<std::shared_ptr<const ShardDirectory>> ReadShard(const Snapshot& snapshot,
                                                          const SnapshotIndex& index, int shard) {
    MUSTER_ASSIGN(ShardDirectory directory, repository_.ReadShard(snapshot, index, shard));
    return std::make_shared<const ShardDirectory>(std::move(directory));
  }

  // Whether a document may have moved to another shard, through different routing or a different
  // number of shards. Then the whole index is read in order, so that no shard deletes what another
  // has written.
  Result<bool> IsOnePartition(const std::string& collection) {
    MUSTER_ASSIGN(const std::optional<SnapshotIndex> former, ReadFormerIndex(collection));
    if (!former) return false;
    MUSTER_ASSIGN(const SnapshotIndex index, ReadIndex(collection));
    if (former->shards != index.shards) return true;
    for (int shard = 0; shard < index.shards; ++shard) {
      MUSTER_ASSIGN(const auto then, ReadShard(*since_, *former, shard));
      MUSTER_ASSIGN(const auto now, ReadShard(snapshot_, index, shard));
      for (const auto& directory : {then, now}) {
        MUSTER_ASSIGN(const auto reader, lucene::ShardReader::Open(*directory));
        MUSTER_ASSIGN(const bool has_routing, reader.HasRouting());
        if (has_routing) return true;
      }
    }
    return false;
  }

  // What a partition is read from, in order: deletes before writes.
  Result<std::vector<SnapshotLeg>> LegsOf(const Partition& partition) {
    MUSTER_ASSIGN(const SnapshotIndex index, ReadIndex(partition.collection));
    MUSTER_ASSIGN(const std::optional<SnapshotIndex> former, ReadFormerIndex(partition.collection));
    const bool as_one = since_ && partition.part == PartName(true);
    const int first = as_one ? 0 : partition.shard;
    const auto end = [&](const SnapshotIndex& of) { return as_one ? of.shards : first + 1; };
    std::map<int, std::shared_ptr<const ShardDirectory>> then;
    std::map<int, std::shared_ptr<const ShardDirectory>> now;
    for (int shard = first; shard < end(index); ++shard) {
      MUSTER_ASSIGN(now[shard], ReadShard(snapshot_, index, shard));
    }
    for (int shard = first; former && shard < end(*former); ++shard) {
      MUSTER_ASSIGN(then[shard], ReadShard(*since_, *former, shard));
    }
    std::vector<SnapshotLeg> legs;
    for (const auto& [shard, directory] : then) {
      legs.push_back({.directory = directory,
                      .without = now.contains(shard) ? now[shard] : nullptr,
                      .deletes = true,
                      .version = DeleteVersion(snapshot_)});
    }
    for (const auto& [shard, directory] : now) {
      legs.push_back({.directory = directory,
                      .without = then.contains(shard) ? then[shard] : nullptr,
                      .version = WriteVersion(snapshot_)});
    }
    for (SnapshotLeg& leg : legs) {
      MUSTER_ASSIGN(const auto reader, lucene::ShardReader::Open(*leg.directory));
      leg.end = reader.end();
    }
    return legs;
  }

  std::string Version() const {
    return metadata::ClusterVersion::FromId(snapshot_.version_id.value_or(0)).ToString();
  }

  Json MetadataOf(const SnapshotIndex& index) const {
    Json metadata{
        {"settings", index.settings}, {"aliases", index.aliases}, {"cluster_version", Version()}};
    Json& mappings = metadata["mappings"] = Json::object();
    const bool by_type = documents_.type.empty() && TypesOf(index).size() > 1;
    for (const Json& mapping : index.mappings) {
      if (!mapping.is_object()) continue;
      for (const auto& [type, fields] : mapping.items()) {
        const bool is_wanted =
            type != "_default_" && (documents_.type.empty() || documents_.type == type);
        if (!is_wanted || !fields.is_object()) continue;
        by_type ? void(mappings[type] = fields) : mappings.merge_patch(fields);
      }
    }
    return metadata;
  }

  const Repository repository_;
  const Snapshot snapshot_;
  const std::optional<Snapshot> since_;
  const IndexPattern pattern_;
  const SnapshotChoice documents_;
};

Result<std::unique_ptr<lucene::Blobs>> OpenBlobs(const Url& url, Env& env) {
  if (url.scheme == "snapshot+s3") {
    MUSTER_ASSIGN(const net::S3Location location, net::S3Location::FromUrl(url));
    return lucene::OpenBucket(location, env);
  }
  if (url.scheme != "snapshot+file" || !url.host.empty() || url.path.empty()) {
    return Error{Code::kInvalid, "the URL names no snapshot repository",
                 "write snapshot+file:///FOLDER#INDEX or snapshot+s3://BUCKET/PREFIX#INDEX"};
  }
  return lucene::OpenFolder(url.path);
}

Status CheckParameters(const Url& url) {
  std::set<std::string> known = {"snapshot", "since", "type", "recovery_source"};
  if (url.scheme == "snapshot+s3") known.insert({"region", "endpoint", "path_style"});
  for (const auto& [name, value] : url.query) {
    if (!known.contains(name)) {
      std::string all;
      for (const std::string& each : known) all += (all.empty() ? "" : ", ") + each;
      return Error{Code::kInvalid, "the URL has an unknown parameter '" + name + "'",
                   "known parameters: " + all};
    }
    if (name == "recovery_source" && value != "true" && value != "false") {
      return Error{Code::kInvalid, "recovery_source=" + value + " is neither true nor false"};
    }
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Source>> OpenSnapshotSource(const Url& url, Env& env) {
  MUSTER_TRY(CheckParameters(url));
  MUSTER_ASSIGN(auto blobs, OpenBlobs(url, env));
  MUSTER_ASSIGN(Repository repository, Repository::Open(std::move(blobs)));
  MUSTER_ASSIGN(Snapshot snapshot, ChooseSnapshot(repository, url.Param("snapshot").value_or("")));
  MUSTER_ASSIGN(std::optional<Snapshot> since,
                ChooseSince(repository, url.Param("since").value_or(""), snapshot));
  Selection selection{.snapshot = std::move(snapshot),
                      .since = std::move(since),
                      .indices = url.fragment,
                      .documents = {.type = url.Param("type").value_or(""),
                                    .recovery_source = url.Param("recovery_source") == "true"}};
  return std::make_unique<SnapshotSource>(std::move(repository), std::move(selection));
}

}  // namespace muster::pipeline
