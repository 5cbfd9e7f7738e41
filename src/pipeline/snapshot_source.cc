#include "pipeline/snapshot_source.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <set>

#include "base/json.h"
#include "base/s3.h"
#include "lucene/repository.h"
#include "lucene/shard_reader.h"

namespace muster {
namespace {

using lucene::Repository;
using lucene::ShardDirectory;
using lucene::Snapshot;
using lucene::SnapshotIndex;
using lucene::SnapshotState;

constexpr uint64_t kWorthSplitting = 2'000;

// Zero-padded, so that positions sort as the numbers do.
std::string PositionOf(uint64_t number) {
  char text[24];
  std::snprintf(text, sizeof text, "%019llu", static_cast<unsigned long long>(number));
  return text;
}

Result<uint64_t> NumberOf(const std::string& position, uint64_t if_empty) {
  if (position.empty()) return if_empty;
  uint64_t number = 0;
  const char* const end = position.data() + position.size();
  const auto [stop, problem] = std::from_chars(position.data(), end, number);
  if (problem != std::errc() || stop != end) {
    return Error{Code::kInvalid, "'" + position + "' is not a position in a snapshot",
                 "is the source still the one that the work was begun with?"};
  }
  return number;
}

bool IsJsonObject(std::string_view text) {
  const size_t start = text.find_first_not_of(" \t\r\n");
  return start != std::string_view::npos && text[start] == '{';
}

class SnapshotReader : public Reader {
 public:
  // The directory lives here, since the reader refers to it.
  static Result<std::unique_ptr<SnapshotReader>> Open(ShardDirectory directory,
                                                      const Partition& partition,
                                                      const std::string& position,
                                                      bool recovery_source) {
    auto reader = std::make_unique<SnapshotReader>(std::move(directory), recovery_source);
    MUSTER_ASSIGN(auto shard, lucene::ShardReader::Open(reader->directory_));
    MUSTER_ASSIGN(const uint64_t begin, NumberOf(partition.begin, 0));
    MUSTER_ASSIGN(reader->next_, NumberOf(position, begin));
    MUSTER_ASSIGN(reader->end_, NumberOf(partition.end, shard.end()));
    shard.Seek(reader->next_);
    reader->shard_.emplace(std::move(shard));
    return reader;
  }

  SnapshotReader(ShardDirectory directory, bool recovery_source)
      : directory_(std::move(directory)), recovery_source_(recovery_source) {}

  Result<std::optional<Document>> Next() override {
    if (next_ >= end_) return std::nullopt;
    MUSTER_ASSIGN(const bool found, shard_->Next(found_));
    if (!found || found_.position >= end_) {
      next_ = end_;
      return std::nullopt;
    }
    next_ = found_.position + 1;
    position_ = PositionOf(next_);
    Document document{.id = found_.id,
                      .routing = found_.routing.value_or(""),
                      .body = found_.source.value_or(""),
                      .position = position_,
                      .defect = {}};
    if (!found_.source && recovery_source_ && found_.recovery_source) {
      document.body = *found_.recovery_source;
    }
    if (document.body.empty()) {
      document.defect = found_.recovery_source && !recovery_source_
                            ? "the index keeps no _source of it; with recovery_source=true its "
                              "copy for recovery is taken"
                            : "the index keeps no _source of it";
    } else if (!IsJsonObject(document.body)) {
      document.defect = "its _source is not JSON (but SMILE, CBOR or YAML)";
    }
    return document;
  }

  Result<std::optional<std::string>> Split() override {
    if (end_ - next_ < kWorthSplitting) return std::nullopt;
    end_ = next_ + (end_ - next_) / 2;
    return PositionOf(end_);
  }

 private:
  const ShardDirectory directory_;
  const bool recovery_source_;
  std::optional<lucene::ShardReader> shard_;
  lucene::Document found_;
  std::string position_;
  uint64_t next_ = 0;
  uint64_t end_ = 0;
};

class SnapshotSource : public Source {
 public:
  SnapshotSource(Repository repository, Snapshot snapshot, std::string index, bool recovery_source)
      : repository_(std::move(repository)),
        snapshot_(std::move(snapshot)),
        index_(std::move(index)),
        recovery_source_(recovery_source) {}

  Result<std::vector<Collection>> Collections() override {
    std::vector<Collection> collections;
    for (const std::string& name : snapshot_.indices) {
      if (index_.empty() ? name.starts_with('.') : name != index_) continue;
      MUSTER_ASSIGN(const SnapshotIndex index, ReadIndex(name));
      collections.push_back({name, ToJsonText(MetadataOf(index))});
    }
    if (collections.empty() && !index_.empty()) {
      MUSTER_TRY(repository_.ReadIndex(snapshot_, index_));  // says that it is not there
    }
    return collections;
  }

  Result<std::string> GlobalMetadata() override {
    MUSTER_ASSIGN(const Json global, repository_.ReadGlobalMetadata(snapshot_));
    Json metadata = Json::object();
    // Under the name of its own that each kind of template has, and under which it is wrapped
    // again.
    for (const auto& [ours, theirs] :
         {std::pair{"templates", "templates"}, std::pair{"index_templates", "index_template"},
          std::pair{"component_templates", "component_template"}}) {
      if (!global.contains(theirs) || !global[theirs].is_object()) continue;
      const Json& kind = global[theirs];
      const Json& templates = kind.contains(theirs) ? kind[theirs] : kind;
      for (const auto& [name, body] : templates.items()) {
        if (!name.starts_with('.') && body.is_object()) metadata[ours][name] = body;
      }
    }
    return ToJsonText(metadata);
  }

  Result<std::vector<Partition>> Partitions(const std::string& collection) override {
    MUSTER_ASSIGN(const SnapshotIndex index, ReadIndex(collection));
    std::vector<Partition> partitions;
    for (int shard = 0; shard < index.shards; ++shard) {
      MUSTER_ASSIGN(const ShardDirectory directory, repository_.ReadShard(snapshot_, index, shard));
      MUSTER_ASSIGN(const auto reader, lucene::ShardReader::Open(directory));
      Partition partition{.collection = collection, .shard = shard, .part = snapshot_.uuid};
      partition.begin = PositionOf(0);
      partition.end = PositionOf(reader.end());
      int64_t bytes = 0;
      for (const auto& [name, file] : directory.files()) bytes += static_cast<int64_t>(file.length);
      partition.bytes = bytes;
      partitions.push_back(std::move(partition));
    }
    return partitions;
  }

  Result<std::unique_ptr<Reader>> Read(const Partition& partition, const std::string& position,
                                       std::stop_token) override {
    if (partition.part != snapshot_.uuid) {
      return Error{
          Code::kConflict,
          repository_.name() + ": the work was begun with another snapshot than " + snapshot_.name,
          "name the snapshot in the URL, with snapshot=NAME"};
    }
    MUSTER_ASSIGN(const SnapshotIndex index, ReadIndex(partition.collection));
    MUSTER_ASSIGN(ShardDirectory directory,
                  repository_.ReadShard(snapshot_, index, partition.shard));
    MUSTER_ASSIGN(auto reader, SnapshotReader::Open(std::move(directory), partition, position,
                                                    recovery_source_));
    return reader;
  }

  std::optional<double> FractionBefore(const Partition& partition,
                                       const std::string& position) override {
    const auto begin = NumberOf(partition.begin, 0);
    const auto end = NumberOf(partition.end, 0);
    if (!begin || !end || *end <= *begin) return std::nullopt;
    const auto at = NumberOf(position, *begin);
    if (!at || *at < *begin) return std::nullopt;
    return std::min(1.0, static_cast<double>(*at - *begin) / static_cast<double>(*end - *begin));
  }

 private:
  // An index whose documents can be read.
  Result<SnapshotIndex> ReadIndex(const std::string& name) {
    MUSTER_ASSIGN(SnapshotIndex index, repository_.ReadIndex(snapshot_, name));
    if (!index.refusal.empty()) {
      return Error{Code::kIncompatible,
                   repository_.name() + ": index " + name + ": " + index.refusal,
                   "leave it out, and read it from a running cluster instead"};
    }
    return index;
  }

  static Json MetadataOf(const SnapshotIndex& index) {
    Json metadata{{"settings", index.settings}, {"aliases", index.aliases}};
    Json& mappings = metadata["mappings"] = Json::object();
    // One for each type; where there are several, which only Elasticsearch 5 and before had, their
    // fields share one mapping, as they did there.
    for (const Json& mapping : index.mappings) {
      if (!mapping.is_object()) continue;
      for (const Json& type : mapping) {
        if (type.is_object()) mappings.merge_patch(type);
      }
    }
    return metadata;
  }

  const Repository repository_;
  const Snapshot snapshot_;
  const std::string index_;  // empty: all
  const bool recovery_source_;
};

Result<Snapshot> ChooseSnapshot(const Repository& repository, const std::string& wanted) {
  if (!wanted.empty()) {
    MUSTER_ASSIGN(Snapshot snapshot, repository.ReadSnapshot(wanted));
    if (snapshot.state == SnapshotState::kSuccess || snapshot.state == SnapshotState::kPartial) {
      return snapshot;
    }
    return Error{Code::kIncompatible,
                 repository.name() + ": snapshot " + wanted + " is not complete",
                 "'muster snapshot list' tells which are"};
  }
  std::vector<std::string> names = repository.SnapshotNames();
  std::reverse(names.begin(), names.end());
  for (const std::string& name : names) {
    MUSTER_ASSIGN(Snapshot snapshot, repository.ReadSnapshot(name));
    if (snapshot.state == SnapshotState::kSuccess) return snapshot;
  }
  return Error{Code::kNotFound, repository.name() + ": has no complete snapshot",
               "take one, or name a partial one with snapshot=NAME"};
}

Result<std::unique_ptr<lucene::Blobs>> OpenBlobs(const Url& url, Env& env) {
  if (url.scheme == "snapshot+s3") {
    MUSTER_ASSIGN(S3Location location, S3Location::FromUrl(url));
    return lucene::OpenBucket(std::move(location), env);
  }
  if (url.scheme != "snapshot+file" || !url.host.empty() || url.path.empty()) {
    return Error{Code::kInvalid, "the URL names no snapshot repository",
                 "write snapshot+file:///FOLDER#INDEX or snapshot+s3://BUCKET/PREFIX#INDEX"};
  }
  return lucene::OpenFolder(url.path);
}

Status CheckParameters(const Url& url) {
  std::set<std::string> known = {"snapshot", "recovery_source"};
  if (url.scheme == "snapshot+s3") known.insert({"region", "endpoint", "path_style"});
  for (const auto& [name, value] : url.query) {
    if (!known.contains(name)) {
      std::string all;
      for (const std::string& each : known) all += (all.empty() ? "" : ", ") + each;
      return Error{Code::kInvalid, "the URL has an unknown parameter '" + name + "'",
                   "there are " + all};
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
  return std::make_unique<SnapshotSource>(std::move(repository), std::move(snapshot), url.fragment,
                                          url.Param("recovery_source") == "true");
}

}  // namespace muster
