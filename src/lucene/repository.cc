#include "lucene/repository.h"

#include <algorithm>
#include <charconv>

#include "core/fnv.h"
#include "lucene/metadata.h"

namespace muster::lucene {
namespace {

constexpr int kMaxShards = 100'000;

// The string at a key, or empty.
std::string TextOf(const Json& object, const char* key) {
  if (!object.is_object()) return "";
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<int64_t> NumberOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<int64_t>();
}

Error Damaged(const std::string& origin, const std::string& why) {
  return Error{Code::kCorrupt, origin + ": " + why};
}

std::optional<uint64_t> ParseNumber(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

SnapshotState StateOf(std::string_view text) {
  if (text == "SUCCESS") return SnapshotState::kSuccess;
  if (text == "PARTIAL") return SnapshotState::kPartial;
  if (text == "FAILED") return SnapshotState::kFailed;
  if (text == "IN_PROGRESS") return SnapshotState::kInProgress;
  if (text == "INCOMPATIBLE") return SnapshotState::kIncompatible;
  return SnapshotState::kUnknown;
}

// A setting as text, whatever its JSON type; under "index." or without, flat or nested.
std::string Setting(const Json& settings, const std::string& name) {
  if (!settings.is_object()) return "";
  auto found = settings.find("index." + name);
  if (found == settings.end()) found = settings.find(name);
  if (found == settings.end()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

// Some versions compress mappings in binary; none of the supported ones do so in snapshots.
bool HasSyntheticMapping(const Json& mappings) {
  const auto of_type = [](const Json& type) {
    if (!type.is_object()) return false;
    const auto source = type.find("_source");
    return source != type.end() && TextOf(*source, "mode") == "synthetic";
  };
  for (const Json& mapping : mappings) {
    if (of_type(mapping)) return true;
    if (!mapping.is_object()) continue;
    for (const Json& type : mapping) {
      if (of_type(type)) return true;
    }
  }
  return false;
}

std::string RefusalOf(const SnapshotIndex& index) {
  const std::string mode = Setting(index.settings, "mode");
  if (mode == "logsdb" || mode == "time_series") {
    return "index.mode is " + mode + ": its documents have no stored _source";
  }
  if (Setting(index.settings, "mapping.source.mode") == "synthetic" ||
      HasSyntheticMapping(index.mappings)) {
    return "its _source is synthetic, not stored";
  }
  if (Setting(index.settings, "derived_source.enabled") == "true" ||
      Setting(index.settings, "derived_source") == "true") {
    return "its _source is derived, not stored";
  }
  return "";
}

}  // namespace

std::string HashedPath(const std::string& index_id, int shard) {
  const uint64_t hash = Fnv1a(std::to_string(shard) + index_id);
  std::string path(1,
                   "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"[hash >> 58]);
  for (int bit = 57; bit > 43; --bit) path += (hash >> bit & 1) != 0 ? '1' : '0';
  return path;
}

Result<Repository> Repository::Open(std::unique_ptr<Blobs> blobs) {
  Repository repository(std::move(blobs));
  MUSTER_TRY(repository.ReadRoot());
  return repository;
}

Status Repository::ReadRoot() {
  MUSTER_ASSIGN(const std::vector<std::string> names, blobs_->ListRoot());
  std::optional<uint64_t> newest;
  bool has_old = false;
  for (const std::string& blob : names) {
    if (blob == "index") has_old = true;
    if (!blob.starts_with("index-")) continue;
    if (const auto number = ParseNumber(std::string_view(blob).substr(6))) {
      newest = std::max(newest.value_or(0), *number);
    }
  }
  if (!newest && !has_old) {
    return Error{Code::kNotFound, name() + ": no snapshot repository: no index-N",
                 "name the folder that holds index-N, snap-*.dat and indices/"};
  }
  const std::string blob = newest ? "index-" + std::to_string(*newest) : "index";
  const std::string origin = name() + "/" + blob;
  MUSTER_ASSIGN(const std::string text, ReadWhole(*blobs_, blob, kMaxMetadataBytes));
  MUSTER_ASSIGN(const Json root, ParseMetadata(text, "", origin));
  return newest ? ParseRoot(root, origin) : ParseOldRoot(root, origin);
}

Status Repository::ParseOldRoot(const Json& root, const std::string& origin) {
  const auto snapshots = root.find("snapshots");
  if (snapshots == root.end() || !snapshots->is_array()) {
    return Damaged(origin, "it lists no snapshots");
  }
  for (const Json& entry : *snapshots) {
    const std::string name = entry.is_string() ? entry.get<std::string>() : "";
    if (!IsPlainName(name)) return Damaged(origin, "a snapshot has no usable name");
    snapshots_.push_back({name, name, Json()});
  }
  return {};
}

Status Repository::ParseRoot(const Json& root, const std::string& origin) {
  has_index_ids_ = true;
  const auto snapshots = root.find("snapshots");
  const auto indices = root.find("indices");
  if (snapshots == root.end() || !snapshots->is_array()) {
    return Damaged(origin, "it lists no snapshots");
  }
  for (const Json& entry : *snapshots) {
    RootSnapshot snapshot;
    if (entry.is_string()) {
      snapshot.name = snapshot.uuid = entry.get<std::string>();
    } else if (entry.is_object()) {
      snapshot.name = TextOf(entry, "name");
      snapshot.uuid = TextOf(entry, "uuid");
      snapshot.metadata_lookup = entry.value("index_metadata_lookup", Json::object());
    }
    if (snapshot.name.empty() || !IsPlainName(snapshot.uuid)) {
      return Damaged(origin, "a snapshot has no usable name or uuid");
    }
    snapshots_.push_back(std::move(snapshot));
  }
  if (indices != root.end() && indices->is_object()) {
    for (const auto& [name, entry] : indices->items()) {
      MUSTER_TRY(ParseRootIndex(name, entry, origin));
    }
  }
  metadata_ids_ = root.value("index_metadata_identifiers", Json::object());
  return {};
}

Status Repository::ParseRootIndex(const std::string& name, const Json& entry,
                                  const std::string& origin) {
  RootIndex index;
  index.name = name;
  index.id = TextOf(entry, "id");
  if (!IsPlainName(index.id)) return Damaged(origin, "index " + name + " has no usable id");
  index.path_type = static_cast<int>(NumberOf(entry, "shard_path_type").value_or(0));
  const auto snapshots = entry.find("snapshots");
  if (snapshots == entry.end() || !snapshots->is_array()) {
    return Damaged(origin, "index " + name + " is in no snapshot");
  }
  for (const Json& snapshot : *snapshots) {
    // Before 5.4.1 it was an object.
    index.snapshot_uuids.push_back(snapshot.is_string() ? snapshot.get<std::string>()
                                                        : TextOf(snapshot, "uuid"));
  }
  indices_.push_back(std::move(index));
  return {};
}

Result<std::vector<Snapshot>> Repository::ReadSnapshots() const {
  std::vector<Snapshot> snapshots;
  for (const RootSnapshot& root : snapshots_) {
    MUSTER_ASSIGN(Snapshot snapshot, ReadSnapshot(root.name));
    snapshots.push_back(std::move(snapshot));
  }
  std::stable_sort(snapshots.begin(), snapshots.end(),
                   [](const Snapshot& a, const Snapshot& b) { return a.start_ms < b.start_ms; });
  return snapshots;
}

const Repository::RootSnapshot* Repository::Find(const std::string& name) const {
  const auto found = std::find_if(snapshots_.begin(), snapshots_.end(),
                                  [&](const RootSnapshot& it) { return it.name == name; });
  return found == snapshots_.end() ? nullptr : &*found;
}

Result<Json> Repository::ReadMetadata(const std::string& path, const std::string& old_path,
                                      std::string_view codec) const {
  std::string chosen = path;
  auto blob = ReadWhole(*blobs_, path, kMaxMetadataBytes);
  if (!blob && blob.error().code == Code::kNotFound) {
    auto old = ReadWhole(*blobs_, old_path, kMaxMetadataBytes);
    // If both fail, report the newer name.
    if (old || old.error().code != Code::kNotFound) {
      blob = std::move(old);
      chosen = old_path;
    }
  }
  MUSTER_TRY(blob);
  return ParseMetadata(*blob, codec, name() + "/" + chosen);
}

Result<Snapshot> Repository::ReadSnapshot(const std::string& wanted) const {
  const RootSnapshot* root = Find(wanted);
  if (root == nullptr) {
    std::string names;
    for (const RootSnapshot& one : snapshots_) names += (names.empty() ? "" : ", ") + one.name;
    return Error{Code::kNotFound, name() + ": no snapshot '" + wanted + "'",
                 names.empty() ? "the repository is empty" : "available: " + names};
  }
  MUSTER_ASSIGN(Json info,
                ReadMetadata("snap-" + root->uuid + ".dat", "snapshot-" + root->uuid, "snapshot"));
  if (info.is_object() && info.contains("snapshot")) info = Json(info["snapshot"]);
  const std::string origin = name() + ": snapshot " + wanted;
  if (!info.is_object()) return Damaged(origin, "its description is not an object");
  Snapshot snapshot;
  snapshot.name = root->name;
  snapshot.uuid = root->uuid;
  snapshot.state = StateOf(TextOf(info, "state"));
  snapshot.version_id = NumberOf(info, "version_id");
  snapshot.start_ms = NumberOf(info, "start_time").value_or(0);
  const auto indices = info.find("indices");
  if (indices == info.end() || !indices->is_array()) return Damaged(origin, "it lists no indices");
  for (const Json& index : *indices) {
    if (!index.is_string()) return Damaged(origin, "an index without a name");
    snapshot.indices.push_back(index.get<std::string>());
  }
  std::sort(snapshot.indices.begin(), snapshot.indices.end());
  for (const Json& failure : info.value("failures", Json::array())) {
    snapshot.failed_shards.push_back(
        TextOf(failure, "index") + "[" +
        std::to_string(failure.is_object() ? NumberOf(failure, "shard_id").value_or(-1) : -1) +
        "]");
  }
  return snapshot;
}

Result<Json> Repository::ReadGlobalMetadata(const Snapshot& snapshot) const {
  auto metadata =
      ReadMetadata("meta-" + snapshot.uuid + ".dat", "metadata-" + snapshot.uuid, "metadata");
  if (!metadata && metadata.error().code == Code::kNotFound) return Json::object();
  MUSTER_TRY(metadata);
  // The wrapper has different names in different versions.
  if (metadata->is_object() && metadata->size() == 1 && metadata->front().is_object()) {
    return Json(metadata->front());
  }
  return std::move(*metadata);
}

std::string Repository::MetadataBlob(const RootSnapshot& snapshot,
                                     const std::string& index_id) const {
  const std::string key = TextOf(snapshot.metadata_lookup, index_id.c_str());
  if (key.empty()) return snapshot.uuid;
  const std::string id = TextOf(metadata_ids_, key.c_str());
  return id.empty() ? key : id;
}

Result<SnapshotIndex> Repository::ReadIndex(const Snapshot& snapshot,
                                            const std::string& wanted) const {
  const RootSnapshot* root = Find(snapshot.name);
  const std::string origin = name() + ": snapshot " + snapshot.name + ": index " + wanted;
  if (root == nullptr || std::find(snapshot.indices.begin(), snapshot.indices.end(), wanted) ==
                             snapshot.indices.end()) {
    return Error{Code::kNotFound, origin + ": it is not in this snapshot",
                 "list the snapshot's indices with 'muster snapshot list'"};
  }
  SnapshotIndex index;
  index.name = index.id = wanted;
  if (has_index_ids_) {
    const auto found = std::find_if(indices_.begin(), indices_.end(),
                                    [&](const RootIndex& it) { return it.name == wanted; });
    if (found == indices_.end()) return Damaged(origin, "it is missing from the repository's root");
    const std::vector<std::string>& uuids = found->snapshot_uuids;
    if (std::find(uuids.begin(), uuids.end(), snapshot.uuid) == uuids.end()) {
      return Damaged(origin, "the repository's root does not list it in this snapshot");
    }
    index.id = found->id;
    index.path_type = found->path_type;
  }
  const std::string blob = MetadataBlob(*root, index.id);
  if (!IsPlainName(index.id) || !IsPlainName(blob)) {
    return Damaged(origin, "its name cannot be a folder's");
  }
  const std::string folder = "indices/" + index.id + "/";
  MUSTER_ASSIGN(Json metadata, ReadMetadata(folder + "meta-" + blob + ".dat",
                                            folder + "snapshot-" + blob, "index-metadata"));
  if (!metadata.is_object() || metadata.size() != 1 || !metadata.front().is_object()) {
    return Damaged(origin, "its metadata is not that of one index");
  }
  const Json& body = metadata.front();
  index.settings = body.value("settings", Json::object());
  index.mappings = body.value("mappings", Json::array());
  index.aliases = body.value("aliases", Json::object());
  const auto shards = ParseNumber(Setting(index.settings, "number_of_shards"));
  if (!shards || *shards == 0 || *shards > kMaxShards) {
    return Damaged(origin, "its metadata has no number of shards");
  }
  index.shards = static_cast<int>(*shards);
  index.refusal = RefusalOf(index);
  return index;
}

// By name, or by hash.
Result<std::string> Repository::ShardFolder(const SnapshotIndex& index, int shard) const {
  const std::string plain = "indices/" + index.id + "/" + std::to_string(shard) + "/";
  switch (index.path_type) {
    case 0:
      return plain;
    case 1:
      // The hash comes before the base path, so that shards are spread over the bucket.
      return "/" + HashedPath(index.id, shard) + "/" + blobs_->base_path() + plain;
    case 2:
      return HashedPath(index.id, shard) + "/" + plain;
    default:
      return Error{Code::kIncompatible, name() + ": " + index.name + "[" + std::to_string(shard) +
                                            "]: shard paths of type " +
                                            std::to_string(index.path_type)};
  }
}

// Clusters may prefix each hash with their own word, which only the repository's list of paths
// knows.
Result<std::string> Repository::ListedShardFolder(const SnapshotIndex& index, int shard) const {
  constexpr const char* kFnv1aHash = ".1";
  const std::string blob = "snapshot_shard_paths/snapshot_path_" + index.id + "." + index.name +
                           "." + std::to_string(index.shards) + "." +
                           std::to_string(index.path_type) + kFnv1aHash;
  const std::string origin = name() + "/" + blob;
  MUSTER_ASSIGN(const std::string text, ReadWhole(*blobs_, blob, kMaxMetadataBytes));
  MUSTER_ASSIGN(const Json list, ParseMetadata(text, "", origin));
  const Json paths = list.is_object() ? list.value("paths", Json()) : Json();
  const auto number = static_cast<size_t>(shard);
  if (!paths.is_array() || paths.size() <= number || !paths[number].is_string()) {
    return Damaged(origin, "it does not list shard " + std::to_string(shard));
  }
  std::string folder = paths[number].get<std::string>();
  for (size_t start = 0; start < folder.size();) {
    const size_t end = folder.find('/', start);
    if (end == std::string::npos || !IsPlainName(folder.substr(start, end - start))) {
      return Damaged(origin, "'" + folder + "' cannot be a folder");
    }
    start = end + 1;
  }
  return "/" + folder;
}

Result<ShardDirectory> Repository::ReadShard(const Snapshot& snapshot, const SnapshotIndex& index,
                                             int shard) const {
  const std::string shard_name = index.name + "[" + std::to_string(shard) + "]";
  const std::string origin = name() + ": " + shard_name;
  if (shard < 0 || shard >= index.shards) {
    return Error{Code::kNotFound, origin + ": it has " + std::to_string(index.shards) + " shards"};
  }
  if (std::find(snapshot.failed_shards.begin(), snapshot.failed_shards.end(), shard_name) !=
      snapshot.failed_shards.end()) {
    return Error{Code::kNotFound,
                 origin + ": this shard failed when snapshot " + snapshot.name + " was taken",
                 "take another snapshot, or leave this shard out on purpose"};
  }
  MUSTER_ASSIGN(std::string folder, ShardFolder(index, shard));
  if (index.path_type != 0 && !blobs_->Size(folder + "snap-" + snapshot.uuid + ".dat")) {
    if (auto listed = ListedShardFolder(index, shard)) folder = *std::move(listed);
  }
  if (blobs_->Size(folder + "shallow-snap-" + snapshot.uuid + ".dat")) {
    return Error{Code::kIncompatible,
                 origin + ": a shallow snapshot: its files are in a remote segment store",
                 "take a full snapshot into this repository"};
  }
  MUSTER_ASSIGN(const Json list, ReadMetadata(folder + "snap-" + snapshot.uuid + ".dat",
                                              folder + "snapshot-" + snapshot.uuid, "snapshot"));
  return ShardDirectory::Parse(list, *blobs_, folder, origin);
}

}  // namespace muster::lucene
