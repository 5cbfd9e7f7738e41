#pragma once

#include <string>
#include <vector>

#include "cli/context.h"
#include "cli/pipeline_settings.h"
#include "core/json.h"
#include "core/url.h"
#include "metadata/metadata.h"  // IWYU pragma: export
#include "muster/pipeline.h"

namespace muster::cli {

// What a search cluster, or a snapshot of one, has besides documents.
struct MetadataObjects {
  metadata::ClusterVersion from;
  bool selects = false;  // only some indices
  std::vector<metadata::SourceObject> objects;

  // True if only templates and policies would be migrated.
  bool SelectsNothing() const;
};

// kInvalid: the source is something else. `url` is its own.
Result<MetadataObjects> ReadMetadataObjects(pipeline::Source& source, const Url& url,
                                            const CollectionPatterns& patterns, bool pipelines);

// One line, or JSON object, for each.
void PrintMetadata(const std::vector<metadata::Reported>& all, Context& context);
Json MetadataJson(const std::vector<metadata::Reported>& all);

// Whether something is refused or different.
bool HasMetadataFailures(const std::vector<metadata::Reported>& all);

}  // namespace muster::cli
