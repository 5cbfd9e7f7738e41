#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/events.h"
#include "muster/replica.h"

namespace muster {

// A replica set as it is written in a YAML file; docs/guide/replica.md describes the fields.
struct ReplicaFile {
  std::optional<std::string> store = {};  // none: the one that the caller has
  std::string events;                     // URLs
  EventLogOptions event_options = {};
  std::string read_model;
  ReplicaOptions options = {};
  std::vector<std::shared_ptr<Projection>> projections = {};

  // The projection of a name. kInvalid names those there are.
  Result<std::shared_ptr<Projection>> Find(const std::string& name) const;
};

// kInvalid says "origin:line:column: reason".
Result<ReplicaFile> ParseReplicaFile(std::string_view text, std::string_view origin);
Result<ReplicaFile> ReadReplicaFile(const std::string& path);

}  // namespace muster
