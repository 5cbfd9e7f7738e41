#include "pipeline/snapshot/snapshot_url.h"

#include <set>
#include <string>

#include "net/s3.h"
#include "pipeline/snapshot/type_field.h"

namespace muster::pipeline {

Result<std::unique_ptr<lucene::Blobs>> OpenSnapshotBlobs(const Url& url, Env& env) {
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

Status CheckSnapshotParameters(const Url& url) {
  std::set<std::string> known = {"snapshot",        "since",         "type",          "type_field",
                                 "recovery_source", "pruned_source", "rebuild_source"};
  if (url.scheme == "snapshot+s3") known.insert({"region", "endpoint", "path_style"});
  for (const auto& [name, value] : url.query) {
    if (!known.contains(name)) {
      std::string all;
      for (const std::string& each : known) all += (all.empty() ? "" : ", ") + each;
      return Error{Code::kInvalid, "the URL has an unknown parameter '" + name + "'",
                   "known parameters: " + all};
    }
    const bool is_flag = name.ends_with("_source");
    if (is_flag && value != "true" && value != "false") {
      return Error{Code::kInvalid, name + "=" + value + " is neither true nor false"};
    }
  }
  if (url.Param("pruned_source") == "true" && url.Param("rebuild_source") == "true") {
    return Error{Code::kInvalid, "the URL has both pruned_source and rebuild_source",
                 "pruned_source=true takes documents without the fields that are left out; "
                 "rebuild_source=true rebuilds these"};
  }
  const auto type_field = url.Param("type_field");
  if (type_field && url.Param("type")) {
    return Error{Code::kInvalid, "the URL has both type and type_field",
                 "type=NAME reads one type; type_field=NAME reads all of them, each document with "
                 "its type in that field"};
  }
  return type_field ? TypeField::Check(*type_field) : Status();
}

}  // namespace muster::pipeline
