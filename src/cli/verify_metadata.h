#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "cli/metadata_objects.h"
#include "cli/pipeline_settings.h"
#include "muster/env.h"
#include "muster/pipeline.h"

namespace muster::cli {

struct MetadataSides {
  pipeline::Source& source;
  const std::string& source_url;
  const std::string& sink_url;
  const CollectionPatterns& collections;
};

// Compares what search clusters have besides documents, as `muster metadata diff`. None: not both
// sides are clusters, or the sink's URL names an index, whose name is not that of the source's.
Result<std::optional<std::vector<metadata::Reported>>> CompareMetadata(const MetadataSides& sides,
                                                                       Env& env,
                                                                       std::stop_token stop);

}  // namespace muster::cli
