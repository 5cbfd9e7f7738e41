#pragma once

#include "core/json.h"
#include "metadata/metadata.h"
#include "muster/env.h"
#include "muster/result.h"
#include "net/opensearch.h"

namespace muster::pipeline {

// Metadata of a cluster outside of its indices, as Source::GlobalMetadata. All of it is optional:
// the version may lack it or the user may not read it, and an index itself has its mappings. What
// the user may not read is named under "unreadable". `is_whole`: not only some indices are read.
Result<Json> GlobalMetadataOf(net::OpenSearchClient& client, Env& env,
                              const metadata::ClusterVersion& version, bool is_whole);

// Only the newer templates, which data streams are created by.
Result<Json> TemplatesOf(net::OpenSearchClient& client, Env& env);

}  // namespace muster::pipeline
