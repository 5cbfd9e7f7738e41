#include "cli/snapshot_repository.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "core/json.h"
#include "core/json_fields.h"
#include "core/url.h"
#include "net/s3.h"

namespace muster::cli {
namespace {

constexpr char kDefaultName[] = "muster";

std::string WithoutSlash(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

std::string PlaceIn(const std::string& type, const Json& settings) {
  if (type == "s3") {
    return "s3://" + TextIn(settings, "bucket") + "/" + WithoutSlash(TextIn(settings, "base_path"));
  }
  const std::string location = TextIn(settings, "location");
  return WithoutSlash(std::filesystem::path(location).lexically_normal().string());
}

bool HasRelativeLocation(const Json& repository) {
  return TextIn(repository, "type") == "fs" &&
         !TextIn(MemberIn(repository, "settings"), "location").starts_with('/');
}

// The folders that locations of repositories may be relative to.
Result<std::vector<std::string>> BaseFolders(net::OpenSearchClient& client, std::stop_token stop) {
  MUSTER_ASSIGN(
      const Json answer,
      client.SendForJson({.path = "/_nodes/settings?filter_path=nodes.*.settings.path.repo"},
                         std::move(stop)));
  std::vector<std::string> folders;
  for (const Json& node : MemberIn(answer, "nodes")) {
    const Json& repo = MemberIn(MemberIn(MemberIn(node, "settings"), "path"), "repo");
    if (repo.is_string()) folders.push_back(repo.get<std::string>());
    for (const Json& one : repo.is_array() ? repo : Json::array()) {
      if (one.is_string()) folders.push_back(one.get<std::string>());
    }
  }
  return folders;
}

bool IsReadOnly(const Json& settings) {
  const Json& flag = MemberIn(settings, "readonly");
  return flag == true || flag == "true";
}

Result<Json> BucketSettings(const std::string& location) {
  MUSTER_ASSIGN(const Url url, ParseUrl(location));
  MUSTER_ASSIGN(const net::S3Location bucket, net::S3Location::FromUrl(url));
  Json settings{{"bucket", bucket.bucket}};
  if (!bucket.prefix.empty()) settings["base_path"] = WithoutSlash(bucket.prefix);
  if (!bucket.region.empty()) settings["region"] = bucket.region;
  if (!bucket.endpoint.empty()) settings["endpoint"] = bucket.endpoint;
  if (bucket.path_style) settings["path_style_access"] = true;
  return settings;
}

}  // namespace

Result<SnapshotRepository> SnapshotRepository::At(const std::string& location) {
  if (location.starts_with("s3://")) {
    MUSTER_ASSIGN(Json settings, BucketSettings(location));
    return SnapshotRepository("s3", std::move(settings));
  }
  if (!location.starts_with('/')) {
    return Error{Code::kInvalid, "'" + location + "' is not a location for snapshots",
                 "give the full path of a folder on the cluster's machines, or s3://BUCKET/PREFIX"};
  }
  return SnapshotRepository("fs", Json{{"location", WithoutSlash(location)}});
}

std::string SnapshotRepository::Place() const { return PlaceIn(type_, settings_); }

bool SnapshotRepository::IsThis(const Json& registered) const {
  if (TextIn(registered, "type") != type_) return false;
  const std::string place = PlaceIn(type_, MemberIn(registered, "settings"));
  return place == Place() ||
         std::any_of(folders_.begin(), folders_.end(), [&](const std::string& folder) {
           return PlaceIn(type_, Json{{"location", folder + "/" + place}}) == Place();
         });
}

Status SnapshotRepository::Ensure(net::OpenSearchClient& client, const std::string& name,
                                  std::stop_token stop) {
  MUSTER_ASSIGN(const Json all, client.SendForJson({.path = "/_snapshot"}, stop));
  if (type_ == "fs" && std::any_of(all.begin(), all.end(), HasRelativeLocation)) {
    MUSTER_ASSIGN(folders_, BaseFolders(client, stop));
  }
  name_ = name;
  for (const auto& [known, about] : all.items()) {
    if (name_.empty() && IsThis(about)) name_ = known;
  }
  if (name_.empty()) name_ = kDefaultName;
  const Json& found = MemberIn(all, name_);
  if (found.is_null()) {
    MUSTER_TRY(CheckIsOnly(client, all));
    return Register(client, std::move(stop));
  }
  if (!IsThis(found)) {
    const std::string type = TextIn(found, "type");
    return Error{Code::kConflict,
                 client.Place() + " has a repository '" + name_ + "' for another location: " +
                     type + " " + PlaceIn(type, MemberIn(found, "settings")),
                 "choose another name for this one with --repository"};
  }
  if (IsReadOnly(MemberIn(found, "settings"))) {
    return Error{Code::kReadOnly,
                 client.Place() + ": the repository '" + name_ + "' is registered as read-only",
                 "register it again without readonly, if no other cluster writes to it"};
  }
  return {};
}

// With two names for one location, each would treat the other's writes as corruption.
Status SnapshotRepository::CheckIsOnly(const net::OpenSearchClient& client, const Json& all) const {
  for (const auto& [known, about] : all.items()) {
    if (!IsThis(about)) continue;
    return Error{Code::kConflict,
                 client.Place() + " has this location already, as repository '" + known +
                     "': with '" + name_ + "' as a second name, that one would be disabled",
                 "name it with --repository " + known + ", or leave out --repository"};
  }
  return {};
}

Status SnapshotRepository::Register(net::OpenSearchClient& client, std::stop_token stop) {
  const std::string path = "/_snapshot/" + net::OpenSearchPath(name_);
  const net::OpenSearchCall call{
      .method = "PUT",
      .path = path,
      .body = ToJsonText(Json{{"type", type_}, {"settings", settings_}})};
  MUSTER_ASSIGN(const net::OpenSearchAnswer answer, client.Send(call, stop));
  if (answer.status < 300) {
    registered_ = true;
    return {};
  }
  Error error = client.ErrorOf(call, answer);
  // The cluster reports an unusable location as an internal failure, but keeps the registration.
  if (answer.body.find("\"repository_") != std::string::npos) {
    static_cast<void>(client.Send({.method = "DELETE", .path = path}, stop));
    error.code = Code::kInvalid;
    error.hint = type_ == "s3" ? "the cluster needs the plugin repository-s3, and credentials for "
                                 "the bucket in its keystore"
                               : "path.repo in the configuration of every node must include this "
                                 "folder, which all of them share and may write to";
  }
  return error.Within("cannot register " + Place() + " as repository '" + name_ + "'");
}

}  // namespace muster::cli
