#include "task/data/staging.h"

#include <algorithm>
#include <filesystem>

#include "core/file.h"
#include "core/file_output.h"
#include "core/json.h"
#include "core/record_fields.h"
#include "core/url.h"
#include "task/data/staging_bucket.h"
#include "task/parameters.h"

namespace muster::task {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kManifest = ".manifest.json";

void PutColumns(const Manifest& manifest, Json& json, std::string_view name) {
  Json columns = Json::object();
  for (const auto& [column, type] : manifest.columns) columns[column] = type;
  json[name] = std::move(columns);
}

void TakeColumns(JsonFields& fields, Manifest& manifest, std::string_view name) {
  Json columns;
  fields.Need(name, columns);
  if (!columns.is_object()) return fields.Mistake("its columns are not an object");
  for (const auto& [column, type] : columns.items()) {
    if (!type.is_string()) return fields.Mistake("the type of column '" + column + "' is not text");
    manifest.columns.emplace_back(column, type.get<std::string>());
  }
}

constexpr RecordTable<Manifest, 13> kTable{RecordFormat{"manifest", 1},
                                           {{Required<Manifest, &Manifest::object>("object"),
                                             Required<Manifest, &Manifest::file>("file"),
                                             Required<Manifest, &Manifest::format>("format"),
                                             Required<Manifest, &Manifest::rows>("rows"),
                                             Required<Manifest, &Manifest::failed>("failed"),
                                             Required<Manifest, &Manifest::bytes>("bytes"),
                                             Required<Manifest, &Manifest::sha256>("sha256"),
                                             Required<Manifest, &Manifest::source>("source"),
                                             Required<Manifest, &Manifest::tenant>("tenant"),
                                             Required<Manifest, &Manifest::migration>("migration"),
                                             Field<Manifest, &Manifest::run>("run"),
                                             Required<Manifest, &Manifest::token>("token"),
                                             {"columns", PutColumns, TakeColumns}}}};

Result<Manifest> ManifestOf(const Json& json, const std::string& path) {
  auto manifest = kTable.Read(json, path);
  if (manifest || IsNewer(manifest.error())) return manifest;
  return Error{Code::kCorrupt, path + " is not a manifest of a staged object",
               "delete it; the object is then staged again"};
}

Result<Manifest> ReadManifest(const std::string& path) {
  MUSTER_ASSIGN(const Json json, ReadJsonFile(path));
  return ManifestOf(json, path);
}

// None: it is not there.
Result<std::optional<Manifest>> ReadManifest(StagingBucket& bucket, const std::string& name) {
  const auto text = bucket.ReadAll(name);
  if (!text && text.error().code == Code::kNotFound) return std::optional<Manifest>();
  if (!text) return text.error();
  const std::string place = bucket.client().Place() + name;
  MUSTER_ASSIGN(const Json json, ParseJson(*text, place));
  MUSTER_ASSIGN(Manifest manifest, ManifestOf(json, place));
  return std::optional<Manifest>(std::move(manifest));
}

std::string NameIn(const std::string& path) { return fs::path(path).filename().string(); }

}  // namespace

Result<Staging> Staging::At(const std::string& folder, StagingOwner owner) {
  if (folder.starts_with("s3://")) {
    MUSTER_ASSIGN(auto bucket, StagingBucket::Open(folder));
    Staging staging(bucket->folder(), std::move(owner));
    staging.bucket_ = std::move(bucket);
    return staging;
  }
  if (folder.find("://") != std::string::npos) {
    return Error{Code::kInvalid, "staging: '" + folder + "' is not a folder on this machine",
                 "give the path of one, or s3://BUCKET/PREFIX"};
  }
  std::error_code failed;
  const fs::path absolute = fs::absolute(folder, failed).lexically_normal();
  if (failed || folder.empty()) return Error{Code::kInvalid, "staging: the folder is missing"};
  std::string path = absolute.string();
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return Staging(std::move(path), std::move(owner));
}

std::string Staging::Place() const { return bucket_ ? bucket_->client().Place() : folder_ + "/"; }

std::string Staging::PathOf(const std::string& object, const std::string& ending) const {
  std::string name = PercentEncode(object);
  if (name.starts_with('.')) name.replace(0, 1, "%2E");
  return folder_ + "/" + name + ending;
}

Result<std::string> Staging::CopyFolder(const std::string& object) const {
  const std::string name = NameIn(PathOf(object, ".copy"));
  if (bucket_) return bucket_->CopyFolder(name);
  return folder_ + "/." + name;
}

bool Staging::IsOwn(const Manifest& manifest) const {
  if (owner_.run.empty() || manifest.run == owner_.run) return true;
  return manifest.run.empty() && owner_.unmarked;
}

Result<std::optional<Manifest>> Staging::Find(const std::string& object) const {
  MUSTER_ASSIGN(auto found, FindAny(object));
  if (found && !IsOwn(*found)) found.reset();
  return found;
}

Result<std::optional<Manifest>> Staging::FindAny(const std::string& object) const {
  const std::string path = PathOf(object, std::string(kManifest));
  if (bucket_) return ReadManifest(*bucket_, NameIn(path));
  std::error_code failed;
  if (!fs::exists(path, failed)) return std::optional<Manifest>();
  MUSTER_ASSIGN(Manifest manifest, ReadManifest(path));
  return std::optional<Manifest>(std::move(manifest));
}

Result<std::vector<Manifest>> Staging::List() const {
  MUSTER_ASSIGN(std::vector<Manifest> all, ListAny());
  std::erase_if(all, [this](const Manifest& manifest) { return !IsOwn(manifest); });
  return all;
}

Result<std::vector<Manifest>> Staging::ListAny() const {
  std::vector<Manifest> all;
  if (bucket_) {
    MUSTER_ASSIGN(const std::vector<std::string> names, bucket_->client().List());
    for (const std::string& name : names) {
      if (!name.ends_with(kManifest)) continue;
      MUSTER_ASSIGN(auto manifest, ReadManifest(*bucket_, name));
      if (manifest) all.push_back(*std::move(manifest));
    }
    return all;
  }
  std::vector<std::string> paths;
  std::error_code failed;
  for (fs::directory_iterator at(folder_, failed), end; !failed && at != end;
       at.increment(failed)) {
    std::string path = at->path().string();
    if (path.ends_with(kManifest)) paths.push_back(std::move(path));
  }
  if (failed) return Error{Code::kNotFound, folder_ + ": " + failed.message()};
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    MUSTER_ASSIGN(Manifest manifest, ReadManifest(path));
    all.push_back(std::move(manifest));
  }
  return all;
}

void Staging::RemovePartial(const std::string& object) const {
  std::error_code failed;
  const std::string begin = fs::path(PathOf(object, ".")).filename().string();
  for (const auto& entry : fs::directory_iterator(folder_, failed)) {
    const std::string name = entry.path().filename().string();
    // OBJECT.ID.FORMAT.partial, not that of OBJECT.OTHER.
    if (!name.starts_with(begin)) continue;
    const size_t id_end = name.find('.', begin.size());
    if (id_end == std::string::npos) continue;
    const std::string rest = name.substr(id_end);
    if (rest == ".jsonl.partial" || rest == ".parquet.partial" || rest == ".failed.partial") {
      std::error_code ignored;
      fs::remove(entry.path(), ignored);
    }
  }
}

Status Staging::Begin(const std::string& object) const {
  std::error_code failed;
  MUSTER_TRY(MakePrivateFolders(folder_));
  // Left by a killed process. One that still writes is no longer wanted, and fails.
  RemovePartial(object);
  // From here on until Publish the object is not staged.
  fs::remove(PathOf(object, std::string(kManifest)), failed);
  if (failed) return FileError("removing", PathOf(object, std::string(kManifest)), failed.value());
  return bucket_ ? bucket_->client().Remove(NameIn(PathOf(object, std::string(kManifest))))
                 : Status();
}

Status Staging::Publish(const Manifest& manifest) const {
  const std::string path = PathOf(manifest.object, std::string(kManifest));
  const std::string text = ToJsonText(kTable.ToJson(manifest)) + "\n";
  if (!bucket_) return ReplaceFile(path, text, FileAccess::kOwner);
  MUSTER_TRY(bucket_->client().WriteFile(manifest.file, folder_ + "/" + manifest.file));
  MUSTER_TRY(KeepFailed(manifest.object));
  return bucket_->client().Write(NameIn(path), text);
}

Result<bool> Staging::IsWhole(const Manifest& manifest) const {
  if (bucket_) {
    const auto size = bucket_->client().Size(manifest.file);
    if (!size && size.error().code != Code::kNotFound) return size.error();
    return size && static_cast<int64_t>(*size) == manifest.bytes;
  }
  std::error_code failed;
  const auto size = fs::file_size(folder_ + "/" + manifest.file, failed);
  return !failed && static_cast<int64_t>(size) == manifest.bytes;
}

Status Staging::Bring(const Manifest& manifest) const {
  return bucket_ ? bucket_->Bring(manifest.file, manifest.bytes, manifest.sha256) : Status();
}

std::string Staging::UnreadableName(const std::string& object) const {
  return "unreadable/" + NameIn(PathOf(object, ".jsonl"));
}

std::string Staging::UnreadablePath(const std::string& object) const {
  return folder_ + "/" + UnreadableName(object);
}

Status Staging::KeepFailed(const std::string& object) const { return Keep(UnreadableName(object)); }

Status Staging::Keep(const std::string& name) const {
  if (!bucket_) return {};
  std::error_code failed;
  if (!fs::exists(folder_ + "/" + name, failed)) return bucket_->client().Remove(name);
  return bucket_->client().WriteFile(name, folder_ + "/" + name);
}

Result<Staging> StagingOf(const Parameters& parameters) {
  MUSTER_ASSIGN(const std::string folder, parameters.PlaceInFolder("staging"));
  StagingOwner owner;
  MUSTER_ASSIGN(owner.run, parameters.Optional("staging_run"));
  const Json unmarked = parameters.Value("staging_unmarked");
  owner.unmarked = unmarked.is_boolean() && unmarked.get<bool>();
  return Staging::At(folder, std::move(owner));
}

}  // namespace muster::task
