#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/env.h"
#include "muster/events.h"
#include "muster/replica.h"

namespace muster::replica {

// A replica set as a YAML file; docs/guide/replica.md describes the fields.
struct ReplicaFile {
  std::optional<std::string> store = {};  // none: the caller's
  std::string events;                     // URLs
  events::EventLogOptions event_options = {};
  std::string read_model;
  ReplicaOptions options = {};
  std::vector<std::shared_ptr<Projection>> projections = {};

  // A projection by name. kInvalid lists the available ones.
  Result<std::shared_ptr<Projection>> Find(const std::string& name) const;
};

// kInvalid says "origin:line:column: reason". `env` must outlive the projections.
Result<ReplicaFile> ParseReplicaFile(std::string_view text, std::string_view origin, Env& env);
Result<ReplicaFile> ReadReplicaFile(const std::string& path, Env& env);

}  // namespace muster::replica
