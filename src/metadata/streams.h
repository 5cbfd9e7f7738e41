#pragma once

#include <string>

#include "core/json.h"
#include "metadata/rule_set.h"
#include "metadata/target.h"
#include "muster/result.h"

namespace muster::metadata {

// Completes the metadata of a data stream, which is that of its newest index: adds the stream's
// template with its components, from the source's global metadata, and marks it as a stream.
void AddStreamTemplates(const Json& global, const std::string& stream, Json& metadata);

// Whether a collection's metadata is that of a data stream.
bool IsStream(const Json& metadata);

// Creates a data stream that does not exist, and first the templates in its metadata that the
// cluster lacks. If the source's rules leave its template out, or there is none, it gets a template
// of its own, with settings and mappings of its newest index. Returns a sentence for each of them.
// kInvalid: templates of the cluster would change its documents. kConflict: created concurrently.
Result<std::vector<std::string>> CreateStream(Target& target, const RuleSet& rules,
                                              const Versions& versions, const std::string& name,
                                              const Json& metadata, bool evaluate);

}  // namespace muster::metadata
