#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "lucene/lucene.h"

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

// What an index keeps of the documents it was sent, by its mapping.
enum class KeptSource { kAll, kPruned, kNothing };
KeptSource KeptSourceOf(const lucene::SnapshotIndex& index);

}  // namespace muster::pipeline
