#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lucene/lucene.h"  // IWYU pragma: export
#include "muster/result.h"

namespace muster::cli {

struct SnapshotOptions {
  std::string action;
  std::string repository;
  std::string snapshot;  // empty: all
  std::string index;     // empty: all
  std::optional<int> shard;
  std::optional<uint64_t> from;
  bool recovery_source = false;
};

// "in progress", "success", …
std::string_view StateName(lucene::SnapshotState state);

// One shard of one index of one snapshot.
struct ShardName {
  const lucene::Snapshot& snapshot;
  const lucene::SnapshotIndex& index;
  int shard;
};

// The part of a repository that the options select.
class SnapshotSelection {
 public:
  // `options` must outlive it.
  static Result<SnapshotSelection> Open(const SnapshotOptions& options);

  const lucene::Repository& repository() const { return repository_; }

  using OnIndex = std::function<Status(const lucene::Snapshot&, const lucene::SnapshotIndex&)>;
  Status ForEachIndex(const OnIndex& visit) const;
  Status ForEachShard(const std::function<Status(const ShardName&)>& visit) const;
  // The numbers of the selected shards of an index.
  std::vector<int> ShardsOf(const lucene::SnapshotIndex& index) const;

  // The files of a readable shard, or why it cannot be read.
  Result<lucene::ShardDirectory> OpenShard(const ShardName& shard) const;

 private:
  SnapshotSelection(const SnapshotOptions& options, lucene::Repository repository)
      : options_(options), repository_(std::move(repository)) {}
  Result<std::vector<lucene::Snapshot>> Snapshots() const;
  std::vector<std::string> IndicesOf(const lucene::Snapshot& snapshot) const;

  const SnapshotOptions& options_;
  lucene::Repository repository_;
};

}  // namespace muster::cli
