#include "cli/snapshot_selection.h"

#include <memory>
#include <utility>

#include "core/url.h"
#include "net/s3.h"

namespace muster::cli {
namespace {

using lucene::Repository;
using lucene::ShardDirectory;
using lucene::Snapshot;
using lucene::SnapshotIndex;
using lucene::SnapshotState;

// A folder, or s3://BUCKET/PREFIX.
Result<std::unique_ptr<lucene::Blobs>> OpenBlobs(const std::string& repository) {
  if (!repository.starts_with("s3://")) return lucene::OpenFolder(repository);
  MUSTER_ASSIGN(const Url url, ParseUrl(repository));
  for (const auto& [name, value] : url.query) {
    if (name != "region" && name != "endpoint" && name != "path_style") {
      return Error{Code::kInvalid, "the URL has an unknown parameter '" + name + "'",
                   "use region, endpoint or path_style"};
    }
  }
  MUSTER_ASSIGN(const net::S3Location location, net::S3Location::FromUrl(url));
  return lucene::OpenBucket(location, RealEnv());
}

}  // namespace

std::string_view StateName(SnapshotState state) {
  switch (state) {
    case SnapshotState::kInProgress:
      return "in progress";
    case SnapshotState::kSuccess:
      return "success";
    case SnapshotState::kFailed:
      return "failed";
    case SnapshotState::kPartial:
      return "partial";
    case SnapshotState::kIncompatible:
      return "incompatible";
    case SnapshotState::kUnknown:
      return "unknown";
  }
  return "unknown";
}

Result<SnapshotSelection> SnapshotSelection::Open(const SnapshotOptions& options) {
  MUSTER_ASSIGN(auto blobs, OpenBlobs(options.repository));
  MUSTER_ASSIGN(Repository repository, Repository::Open(std::move(blobs)));
  return SnapshotSelection(options, std::move(repository));
}

Result<std::vector<Snapshot>> SnapshotSelection::Snapshots() const {
  if (options_.snapshot.empty()) return repository_.ReadSnapshots();
  MUSTER_ASSIGN(Snapshot snapshot, repository_.ReadSnapshot(options_.snapshot));
  return std::vector{std::move(snapshot)};
}

// ReadIndex reports an index that does not exist.
std::vector<std::string> SnapshotSelection::IndicesOf(const Snapshot& snapshot) const {
  if (!options_.index.empty()) return {options_.index};
  return snapshot.indices;
}

Status SnapshotSelection::ForEachIndex(const OnIndex& visit) const {
  MUSTER_ASSIGN(const std::vector<Snapshot> snapshots, Snapshots());
  for (const Snapshot& snapshot : snapshots) {
    for (const std::string& name : IndicesOf(snapshot)) {
      MUSTER_ASSIGN(const SnapshotIndex index, repository_.ReadIndex(snapshot, name));
      MUSTER_TRY(visit(snapshot, index));
    }
  }
  return {};
}

std::vector<int> SnapshotSelection::ShardsOf(const SnapshotIndex& index) const {
  if (options_.shard) return {*options_.shard};
  std::vector<int> shards;
  for (int shard = 0; shard < index.shards; ++shard) shards.push_back(shard);
  return shards;
}

Status SnapshotSelection::ForEachShard(const std::function<Status(const ShardName&)>& visit) const {
  return ForEachIndex([&](const Snapshot& snapshot, const SnapshotIndex& index) -> Status {
    for (const int shard : ShardsOf(index)) MUSTER_TRY(visit(ShardName{snapshot, index, shard}));
    return {};
  });
}

Result<ShardDirectory> SnapshotSelection::OpenShard(const ShardName& shard) const {
  const SnapshotState state = shard.snapshot.state;
  if (state != SnapshotState::kSuccess && state != SnapshotState::kPartial) {
    return Error{Code::kIncompatible, repository_.name() + ": snapshot " + shard.snapshot.name +
                                          " is not complete: its state is '" +
                                          std::string(StateName(state)) + "'"};
  }
  if (!shard.index.refusal.empty()) {
    return Error{Code::kIncompatible,
                 repository_.name() + ": index " + shard.index.name + ": " + shard.index.refusal,
                 "read this index from a running cluster instead"};
  }
  return repository_.ReadShard(shard.snapshot, shard.index, shard.shard);
}

}  // namespace muster::cli
