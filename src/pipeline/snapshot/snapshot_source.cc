#include "pipeline/snapshot/snapshot_source.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "core/json.h"
#include "core/json_fields.h"
#include "lucene/lucene.h"
#include "metadata/metadata.h"
#include "pipeline/flow/left_out.h"
#include "pipeline/opensearch/data_streams.h"
#include "pipeline/opensearch/index_pattern.h"
#include "pipeline/snapshot/snapshot_metadata.h"
#include "pipeline/snapshot/snapshot_parts.h"
#include "pipeline/snapshot/snapshot_reader.h"
#include "pipeline/snapshot/snapshot_url.h"

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

// In a partition's part, between the snapshot and the backing index of a data stream.
constexpr const char* kOfIndex = " of ";

class SnapshotSource : public Source {
 public:
  SnapshotSource(Repository repository, Selection selection)
      : repository_(std::move(repository)),
        snapshot_(std::move(selection.snapshot)),
        since_(std::move(selection.since)),
        pattern_(std::move(selection.indices)),
        documents_(std::move(selection.documents)) {
    std::sort(sorted_indices_.begin(), sorted_indices_.end());
  }

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
      if (!WhyLeftOut(*index, !pattern_.IsAll()).empty()) continue;
      collections.push_back(
          {.name = name, .metadata = ToJsonText(MetadataOf(snapshot_, *index, documents_))});
      const Status readable = CheckReadable(repository_.name(), *index, documents_);
      const Status whole = readable ? CheckWhole(repository_.name(), *index, documents_) : readable;
      if (!whole) collections.back().refusal = whole.error();
    }
    std::sort(collections.begin(), collections.end(),
              [](const Collection& a, const Collection& b) { return a.name < b.name; });
    MUSTER_TRY(AddDataStreams(collections));
    if (collections.empty() && !pattern_.IsAll()) {
      MUSTER_TRY(repository_.ReadIndex(snapshot_, pattern_.text()));  // fails if it is missing
    }
    return collections;
  }

  Result<std::vector<LeftOut>> Unlisted() override {
    std::vector<LeftOut> left_out;
    MUSTER_ASSIGN(const BackingIndices streams, Streams());
    for (const std::string& name : snapshot_.indices) {
      if (!pattern_.IsAll() && !pattern_.Names(name)) continue;
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
    Json metadata = GlobalMetadataOf(snapshot_, global);
    MUSTER_TRY(AddLeftOut(metadata));
    return ToJsonText(metadata);
  }

  Result<std::vector<Partition>> Partitions(const std::string& collection) override {
    std::vector<Partition> partitions;
    MUSTER_ASSIGN(const std::vector<std::string> backing, BackingIndicesOf(collection));
    const std::vector<int> first = FirstShardsOf(backing);
    for (size_t i = 0; i < backing.size(); ++i) {
      MUSTER_ASSIGN(const SnapshotIndex index, ReadIndex(backing[i]));
      for (int shard = 0; shard < index.shards; ++shard) {
        Partition partition{.collection = collection,
                            .shard = first[i] + shard,
                            .part = PartName(false) + kOfIndex + backing[i]};
        MUSTER_TRY(Measure(partition));
        partitions.push_back(std::move(partition));
      }
    }
    if (!backing.empty()) return partitions;
    MUSTER_ASSIGN(const bool as_one, IsOnePartition(collection));
    MUSTER_ASSIGN(const SnapshotIndex index, ReadIndex(collection));
    for (int shard = 0; shard < (as_one ? 1 : index.shards); ++shard) {
      Partition partition{.collection = collection, .shard = shard, .part = PartName(as_one)};
      MUSTER_TRY(Measure(partition));
      partitions.push_back(std::move(partition));
    }
    return partitions;
  }

  Result<std::unique_ptr<Reader>> Read(const Partition& partition, const std::string& position,
                                       std::stop_token) override {
    const std::string_view part = partition.part;
    const bool is_backing = part.starts_with(PartName(false) + kOfIndex);
    if (!is_backing && part != PartName(true) && part != PartName(false)) {
      return Error{
          Code::kConflict,
          repository_.name() + ": the run was started with a snapshot other than " + snapshot_.name,
          "name the snapshot in the URL, with snapshot=NAME"};
    }
    MUSTER_ASSIGN(std::vector<SnapshotLeg> legs, LegsOf(partition));
    MUSTER_ASSIGN(const SnapshotIndex index, ReadIndex(IndexOf(partition)));
    SnapshotChoice choice = documents_;
    choice.is_pruned = KeptSourceOf(index) == KeptSource::kPruned;
    if (!HasTypeField(index, choice)) choice.type_field.clear();
    return SnapshotReader::Open(std::move(legs), partition, position, std::move(choice));
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

  // Those of a data stream, the oldest first; none: it is an index.
  Result<std::vector<std::string>> BackingIndicesOf(const std::string& collection) const {
    if (std::binary_search(sorted_indices_.begin(), sorted_indices_.end(), collection)) {
      return std::vector<std::string>();
    }
    MUSTER_ASSIGN(const Json global, repository_.ReadGlobalMetadata(snapshot_));
    return lucene::IndicesOfStream(global, collection);
  }

  // Those that are selected. After the indices, to which their templates might apply.
  Status AddDataStreams(std::vector<Collection>& collections) const {
    MUSTER_ASSIGN(const Json global, repository_.ReadGlobalMetadata(snapshot_));
    std::set<std::string> names;
    for (const auto& [index, stream] : lucene::BackingIndicesOf(global)) {
      if (pattern_.IsAll() ? !stream.starts_with('.') : pattern_.Names(stream)) {
        names.insert(stream);
      }
    }
    const Json templates = GlobalMetadataOf(snapshot_, global);
    for (const std::string& name : names) {
      const auto indices = lucene::IndicesOfStream(global, name);
      const auto in_snapshot = [&](const std::string& index) {
        return std::binary_search(sorted_indices_.begin(), sorted_indices_.end(), index);
      };
      // A part of the cluster's indices was chosen.
      if (std::none_of(indices.begin(), indices.end(), in_snapshot)) continue;
      collections.push_back(DescribeStream(name, indices, templates));
    }
    return {};
  }

  Collection DescribeStream(const std::string& name, const std::vector<std::string>& indices,
                            const Json& templates) const {
    Collection stream{.name = name};
    const auto refuse = [&](Error error) {
      error.message += "; it is part of data stream " + name;
      stream.refusal = std::move(error);
    };
    for (const std::string& backing : indices) {
      const auto index = repository_.ReadIndex(snapshot_, backing);
      if (!index) return refuse(index.error()), stream;
      const Status readable = CheckReadable(repository_.name(), *index, documents_);
      const Status whole = readable ? CheckWhole(repository_.name(), *index, documents_) : readable;
      if (!whole) return refuse(whole.error()), stream;
      Json metadata = MetadataOf(snapshot_, *index, documents_);
      metadata::AddStreamTemplates(templates, name, metadata);
      stream.metadata = ToJsonText(metadata);
    }
    if (!since_) return stream;
    stream.refusal =
        Error{Code::kIncompatible,
              repository_.name() + ": " + name + " is a data stream, which has no deltas",
              "migrate it again as a whole, without since=NAME: what is there already stays; or "
              "leave it out with --exclude " +
                  name};
    return stream;
  }

  Status Measure(Partition& partition) {
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
    return {};
  }

  // Why an index is not listed; empty: it is, or it cannot be read, which is said there.
  Result<std::string> Why(const std::string& name) const {
    const auto index = repository_.ReadIndex(snapshot_, name);
    if (index) return WhyLeftOut(*index, !pattern_.IsAll());
    if (IsTransient(index.error().code)) return index.error();
    return pattern_.IsAll() && name.starts_with('.') ? index.error().message : std::string();
  }

  Status AddLeftOut(Json& metadata) {
    MUSTER_ASSIGN(const auto left_out, Unlisted());
    for (const LeftOut& one : left_out) {
      if (one.reason == kLeftOutIfHidden) metadata["hidden"].push_back(one.name);
      if (one.reason == kLeftOutAsStore) metadata["stores"].push_back(one.name);
    }
    return {};
  }

  // An index whose documents can be read.
  Result<SnapshotIndex> ReadIndex(const std::string& name) {
    MUSTER_ASSIGN(SnapshotIndex index, repository_.ReadIndex(snapshot_, name));
    MUSTER_TRY(CheckReadable(repository_.name(), index, documents_));
    return index;
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
    MUSTER_ASSIGN(SnapshotIndex former, repository_.ReadIndex(*since_, name));
    MUSTER_ASSIGN(const SnapshotIndex index, repository_.ReadIndex(snapshot_, name));
    if (HasTypeField(former, documents_) == HasTypeField(index, documents_)) return former;
    return Error{Code::kIncompatible,
                 repository_.name() + ": index " + name + " had one type in one snapshot and has " +
                     "several in the other, so with type_field its documents have other ids",
                 "migrate it again as a whole, without since=NAME, into an empty target"};
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

  // The collection or, of a data stream, a backing index.
  static std::string IndexOf(const Partition& partition) {
    const size_t named = partition.part.find(kOfIndex);
    return named == std::string::npos ? partition.collection
                                      : partition.part.substr(named + std::strlen(kOfIndex));
  }

  // What a partition is read from, in order: deletes before writes.
  Result<std::vector<SnapshotLeg>> LegsOf(const Partition& partition) {
    const std::string name = IndexOf(partition);
    const bool is_backing = partition.part.find(kOfIndex) != std::string::npos;
    MUSTER_ASSIGN(const SnapshotIndex index, ReadIndex(name));
    MUSTER_ASSIGN(const std::optional<SnapshotIndex> former, ReadFormerIndex(name));
    const bool as_one = since_ && partition.part == PartName(true);
    const int shard_number = is_backing ? partition.shard % kShardsPerIndex : partition.shard;
    const int first = as_one ? 0 : shard_number;
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
      leg.rebuild = RebuildOf(leg.deletes ? *former : index, documents_);
      MUSTER_ASSIGN(const auto reader, lucene::ShardReader::Open(*leg.directory));
      leg.end = reader.end();
    }
    return legs;
  }

  const Repository repository_;
  const Snapshot snapshot_;
  std::vector<std::string> sorted_indices_ = snapshot_.indices;
  const std::optional<Snapshot> since_;
  const IndexPattern pattern_;
  const SnapshotChoice documents_;
};

}  // namespace

Result<std::unique_ptr<Source>> OpenSnapshotSource(const Url& url, Env& env) {
  MUSTER_TRY(CheckSnapshotParameters(url));
  MUSTER_ASSIGN(auto blobs, OpenSnapshotBlobs(url, env));
  MUSTER_ASSIGN(Repository repository, Repository::Open(std::move(blobs)));
  MUSTER_ASSIGN(Snapshot snapshot, ChooseSnapshot(repository, url.Param("snapshot").value_or("")));
  MUSTER_ASSIGN(std::optional<Snapshot> since,
                ChooseSince(repository, url.Param("since").value_or(""), snapshot));
  Selection selection{.snapshot = std::move(snapshot),
                      .since = std::move(since),
                      .indices = url.fragment,
                      .documents = {.type = url.Param("type").value_or(""),
                                    .type_field = url.Param("type_field").value_or(""),
                                    .recovery_source = url.Param("recovery_source") == "true",
                                    .pruned_source = url.Param("pruned_source") == "true",
                                    .rebuild_source = url.Param("rebuild_source") == "true"}};
  return std::make_unique<SnapshotSource>(std::move(repository), std::move(selection));
}

}  // namespace muster::pipeline
