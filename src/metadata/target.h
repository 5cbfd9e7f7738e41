#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "metadata/cluster_version.h"
#include "metadata/object.h"
#include "muster/env.h"
#include "muster/result.h"
#include "net/opensearch.h"

namespace muster::metadata {

// A document of the source.
struct Sample {
  std::string id = {};       // empty: none
  std::string routing = {};  // empty: by its id
  std::string body;          // JSON
};

// A cluster that gets metadata. Errors about an object itself are those for which IsRefusal holds;
// all others concern the cluster, and may pass. Thread-safe; client and environment must outlive
// it.
class Target {
 public:
  Target(net::OpenSearchClient& client, Env& env, ClusterVersion version)
      : client_(client), env_(env), version_(version) {}

  const ClusterVersion& version() const { return version_; }

  // The object as the cluster has it; none: it has none of that name.
  Result<std::optional<Json>> Find(Kind kind, const std::string& name);

  // Whether the cluster has objects of this kind at all.
  Result<bool> Knows(Kind kind);

  // Creates an object. Settings that the cluster does not know are dropped, one refusal after the
  // other; returns their names. kConflict: it was created concurrently.
  Result<std::vector<std::string>> Create(Kind kind, const std::string& name, Json body);

  // Whether an object could be created, without creating it: a template is simulated, an index
  // created under a temporary name, filled with `documents` and deleted. Returns as Create.
  // kInvalid also if a document does not fit.
  Result<std::vector<std::string>> Try(Kind kind, Json body, const std::vector<Sample>& documents);

  // Removes an index that this process has just created, also after an interrupt.
  Status Undo(const std::string& index);

  // Whether the cluster would create a data stream of this name: a template says so.
  Result<bool> HasStreamTemplate(const std::string& name);

  // What the cluster's templates give to any new index of this name, as the body of an index. Null:
  // the cluster does not say.
  Result<Json> FromTemplates(const std::string& index);

 private:
  std::string PathOf(Kind kind, const std::string& name) const;
  Result<std::vector<std::string>> PutWithoutBody(const net::OpenSearchCall& call);
  Result<std::vector<std::string>> Put(const net::OpenSearchCall& call, Kind kind, Json& body);
  Result<std::vector<std::string>> TryIndex(Json body, const std::vector<Sample>& documents);
  Result<std::vector<std::string>> TryTemplate(Kind kind, Json body);
  Status TryDocuments(const std::string& index, const std::vector<Sample>& documents);
  Result<std::vector<std::string>> CreateTemporary(const std::string& path, Json& body);
  void Delete(const std::string& index, bool is_certain);

  net::OpenSearchClient& client_;
  Env& env_;
  const ClusterVersion version_;
};

// The version of a cluster that gets metadata. A current OpenSearch if it does not
// say: some services have no GET /.
Result<ClusterVersion> VersionOf(net::OpenSearchClient& client);

// Whether an error means that the cluster will never accept an object.
bool IsRefusal(const Error& error);

// Whether an error says that the cluster has no such API: its version or a plugin is missing.
bool IsNoSuchApi(const Error& error);

// The names of settings that an error says the cluster does not know, or does not let be set.
std::vector<std::string> UnknownSettings(const std::string& message);

}  // namespace muster::metadata
