#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "lucene/blobs.h"
#include "lucene/shard_directory.h"

namespace muster::lucene {

enum class SnapshotState { kInProgress, kSuccess, kFailed, kPartial, kIncompatible, kUnknown };

// A snapshot as listed in the repository's root.
struct Snapshot {
  std::string name;
  std::string uuid;  // the name, for Elasticsearch 1 and 2
  SnapshotState state = SnapshotState::kUnknown;
  std::vector<std::string> indices;        // in name order
  std::optional<int64_t> version_id;       // of the server, if recorded
  int64_t start_ms = 0;                    // start time, since 1970; 0: unknown
  std::vector<std::string> failed_shards;  // "INDEX[SHARD]": not in the snapshot
};

// An index in one snapshot.
struct SnapshotIndex {
  std::string name;
  std::string id;  // of its folder
  int shards = 0;
  Json settings;  // flat: "index.number_of_shards" and so on
  Json mappings;  // one {type: mapping} per type
  Json aliases;
  int path_type = 0;  // how its shards' folders are found
  // Why its documents cannot be read (no stored source); empty if they can.
  std::string refusal;

  bool IsHidden() const;
  // Whether the "_meta" of a mapping has this member.
  bool HasMeta(std::string_view member) const;
};

// The data stream of each backing index, by Repository::ReadGlobalMetadata.
using BackingIndices = std::map<std::string, std::string>;
BackingIndices BackingIndicesOf(const Json& global);

// The backing indices of one data stream, the oldest first.
std::vector<std::string> IndicesOfStream(const Json& global, const std::string& stream);

// A snapshot repository of Elasticsearch 1 to 9 or OpenSearch 1 to 3: its content down to the lists
// of Lucene files. Formats only; reads on demand and caches only the root index. Thread-safe.
class Repository {
 public:
  // kNotFound: no repository; kIncompatible: its root has an unknown format.
  static Result<Repository> Open(std::unique_ptr<Blobs> blobs);

  const std::string& name() const { return blobs_->name(); }

  // Every snapshot, oldest first. The root is unordered: each one is read for its time.
  Result<std::vector<Snapshot>> ReadSnapshots() const;

  // kNotFound: no snapshot of that name.
  Result<Snapshot> ReadSnapshot(const std::string& name) const;
  Result<SnapshotIndex> ReadIndex(const Snapshot& snapshot, const std::string& index) const;
  // The snapshot's cluster metadata: templates and more. An empty object if taken without.
  Result<Json> ReadGlobalMetadata(const Snapshot& snapshot) const;

  // The list of a shard's files. The directory refers to this repository, which must outlive it.
  Result<ShardDirectory> ReadShard(const Snapshot& snapshot, const SnapshotIndex& index,
                                   int shard) const;

 private:
  struct RootSnapshot {
    std::string name;
    std::string uuid;
    Json metadata_lookup;  // index id → key
  };
  struct RootIndex {
    std::string name;
    std::string id;
    std::vector<std::string> snapshot_uuids;
    int path_type = 0;
  };

  explicit Repository(std::unique_ptr<Blobs> blobs) : blobs_(std::move(blobs)) {}
  Status ReadRoot();
  Status ParseRoot(const Json& root, const std::string& origin);
  Status ParseRootIndex(const std::string& name, const Json& entry, const std::string& origin);
  Status ParseOldRoot(const Json& root, const std::string& origin);
  const RootSnapshot* Find(const std::string& name) const;
  std::string MetadataBlob(const RootSnapshot& snapshot, const std::string& index_id) const;
  Result<std::string> ShardFolder(const SnapshotIndex& index, int shard) const;
  Result<std::string> ListedShardFolder(const SnapshotIndex& index, int shard) const;
  // Tries the path of version 2 and later, then that of 1.
  Result<Json> ReadMetadata(const std::string& path, const std::string& old_path,
                            std::string_view codec) const;

  std::unique_ptr<Blobs> blobs_;
  std::vector<RootSnapshot> snapshots_;
  std::vector<RootIndex> indices_;  // empty for Elasticsearch 1 and 2
  bool has_index_ids_ = false;
  Json metadata_ids_;  // key → blob's id
};

// OpenSearch's hashed path of a shard: one character and 14 binary digits.
std::string HashedPath(const std::string& index_id, int shard);

}  // namespace muster::lucene
