#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "lucene/blobs.h"
#include "lucene/shard_directory.h"

namespace muster::lucene {

enum class SnapshotState { kInProgress, kSuccess, kFailed, kPartial, kIncompatible, kUnknown };

// A snapshot as the repository's root names it.
struct Snapshot {
  std::string name;
  std::string uuid;  // the name, for Elasticsearch 1 and 2
  SnapshotState state = SnapshotState::kUnknown;
  std::vector<std::string> indices;        // in the order of their names
  std::optional<int64_t> version_id;       // of the server, if the snapshot says so
  int64_t start_ms = 0;                    // when it was begun, since 1970; 0: it does not say
  std::vector<std::string> failed_shards;  // "INDEX[SHARD]": not in the snapshot
};

// An index in one snapshot.
struct SnapshotIndex {
  std::string name;
  std::string id;  // of its folder
  int shards = 0;
  Json settings;  // flat: "index.number_of_shards" and so on
  Json mappings;  // one {type: mapping} for each type
  Json aliases;
  int path_type = 0;  // how the folders of its shards are found
  // Why its documents cannot be read (no stored source); empty if they can.
  std::string refusal;
};

// A snapshot repository of Elasticsearch 1 to 9 or OpenSearch 1 to 3: what it holds, down to the
// lists of Lucene files. Formats only; reads when asked and keeps the root index alone. Any number
// of threads may use it.
class Repository {
 public:
  // kNotFound when there is no repository, kIncompatible when its root is of an unknown kind.
  static Result<Repository> Open(std::unique_ptr<Blobs> blobs);

  const std::string& name() const { return blobs_->name(); }

  // Every snapshot, oldest first. The root lists them in no order: each one is read for its time.
  Result<std::vector<Snapshot>> ReadSnapshots() const;

  // kNotFound when there is none of that name.
  Result<Snapshot> ReadSnapshot(const std::string& name) const;
  Result<SnapshotIndex> ReadIndex(const Snapshot& snapshot, const std::string& index) const;
  // What the snapshot holds of the cluster itself: templates and more. An empty object when it was
  // taken without.
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

// The folder that OpenSearch hashes a shard's path to: one character and 14 binary digits.
std::string HashedPath(const std::string& index_id, int shard);

}  // namespace muster::lucene
