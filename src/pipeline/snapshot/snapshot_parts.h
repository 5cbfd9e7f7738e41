#pragma once

#include <memory>
#include <optional>
#include <string>

#include "lucene/lucene.h"
#include "muster/result.h"
#include "pipeline/snapshot/rebuild_plan.h"
#include "pipeline/snapshot/snapshot_reader.h"

namespace muster::pipeline {

// Why an index of a snapshot is not migrated; empty: it is. `named`: the source's URL selects it.
std::string WhyLeftOut(const lucene::SnapshotIndex& index, bool named);

// Whether the documents of an index get their type as a field: not if there is a single one.
bool HasTypeField(const lucene::SnapshotIndex& index, const SnapshotChoice& choice);

// kIncompatible: the files of an index cannot be read, or not with this choice of types.
Status CheckReadable(const std::string& place, const lucene::SnapshotIndex& index,
                     const SnapshotChoice& choice);

// kIncompatible: by its mapping, an index keeps no _source or not all of it, and the source's URL
// does not say what to do, or what it says cannot be done. Documents would be lost, or lose fields,
// without a word.
Status CheckWhole(const std::string& place, const lucene::SnapshotIndex& index,
                  const SnapshotChoice& choice);

// How to rebuild the documents of an index; null if that was not chosen, is not needed or cannot be
// done.
std::shared_ptr<const RebuildPlan> RebuildOf(const lucene::SnapshotIndex& index,
                                             const SnapshotChoice& choice);

// The snapshot of this name or, without a name, the newest complete one.
Result<lucene::Snapshot> ChooseSnapshot(const lucene::Repository& repository,
                                        const std::string& wanted);

// The earlier snapshot that a delta to `snapshot` starts from; none: `name` is empty.
Result<std::optional<lucene::Snapshot>> ChooseSince(const lucene::Repository& repository,
                                                    const std::string& name,
                                                    const lucene::Snapshot& snapshot);

}  // namespace muster::pipeline
