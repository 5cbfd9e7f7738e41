#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "lucene/lucene.h"
#include "pipeline/flow/kept_source.h"

namespace muster::pipeline {

// The version of the cluster that took a snapshot, as ClusterVersion::ToString.
std::string VersionOf(const lucene::Snapshot& snapshot);

// The types that documents of an index can have.
std::vector<std::string> TypesOf(const lucene::SnapshotIndex& index);

// Metadata of an index as a Collection has it; of one type, if `type` is not empty.
Json MetadataOf(const lucene::Snapshot& snapshot, const lucene::SnapshotIndex& index,
                const std::string& type);

// Metadata outside of indices as Source::GlobalMetadata has it, of what the snapshot says.
Json GlobalMetadataOf(const lucene::Snapshot& snapshot, const Json& global);

// By the mappings of all its types.
KeptSource KeptSourceOf(const lucene::SnapshotIndex& index);

}  // namespace muster::pipeline
