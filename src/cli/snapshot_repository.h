#pragma once

#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "muster/json.h"
#include "muster/result.h"
#include "net/opensearch.h"

namespace muster::cli {

// A cluster's snapshot repository at a location.
class SnapshotRepository {
 public:
  // kInvalid: `location` is neither an absolute folder nor s3://BUCKET/PREFIX.
  static Result<SnapshotRepository> At(const std::string& location);

  // Finds the repository in the cluster: the one called `name` or, without a name, the first at
  // this location. If none is found, registers one as `name` or "muster". kConflict: the name
  // belongs to another location, or the location has another name. kInvalid: the cluster cannot use
  // the location.
  Status Ensure(net::OpenSearchClient& client, const std::string& name, std::stop_token stop);

  // Once it is ensured.
  const std::string& name() const { return name_; }
  bool was_registered() const { return registered_; }

 private:
  SnapshotRepository(std::string type, Json settings)
      : type_(std::move(type)), settings_(std::move(settings)) {}

  bool IsThis(const Json& registered) const;
  Status CheckIsOnly(const net::OpenSearchClient& client, const Json& all) const;
  std::string Place() const;
  Status Register(net::OpenSearchClient& client, std::stop_token stop);

  std::string type_;
  Json settings_;
  std::string name_;
  std::vector<std::string> folders_;  // that other repositories' locations may be relative to
  bool registered_ = false;
};

}  // namespace muster::cli
