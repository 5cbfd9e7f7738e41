#include "pipeline/snapshot/snapshot_metadata.h"

#include <algorithm>
#include <tuple>

#include "core/json_fields.h"
#include "metadata/metadata.h"

namespace muster::pipeline {

using lucene::Snapshot;
using lucene::SnapshotIndex;

std::string VersionOf(const Snapshot& snapshot) {
  return metadata::ClusterVersion::FromId(snapshot.version_id.value_or(0)).ToString();
}

std::vector<std::string> TypesOf(const SnapshotIndex& index) {
  std::vector<std::string> types;
  for (const Json& mapping : index.mappings) {
    if (!mapping.is_object()) continue;
    for (const auto& [type, fields] : mapping.items()) {
      if (type != "_default_") types.push_back(type);
    }
  }
  return types;
}

std::string TypeWithField(const SnapshotIndex& index, const std::string& field) {
  for (const Json& mapping : index.mappings) {
    if (!mapping.is_object()) continue;
    for (const auto& [type, fields] : mapping.items()) {
      if (MemberIn(fields, "properties").contains(field)) return type;
    }
  }
  return "";
}

Json MetadataOf(const Snapshot& snapshot, const SnapshotIndex& index,
                const SnapshotChoice& choice) {
  const std::string& wanted = choice.type;
  Json metadata{{"settings", index.settings},
                {"aliases", index.aliases},
                {"cluster_version", VersionOf(snapshot)}};
  Json& mappings = metadata["mappings"] = Json::object();
  const bool by_type = wanted.empty() && TypesOf(index).size() > 1;
  for (const Json& mapping : index.mappings) {
    if (!mapping.is_object()) continue;
    for (const auto& [type, fields] : mapping.items()) {
      const bool is_wanted = type != "_default_" && (wanted.empty() || wanted == type);
      if (!is_wanted || !fields.is_object()) continue;
      by_type ? void(mappings[type] = fields) : mappings.merge_patch(fields);
      if (by_type && !choice.type_field.empty()) {
        mappings[type]["properties"][choice.type_field] = {{"type", "keyword"}};
      }
    }
  }
  return metadata;
}

KeptSource KeptSourceOf(const SnapshotIndex& index) {
  KeptSource kept = KeptSource::kAll;
  for (const Json& mapping : index.mappings) {
    if (!mapping.is_object()) continue;
    for (const auto& [type, fields] : mapping.items()) {
      kept = std::max(kept, KeptSourceIn(fields));
    }
  }
  return kept;
}

Json GlobalMetadataOf(const Snapshot& snapshot, const Json& global) {
  Json metadata{{"cluster_version", VersionOf(snapshot)}};
  // Each kind is wrapped under its own name, but for the oldest ones.
  for (const auto& [ours, outer, inner] : {
           std::tuple{"templates", "templates", ""},
           std::tuple{"index_templates", "index_template", "index_template"},
           std::tuple{"component_templates", "component_template", "component_template"},
           std::tuple{"data_streams", "data_stream", "data_stream"},
           std::tuple{"policies", "index_lifecycle", "policies"},
       }) {
    const Json& kind = MemberIn(global, outer);
    for (const auto& [name, body] : (kind.contains(inner) ? kind[inner] : kind).items()) {
      if (body.is_object()) metadata[ours][name] = body;
    }
  }
  for (const Json& pipeline : MemberIn(MemberIn(global, "ingest"), "pipeline")) {
    const std::string id = TextIn(pipeline, "id");
    if (!id.empty()) metadata["pipelines"][id] = MemberIn(pipeline, "config");
  }
  return metadata;
}

}  // namespace muster::pipeline
