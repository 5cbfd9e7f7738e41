#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "lucene/lucene.h"
#include "pipeline/flow/kept_source.h"
#include "pipeline/snapshot/snapshot_reader.h"

namespace muster::pipeline {

// The version of the cluster that took a snapshot, as ClusterVersion::ToString.
std::string VersionOf(const lucene::Snapshot& snapshot);

// The types that documents of an index can have.
std::vector<std::string> TypesOf(const lucene::SnapshotIndex& index);

// A type whose mapping has this field; empty: none has it.
std::string TypeWithField(const lucene::SnapshotIndex& index, const std::string& field);

// Metadata of an index as a Collection has it, of the types and with the field that were chosen.
Json MetadataOf(const lucene::Snapshot& snapshot, const lucene::SnapshotIndex& index,
                const SnapshotChoice& choice);

// Metadata outside of indices as Source::GlobalMetadata has it, of what the snapshot says.
Json GlobalMetadataOf(const lucene::Snapshot& snapshot, const Json& global);

// By the mappings of all its types.
KeptSource KeptSourceOf(const lucene::SnapshotIndex& index);

}  // namespace muster::pipeline
